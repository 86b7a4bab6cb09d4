"""solve(graph): demands, trivial cases, components, the call, the price and the proof."""

from __future__ import annotations

import contextlib
import math
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from coalitions.errors import InvalidInputError, NoSolutionError
from coalitions.game import IntVector
from coalitions.graph import SynergyGraph, weight_sum
from coalitions.runtime import clock, compile_figures, ready_seconds
from coalitions.structure import CoalitionStructure, Position, Structured
from solvers.demands import (
    Contraction,
    Count,
    Pairs,
    Roles,
    Sizes,
    Weights,
    checked_sizes,
    contract,
)
from solvers.optimality import (
    EXACT_TOLERANCE,
    at_stake,
    losses,
    positive_weight,
    reported_bound,
    rounded_up,
)
from solvers.proofs.certificate import Certificate, Part
from solvers.proofs.proof_demands import TeamDemands
from solvers.proofs.teams import one_node_proof
from solvers.reductions import (
    Piece,
    Tally,
    conditioned,
    conditioned_for_sizes,
    numbered,
    positive_components,
    settled,
)
from solvers.solution import Solution
from solvers.solver import SOLVERS, Answer, Limits, Progress, Solver, heeding_ctrl_c

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

TINY = 8
"""Up to this many players (4140 partitions) `auto` enumerates where sizes are demanded."""

EXACT_LIMIT = 3000
"""Up to this many players `auto` tries to prove; above, a good structure and a bound are all."""


