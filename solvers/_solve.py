"""solve(graph): demands, trivial cases, components, the call, the price and the proof."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from coalitions.errors import InvalidInputError, NoSolutionError
from coalitions.game import IntVector
from coalitions.graph import SynergyGraph, weight_sum
from coalitions.structure import CoalitionStructure
from solvers.optimality import OPTIMALITY_TOLERANCE, positive_weight, reported_bound, rounded_up
from solvers.preparation.components import Piece, Tally, positive_components, settled
from solvers.preparation.conditioning import conditioned, conditioned_for_sizes
from solvers.preparation.demands import Contraction, Pairs, checked_sizes, contract
from solvers.proofs.certificate import Certificate, Part
from solvers.solution import Solution
from solvers.solver import SOLVERS, Answer, Limits, Progress, Sizes, Solver, heeding_ctrl_c

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
    warm_start: CoalitionStructure | None = None,
    seed: int = 0,
    threads: int | None = None,
    must_link: Pairs = (),
    cannot_link: Pairs = (),
    n_groups: int | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,  # noqa: ANN401 (a solver's own options, checked by its constructor)
) -> Solution:
    """Return the best coalition structure of a graph, with a bound on all others.

    Parameters
    ----------
    graph
        A synergy graph, or a matrix that makes one.
    solver
        A name (see `available`) or a solver object. ``auto`` takes an exact method.
    time_limit
        Wall time in seconds; the answer is then the best so far, with a valid bound.
    gap
        Relative gap at which to stop.
    warm_start
        A structure to start from.
    seed
        Source of all randomness.
    threads
        Threads a solver may use; one unless told otherwise.
    must_link, cannot_link
        Pairs of players that must, or must not, be in one coalition.
    n_groups, min_size, max_size
        Number of coalitions, and how many players each may have. Only ``brute-force`` and the
        integer-programming back-ends on the full formulation can honour them.
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
    started = time.monotonic()
    if not isinstance(graph, SynergyGraph):
        graph = SynergyGraph(graph)
    _check_limits(time_limit, gap, threads, warm_start, graph)
    deadline = None if time_limit is None else started + time_limit
    limits = Limits(deadline=deadline, gap=gap, threads=threads, seed=seed, report=progress)

    problem = contract(graph, must_link, cannot_link)
    sizes = checked_sizes(problem, n_groups, min_size, max_size)
    name, method = _chosen(solver, problem.graph, sizes is not None, options)
    start = None if warm_start is None else problem.contract(warm_start.labels)
    if sizes is not None and not method.takes_sizes:
        raise InvalidInputError(
            f"{name} cannot honour n_groups, min_size or max_size (its reductions would be"
            " wrong); use brute-force, or highs, cbc or cp-sat with formulation full"
        )
    gains = positive_weight(graph)
    if problem.graph is not graph:
        gains = min(gains, positive_weight(problem.graph))
    call = partial(_called, name, method)
    with heeding_ctrl_c(limits):
        if time_limit is not None and sizes is None and problem.graph.n_players > TINY:
            start = _first(problem.graph, method, limits, start)
        if sizes is not None:
            answer = _with_sizes(problem, call, limits, start, sizes)
        elif method.exact:
            answer = _by_components(problem, method, call, limits, start)
        else:  # a heuristic's bound is a sum over pairs, so splitting would not improve it
            answer = _in_one_piece(problem.graph, call, limits, start)

    structure = CoalitionStructure.from_labels(problem.expand(answer.labels))
    value = graph.value(structure)
    # What players that must be together are worth is no gain, so it is left out where it counts.
    missing = Fraction(answer.bound) - _gained(graph, problem, structure, value, gains)
    if -missing > Fraction(OPTIMALITY_TOLERANCE) * Fraction(gains):
        raise NoSolutionError(
            f"{name} claims the bound {rounded_up(Fraction(answer.bound) + problem.constant)!r},"
            f" but its structure is worth {value!r}; one of the two is wrong"
        )
    return Solution(
        structure=structure,
        value=value,
        bound=reported_bound(value, Fraction(answer.bound) + problem.constant, missing, gains),
        positive_weight=gains,
        seconds=time.monotonic() - started,
        solver=name,
        stats={**answer.stats, **({"interrupted": True} if limits.interrupted.is_set() else {})},
        prove=answer.prove,
        must_link=problem.must_link,
        cannot_link=problem.cannot_link,
    )