def solve(
    graph: SynergyGraph | ArrayLike,
    solver: str | Solver = "auto",
    *,
    time_limit: float | None = None,
    gap: float = 0.0,
    warm_start: Structured | None = None,
    seed: int = 0,
    threads: int | None = None,
    must_link: Pairs = (),
    cannot_link: Pairs = (),
    n_groups: Count | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    weights: Weights | None = None,
    max_weight: float | None = None,
    at_least_one_of: Roles = (),
    n_best: int | None = None,
    all_optimal: bool = False,
    canonical: bool = False,
    certificate: bool = False,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,  # noqa: ANN401 (a solver's own options, checked by its constructor)
) -> Solution:
    """Return the best coalition structure of a graph, with a bound on all others.

    Parameters
    ----------
    graph
        A synergy graph, or what makes one: a matrix, a DataFrame, a networkx or igraph graph.
    solver
        A name (see `available`) or a solver object. ``auto`` takes an exact method.
    time_limit
        Wall time in seconds; the answer is then the best so far, with a valid bound.
    gap
        Relative gap at which to stop.
    warm_start
        A structure to start from, an earlier solution, or lists of players.
    seed
        Source of all randomness.
    threads
        Threads a solver may use; one unless told otherwise.
    must_link, cannot_link
        Pairs of players, by number or by name, that must, or must not, be in one coalition. A graph
        of networkx, igraph or pandas knows its players as its nodes: there a number is a node.
    n_groups, min_size, max_size
        Number of coalitions (or the least and the largest number), and how many players each may
        have. ``branch-and-cut``, and the integer-programming back-ends on another than the full
        formulation, cannot honour these and the demands below.
    weights, max_weight
        The load of each player (a number for each, or by name), and what a coalition can bear.
    at_least_one_of
        Sets of players: every coalition has a member of each.
    n_best
        How many structures to find, best first: `Solution.others` has those that follow the best.
        Fewer come out if there are no more, or if the time is over. At equal values it is not said
        which one comes in last.
    all_optimal
        Find all structures that are optimal: those after the best are in `Solution.others`. The
        list ends after 1000, or after `n_best`, and `Solution.stats` says so under ``"others"``.
    canonical
        Where several structures are best, return the one with the fewest joined pairs, and of
        these the one whose labels come first: the same for every exact solver and every
        `warm_start`. ``stats["canonical"]`` is false if that was not proven in the time.
    certificate
        Leave nothing unproven on the way, so that `Solution.certificate` is at hand. Without it, a
        certificate may take another, longer search when it is asked for. A solver that gives none
        is refused.
    progress
        Called with value, bound and seconds now and then.
    **options
        Options of the solver, such as ``formulation="full"``.

    Raises
    ------
    InvalidInputError
        An argument is wrong.
    InfeasibleError
        No structure meets the demands.
    NoSolutionError
        The solver gave no answer, or one that cannot be right.

    Examples
    --------
    >>> solution = solve([[0, 3, -2], [3, 0, -2], [-2, -2, 0]])
    >>> solution.structure.coalitions, solution.value, solution.optimal
    (((0, 1), (2,)), 3.0, True)
    """
    started, waited = clock(), ready_seconds()
    if not isinstance(graph, SynergyGraph):
        graph = SynergyGraph(graph)
    if warm_start is not None:
        warm_start = graph.structure(warm_start)
    _check_limits(time_limit, gap, threads, warm_start, graph)
    if isinstance(weights, Mapping):
        weights = dict(weights)
    elif weights is not None and isinstance(weights, Iterable):
        weights = list(weights)
    asked: dict[str, Any] = {
        "n_groups": n_groups,
        "min_size": min_size,
        "max_size": max_size,
        "weights": weights,
        "max_weight": max_weight,
        "at_least_one_of": tuple(
            role if isinstance(role, str) else tuple(role) for role in at_least_one_of
        ),
    }
    sizes_asked = {name: demand for name, demand in asked.items() if demand is not None}
    if not asked["at_least_one_of"]:
        del sizes_asked["at_least_one_of"]
    if n_best is not None or all_optimal or canonical:
        from solvers.alternatives.canonical import canonical as canonical_one
        from solvers.alternatives.n_best import ranked

        ask = partial(
            solve, solver=solver, gap=gap, seed=seed, threads=threads, **sizes_asked, **options
        )
        links: dict[str, Any] = {"must_link": must_link, "cannot_link": cannot_link}
        first = {"warm_start": warm_start, "certificate": certificate, "progress": progress}
        if canonical:
            if n_best is not None or all_optimal:
                raise InvalidInputError(
                    "canonical chooses one structure, n_best and all_optimal list several; give one"
                )
            return canonical_one(graph, ask, time_limit=time_limit, first=first, **links)
        return ranked(
            graph,
            partial(ask, graph),
            n_best=n_best,
            all_optimal=all_optimal,
            sized=bool(sizes_asked),
            time_limit=time_limit,
            first=first,
            **links,
        )
    deadline = None if time_limit is None else started + time_limit
    limits = Limits(deadline=deadline, gap=gap, threads=threads, seed=seed, report=progress)

    problem = contract(graph, must_link, cannot_link)
    sizes = checked_sizes(problem, graph, **asked)
    if certificate and sizes is not None and solver == "auto":
        solver = "branch-and-price"
    name, method = _chosen(solver, problem.graph, sizes is not None, options)
    if certificate:
        _check_certifies(name, method, automatic=solver == "auto", sized=sizes is not None)
        method = method.certifying()
    start = None if warm_start is None else problem.contract(warm_start.labels)
    if sizes is not None and not method.takes_sizes:
        raise InvalidInputError(
            f"{name} cannot honour sizes, counts, weights or roles of coalitions; use"
            " branch-and-price or local-search, or highs, cbc or cp-sat with formulation full"
        )
    gains = positive_weight(graph)
    if problem.graph is not graph:
        gains = min(gains, positive_weight(problem.graph))
    call = partial(_called, name, method)
    with heeding_ctrl_c(limits):
        if time_limit is not None and sizes is None and problem.graph.n_players > method.at_once:
            start = _first(problem.graph, method, limits, start)
        if sizes is not None:
            answer = _with_sizes(problem, call, limits, start, sizes)
        elif method.exact:
            answer = _by_components(problem, name, method, limits, start)
        else:  # a heuristic's bound is a sum over pairs, so splitting would not improve it
            answer = _in_one_piece(problem.graph, call, limits, start)

    structure = CoalitionStructure.from_labels(problem.expand(answer.labels))
    value = graph.value(structure)
    lost = 0.0 if sizes is None else losses(problem.graph, answer.labels)
    stake = at_stake(gains, lost)
    # What players that must be together are worth is no gain, so it is left out where it counts.
    bound = Fraction(answer.bound)
    missing = bound - _gained(graph, problem, structure, value, stake)
    bound += problem.constant
    if missing < 0 and -missing > EXACT_TOLERANCE * Fraction(stake):
        raise NoSolutionError(
            f"{name} claims the bound {rounded_up(bound)!r},"
            f" but its structure is worth {value!r}; one of the two is wrong"
        )
    return Solution(
        structure=structure,
        value=value,
        bound=reported_bound(value, bound, missing, stake),
        positive_weight=gains,
        seconds=clock() - started,
        solver=name,
        stats={
            **answer.stats,
            **({"interrupted": True} if limits.interrupted.is_set() else {}),
            **compile_figures(ready_seconds() - waited),
        },
        prove=answer.prove
        if sizes is None or answer.prove is None
        else _TeamsCertificate(graph, problem, answer, asked),
        must_link=_demandable(problem.must_link),
        cannot_link=_demandable(problem.cannot_link),
        sizes=sizes_asked,
        losses=lost,
        graph=graph,
    )