def available() -> dict[str, bool | str]:
    """Return for each solver True, or the reason why it cannot run here."""
    return {name: SOLVERS[name].missing() or True for name in SOLVERS}


def chosen_name(graph: SynergyGraph, solver: str, *, sized: bool) -> str:
    """Return the name of the method that `solve` takes; `sized` says whether sizes are demanded."""
    return _automatic(graph, sized, {})[0] if solver == "auto" else solver


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
    return "highs", {"formulation": "full", **options}


def _called(
    name: str,
    method: Solver,
    graph: SynergyGraph,
    limits: Limits,
    start: IntVector | None,
    sizes: Sizes | None = None,
) -> Answer:
    """Return what a solver answers, if it is an answer; a plug-in may return anything."""
    answer: object = method.search(graph, limits=limits, warm_start=start, sizes=sizes)
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
    blocks = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return replace(answer, labels=blocks, bound=bound)


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
        return Answer(np.zeros(1, np.int64), 0.0)
    raised, plain = conditioned_for_sizes(problem.graph, sizes.apart)
    answer = call(raised.graph, raised.limits(limits), start, sizes)
    if not raised.joins_hopeless(answer.labels):
        return raised.restored(answer)
    # Perhaps every structure of these sizes joins a hopeless pair: then it matters how hopeless.
    again = plain.restored(call(plain.graph, plain.limits(limits), start, sizes))
    return replace(again, bound=min(again.bound, raised.restored(answer).bound))


def _by_components(
    problem: Contraction,
    method: Solver,
    call: Callable[..., Answer],
    limits: Limits,
    start: IntVector | None,
) -> Answer:
    """Solve each component of the positive edges by itself, and put the answers together."""
    pieces = positive_components(problem.graph)
    tally = Tally(pieces, float(problem.constant), limits)
    labels = np.arange(problem.graph.n_players)
    answers = []
    for number, piece in enumerate(pieces):
        # A certificate covers every piece, so its maker also gets those that need no search.
        answer = None if method.certifies else settled(piece.graph)
        if answer is None:
            own_start = None if start is None else start[piece.players]
            answer = _in_one_piece(piece.graph, call, tally.limits_of(number), own_start)
        answers.append(answer)
        # A coalition is named after its first player, so names never clash between pieces.
        _, first, block = np.unique(answer.labels, return_index=True, return_inverse=True)
        labels[piece.players] = piece.players[first[block]]
        tally.close(number, answer)
    proven = all(answer.prove is not None for answer in answers)
    prove = partial(_joined, problem, pieces, answers) if method.certifies and proven else None
    stats: dict[str, Any] = {"components": len(pieces)}
    for answer in answers:
        for key, figure in answer.stats.items():
            added = isinstance(figure, int | float) and not isinstance(figure, bool)
            stats[key] = stats.get(key, 0) + figure if added else figure
    return Answer(labels, math.fsum(answer.bound for answer in answers), stats, prove)


def _gained(
    graph: SynergyGraph,
    problem: Contraction,
    structure: CoalitionStructure,
    value: float,
    gains: float,
) -> Fraction:
    """Return what a structure is worth beyond what players that must be together are worth.

    A sum near what can be gained at all is precise enough as a float.
    """
    if problem.graph.n_players == graph.n_players and abs(value) <= gains:
        return Fraction(value)
    labels, (i, j, weight) = structure.labels, graph.edges
    counted = weight[(labels[i] == labels[j]) & (problem.group[i] != problem.group[j])]
    total = weight_sum(counted)
    if abs(total) <= gains:
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