def _demandable(pairs: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Return pairs that can be demanded again, also where a number would be a node."""
    return tuple((Position(a), Position(b)) for a, b in pairs)


def available() -> dict[str, bool | str]:
    """Return for each solver True, or the reason why it cannot run here."""
    return {name: SOLVERS[name].missing() or True for name in SOLVERS}


def _check_limits(
    time_limit: float | None,
    gap: float,
    threads: int | None,
    warm_start: CoalitionStructure | None,
    graph: SynergyGraph,
) -> None:
    if time_limit is not None and not time_limit > 0:
        raise InvalidInputError(f"time_limit is {time_limit}; it must be a positive number")
    if not 0 <= gap < 1:
        raise InvalidInputError(f"gap is {gap}; it must be at least 0 and below 1")
    if threads is not None and threads < 1:
        raise InvalidInputError(f"threads is {threads}; it must be at least 1")
    if warm_start is not None and warm_start.n_players != graph.n_players:
        raise InvalidInputError(
            f"warm_start has {warm_start.n_players} players, the graph {graph.n_players}"
        )


def _chosen(
    solver: str | Solver, graph: SynergyGraph, sized: bool, options: dict[str, Any]
) -> tuple[str, Solver]:
    """Return the method and its name; `auto` looks at the graph."""
    if isinstance(solver, Solver):
        if options:
            raise InvalidInputError(
                f"options {', '.join(options)} go with a solver's name; this one is configured"
            )
        return type(solver).__name__, solver
    if solver == "auto":
        solver, options = _automatic(graph, sized, options)
    kind = SOLVERS[solver]
    kind.require(solver)
    known = {option.name for option in fields(kind)}  # type: ignore[arg-type]
    for option in options:
        if option not in known:
            offered = f"its options are {', '.join(sorted(known))}" if known else "it has none"
            raise InvalidInputError(f"{solver} has no option {option!r}; {offered}")
    return solver, kind(**options)


def _automatic(
    graph: SynergyGraph, sized: bool, options: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    if not sized:
        return ("branch-and-cut" if graph.n_players <= EXACT_LIMIT else "local-search"), options
    if graph.n_players <= TINY:
        return "brute-force", options
    return "branch-and-price", options


def _check_certifies(name: str, method: Solver, *, automatic: bool, sized: bool) -> None:
    """Raise if a method gives no certificate, and say what would."""
    if sized and not method.certifies_sizes:
        raise InvalidInputError(
            f"{name} gives no certificate for sizes, counts, weights or roles of coalitions; use"
            " branch-and-price"
        )
    if not sized and not method.certifies:
        chosen = f"auto takes {name} for so many players, which" if automatic else name
        raise InvalidInputError(f"{chosen} gives no certificate; use branch-and-cut")


def _called(
    name: str,
    method: Solver,
    graph: SynergyGraph,
    limits: Limits,
    start: IntVector | None,
    sizes: Sizes | None = None,
) -> Answer:
    """Return what a solver answers, if it is an answer; a plug-in may return anything."""
    demanded = {} if sizes is None else {"sizes": sizes}  # who takes none need not know of them
    answer: object = method.search(graph, limits=limits, warm_start=start, **demanded)
    if not isinstance(answer, Answer):
        raise NoSolutionError(
            f"{name} returned {_shown(answer)}; a solver returns an Answer with labels and a bound"
        )
    labels: np.ndarray[Any, Any] = np.empty(0)
    with contextlib.suppress(ValueError):  # lists of different lengths
        labels = np.asarray(answer.labels)
    n = graph.n_players
    if labels.shape != (n,) or labels.dtype.kind not in "iu" or labels.min(initial=0) < 0:
        raise NoSolutionError(
            f"{name} returned the labels {_shown(answer.labels)}; for {n} players it must return"
            f" an array of {n} whole numbers that are not negative"
        )
    bound = _as_float(answer.bound)
    if math.isnan(bound):
        raise NoSolutionError(
            f"{name} returned the bound {_shown(answer.bound)}; it must be a number"
        )
    if math.isinf(bound):  # it knows nothing; nothing is worth more than all positive weights
        bound = positive_weight(graph) if bound > 0 else -sys.float_info.max
    prove = answer.prove
    if prove is not None and not type(method).__module__.startswith("solvers."):
        prove = _Foreign(name, prove)
    return replace(answer, labels=numbered(labels), bound=bound, prove=prove)


def _as_float(number: object) -> float:
    """Return a real number as a float, anything else as NaN."""
    if isinstance(number, bool) or not isinstance(number, int | float | np.integer | np.floating):
        return math.nan
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _shown(thing: object) -> str:
    """Describe what came from outside, in a line."""
    words = " ".join(repr(thing).split())
    return words if len(words) <= 60 else f"{words[:57]}..."


def _first(
    graph: SynergyGraph, method: Solver, limits: Limits, start: IntVector | None
) -> IntVector | None:
    """Return greedy's structure: in a limited time nobody is to do worse, so all begin with it."""
    from solvers.heuristics.greedy import Greedy, united

    if isinstance(method, Greedy) or not (graph.edges.weight > 0).any():
        return start
    ready = conditioned(graph)
    return ready.parted(united(ready.graph, limits, start))


def _in_one_piece(
    graph: SynergyGraph, call: Callable[..., Answer], limits: Limits, start: IntVector | None
) -> Answer:
    """Solve a graph at once, unless nobody gains from anybody."""
    if not (graph.edges.weight > 0).any():
        return Answer(np.arange(graph.n_players), 0.0)
    ready = conditioned(graph)
    return ready.restored(call(ready.graph, ready.limits(limits), start))


def _with_sizes(
    problem: Contraction,
    call: Callable[..., Answer],
    limits: Limits,
    start: IntVector | None,
    sizes: Sizes,
) -> Answer:
    """Solve the whole graph at once: sizes couple players that no synergy connects."""
    if problem.graph.n_players == 1:
        return Answer(
            np.zeros(1, np.int64), 0.0, prove=partial(Certificate, 1, (), teams=one_node_proof())
        )
    raised, plain = conditioned_for_sizes(problem.graph, sizes.apart)
    found = call(raised.graph, raised.limits(limits), start, sizes)
    answer = raised.restored(found)
    if raised.joins_hopeless(found.labels):
        # Perhaps every structure of these sizes joins such a pair: then it matters how hopeless.
        # It starts from what was found: if the time is over, that is the answer.
        again = plain.restored(call(plain.graph, plain.limits(limits), found.labels, sizes))
        answer = _with_lower_bound(again, answer)
    return _without_dear_pairs(problem, call, limits, sizes, answer)


def _without_dear_pairs(
    problem: Contraction,
    call: Callable[..., Answer],
    limits: Limits,
    sizes: Sizes,
    answer: Answer,
) -> Answer:
    """Prove what is not proven yet without the pairs that cost too much; they blur the rest.

    A structure is worth at least minus its losses L, and any that joins a pair below −2·(Σ⁺ + L)
    less than that: in the search for a better one, such pairs are kept apart.
    """
    graph = problem.graph
    i, j, weight = graph.edges
    labels = answer.labels
    stake = at_stake(positive_weight(graph), losses(graph, labels))
    dear = weight < -2.0 * stake
    known = {(min(pair), max(pair)) for pair in sizes.apart}
    apart = known | set(zip(i[dear].tolist(), j[dear].tolist(), strict=True))
    if limits.expired or apart == known:
        return answer
    value = sum(map(Fraction, weight[labels[i] == labels[j]].tolist()), Fraction(0))
    if Fraction(answer.bound) - value <= EXACT_TOLERANCE * Fraction(stake):
        return answer
    kept = replace(sizes, apart=tuple(sorted(apart)))
    again = _with_sizes(problem, call, limits, labels, kept)
    return _with_lower_bound(replace(again, bound=max(again.bound, rounded_up(value))), answer)


def _with_lower_bound(answer: Answer, before: Answer) -> Answer:
    """Return an answer with the bound of an earlier one, if that is lower, and its certificate."""
    if before.bound >= answer.bound:
        return answer
    return replace(answer, bound=before.bound, prove=before.prove or answer.prove)


def _by_components(
    problem: Contraction,
    name: str,
    method: Solver,
    limits: Limits,
    start: IntVector | None,
) -> Answer:
    """Solve each component of the positive edges by itself, and put the answers together."""
    pieces = positive_components(problem.graph)
    tally = Tally(pieces, float(problem.constant), limits)
    labels = np.arange(problem.graph.n_players)
    answers = []
    for number, piece in enumerate(pieces):
        answer = settled(piece.graph)
        if answer is None:
            own_start = None if start is None else start[piece.players]
            call = partial(_called, name, method)
            answer = _in_one_piece(piece.graph, call, tally.limits_of(number), own_start)
        elif method.certifies:  # a certificate covers every piece, also those that need no search
            seconds = limits.seconds_left
            prove = partial(_proven_later, name, method, piece.graph, limits.seed, seconds)
            answer = replace(answer, prove=prove)
        answers.append(answer)
        if piece.graph is problem.graph:  # there is no other piece
            labels = answer.labels
        else:
            # A coalition is named after its first player: no name is given in two pieces.
            _, first, block = np.unique(answer.labels, return_index=True, return_inverse=True)
            labels[piece.players] = piece.players[first[block]]
        tally.close(number, answer)
    proven = all(answer.prove is not None for answer in answers)
    joined = partial(_joined, problem, pieces, answers) if method.certifies and proven else None
    stats: dict[str, Any] = {"components": len(pieces)}
    for answer in answers:
        for key, figure in answer.stats.items():
            added = isinstance(figure, int | float) and not isinstance(figure, bool)
            stats[key] = stats.get(key, 0) + figure if added else figure
    return Answer(labels, math.fsum(answer.bound for answer in answers), stats, joined)


def _proven_later(
    name: str, method: Solver, graph: SynergyGraph, seed: int, seconds: float
) -> Certificate | None:
    """Return the certificate of a component that needed no search: it is made now, in that time."""
    deadline = None if seconds == math.inf else clock() + seconds
    limits = Limits(deadline=deadline, seed=seed)
    together = np.zeros(graph.n_players, np.int64)
    answer = _in_one_piece(graph, partial(_called, name, method.certifying()), limits, together)
    if limits.interrupted.is_set():
        raise KeyboardInterrupt
    return answer.certificate


def _gained(
    graph: SynergyGraph,
    problem: Contraction,
    structure: CoalitionStructure,
    value: float,
    stake: float,
) -> Fraction:
    """Return what a structure is worth beyond what players that must be together are worth.

    A sum no larger than what is at stake is precise enough as a float.
    """
    if problem.graph.n_players == graph.n_players and abs(value) <= stake:
        return Fraction(value)
    labels, (i, j, weight) = structure.labels, graph.edges
    counted = weight[(labels[i] == labels[j]) & (problem.group[i] != problem.group[j])]
    total = weight_sum(counted)
    if abs(total) <= stake:
        return Fraction(total)
    return sum(map(Fraction, counted.tolist()), Fraction(0))


def _joined(problem: Contraction, pieces: list[Piece], answers: list[Answer]) -> Certificate | None:
    """Return the certificate of the whole graph from those of its pieces."""
    n = len(problem.group)
    behind: list[list[int]] = [[] for _ in range(problem.graph.n_players)]
    for player, node in enumerate(problem.group.tolist()):
        behind[node].append(player)
    parts: list[Part] = []
    for piece, answer in zip(pieces, answers, strict=True):
        if answer.certificate is None:
            return None
        parts += answer.certificate.placed([behind[p] for p in piece.players], n).parts
    return Certificate(n, tuple(parts), problem.must_link, problem.cannot_link)


@dataclass(frozen=True, eq=False)
class _TeamsCertificate:
    """Makes the certificate for the players from that for nodes, when it is called."""

    graph: SynergyGraph
    problem: Contraction
    answer: Answer
    asked: Mapping[str, Any]

    def __call__(self) -> Certificate | None:
        problem, found = self.problem, self.answer.certificate
        if found is None or found.teams is None:
            return None
        behind: list[list[int]] = [[] for _ in range(problem.graph.n_players)]
        for player, node in enumerate(problem.group.tolist()):
            behind[node].append(player)
        nodes = tuple(tuple(behind[k]) for (k,) in found.teams.nodes)
        return Certificate(
            len(problem.group),
            (),
            problem.must_link,
            problem.cannot_link,
            teams=replace(found.teams, nodes=nodes),
            demands=TeamDemands.of(self.graph, **self.asked),
        )


@dataclass(frozen=True, eq=False)
class _Foreign:
    """What a plug-in makes its certificate with: any callable, which pickle need not take."""

    solver: str
    prove: Callable[[], Certificate | None]

    def __call__(self) -> Certificate | None:
        return self.prove()

    def __deepcopy__(self, memo: Any) -> _Foreign:  # noqa: ANN401 (whatever copy keeps)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            pickled = pickle.dumps(self.prove)
        except Exception as error:  # pickle has no class of its own for most of what it refuses
            raise pickle.PicklingError(
                f"the solution of {self.solver} cannot be pickled, since the function that proves"
                f" it cannot ({error}); dataclasses.replace(solution, prove=None) can be, without"
                " its certificate"
            ) from None
        return _unpickled, (self.solver, pickled)


def _unpickled(solver: str, pickled: bytes) -> _Foreign:
    return _Foreign(solver, pickle.loads(pickled))
