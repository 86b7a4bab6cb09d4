"""From checked demands to a solution: reductions, the call of a method, price and proof."""

from __future__ import annotations

import contextlib
import math
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from coalitions.checks import Seed, seed_of
from coalitions.errors import InvalidInputError, NoSolutionError, unknown_keyword
from coalitions.game import IntVector
from coalitions.graph import SynergyGraph, weight_sum
from coalitions.runtime import clock, compile_figures, ready_seconds
from coalitions.structure import CoalitionStructure, Structured
from solvers.demands import DEMANDS, Contraction, Demands, Sizes
from solvers.optimality import (
    EXACT_TOLERANCE,
    at_stake,
    losses,
    positive_weight,
    reported_bound,
    rounded_up,
)
from solvers.proofs.certificate import Certificate
from solvers.proofs.proof_demands import TeamDemands
from solvers.proofs.teams import one_node_proof
from solvers.reductions import (
    Components,
    ComponentsProgress,
    Conditioned,
    numbered,
    settled,
)
from solvers.solution import Solution
from solvers.solver import (
    SOLVERS,
    Answer,
    Limits,
    SearchProgress,
    Solver,
    check_limits,
    fits_table,
    heeding_ctrl_c,
)

TINY = 8
"""Up to this many players (4140 partitions) `auto` enumerates where sizes are demanded."""

EXACT_LIMIT = 3000
"""Up to this many players `auto` tries to prove; above, a good structure and a bound are all."""


def solve_demands(
    graph: SynergyGraph,
    demands: Demands,
    solver: str | Solver = "auto",
    *,
    time_limit: float | None = None,
    warm_start: Structured | None = None,
    n_best: int | None = None,
    all_optimal: bool = False,
    canonical: bool = False,
    certificate: bool = False,
    progress: Callable[[SearchProgress], None] | None = None,
    started: float | None = None,
    gap: float = 0.0,
    seed: Seed = 0,
    threads: int | None = None,
    **options: Any,  # noqa: ANN401 (a solver's own options, checked by its constructor)
) -> Solution:
    """Return what `solve` returns, for demands that are checked already.

    Parameters
    ----------
    graph, demands
        The players and what is demanded of a structure.
    started
        When the time began to count; now, if None.
    solver, time_limit, warm_start, n_best, all_optimal, canonical, certificate, progress, gap, seed
        As for `solve`, and so are the parameters that follow.
    """
    start = None if warm_start is None else graph.structure(warm_start)
    check_limits(time_limit, gap, threads)
    search = partial(
        _best, solver=solver, gap=gap, seed=seed_of(seed), threads=threads, options=options
    )
    first: dict[str, Any] = {"warm_start": start, "certificate": certificate, "progress": progress}
    if canonical:
        from solvers.alternatives.canonical import canonical as canonical_one

        if n_best is not None or all_optimal:
            raise InvalidInputError(
                "canonical chooses one structure, n_best and all_optimal list several; give one"
            )
        return canonical_one(graph, demands, search, time_limit=time_limit, first=first)
    if n_best is not None or all_optimal:
        from solvers.alternatives.n_best import ranked

        return ranked(
            graph,
            demands,
            partial(search, graph),
            n_best=n_best,
            all_optimal=all_optimal,
            time_limit=time_limit,
            first=first,
        )
    return search(graph, demands, time_limit=time_limit, started=started, **first)


def _best(
    graph: SynergyGraph,
    demands: Demands,
    *,
    solver: str | Solver,
    gap: float,
    seed: int,
    threads: int | None,
    options: dict[str, Any],
    time_limit: float | None = None,
    started: float | None = None,
    warm_start: CoalitionStructure | None = None,
    certificate: bool = False,
    progress: Callable[[SearchProgress], None] | None = None,
) -> Solution:
    """Return the best structure: one search, from demands to price and proof."""
    waited = ready_seconds()
    if started is None:
        started = clock()
    deadline = None if time_limit is None else started + time_limit
    limits = Limits(deadline=deadline, gap=gap, threads=threads, seed=seed, report=progress)
    nodes = Contraction.apply(graph, demands)
    sizes = demands.on_nodes(nodes)
    name, method = _method(solver, nodes.graph, sizes, options, certificate=certificate)
    start = None if warm_start is None else nodes.contract(warm_start.labels)
    # Weights that add up to more than a float are refused before the search.
    gains = positive_weight(graph)
    if nodes.graph is not graph:
        gains = min(gains, positive_weight(nodes.graph))
    with heeding_ctrl_c(limits):
        answer = _answer(nodes, sizes, name, method, limits, start)
    figures: dict[str, Any] = {"interrupted": True} if limits.interrupted.is_set() else {}
    figures |= compile_figures(ready_seconds() - waited)
    seconds = clock() - started
    return _priced(graph, demands, nodes, sizes, name, answer, gains, seconds, figures)


def _method(
    solver: str | Solver,
    graph: SynergyGraph,
    sizes: Sizes | None,
    options: dict[str, Any],
    *,
    certificate: bool,
) -> tuple[str, Solver]:
    """Return a method that honours the demands, with its name, or say which method would."""
    sized, automatic = sizes is not None, solver == "auto"
    if certificate and sized and automatic:
        solver, automatic = "branch-and-price", False
    name, method = _chosen(solver, graph, sized, options)
    if certificate:
        _check_certifies(name, method, automatic=automatic, sized=sized)
        method = method.certifying()
    if sized and not method.takes_sizes:
        raise InvalidInputError(
            f"{name} cannot honour sizes, counts, weights or roles of coalitions; use"
            " branch-and-price or local-search, or highs, cbc or cp-sat with formulation full"
        )
    return name, method


def _answer(
    nodes: Contraction,
    sizes: Sizes | None,
    name: str,
    method: Solver,
    limits: Limits,
    start: IntVector | None,
) -> Answer:
    """Return labels of the nodes and a bound, on the way that suits the demands and the method."""
    graph, call = nodes.graph, partial(_called, name, method)
    if sizes is not None:
        return _with_sizes(nodes, call, limits, start, sizes)
    if limits.deadline is not None and graph.n_players > method.at_once:
        start = _first(graph, method, limits, start)
    if method.exact:
        return _by_components(nodes, name, method, limits, start)
    # A heuristic's bound is a sum over pairs, so splitting would not improve it.
    return _in_one_piece(graph, call, limits, start)


def _priced(
    graph: SynergyGraph,
    demands: Demands,
    nodes: Contraction,
    sizes: Sizes | None,
    name: str,
    answer: Answer,
    gains: float,
    seconds: float,
    figures: dict[str, Any],
) -> Solution:
    """Return the solution: what the structure is worth on the graph, and the bound of the method.

    Raises
    ------
    NoSolutionError
        The structure is worth more than the bound allows.
    """
    found = nodes.invert(answer)
    structure = CoalitionStructure.from_labels(found.labels)
    value = graph.value(structure)
    lost = 0.0 if sizes is None else losses(nodes.graph, answer.labels)
    stake = at_stake(gains, lost)
    # What players that must be together are worth is no gain: it does not count as missing.
    bound = Fraction(answer.bound)
    missing = bound - _gained(graph, nodes, structure, value, stake)
    bound += nodes.constant
    if missing < 0 and -missing > EXACT_TOLERANCE * Fraction(stake):
        raise NoSolutionError(
            f"{name} claims the bound {rounded_up(bound)!r},"
            f" but its structure is worth {value!r}; one of the two is wrong"
        )
    prove = found.prove
    if sizes is not None and prove is not None:
        prove = partial(_with_team_demands, graph, demands, prove)
    return Solution(
        structure=structure,
        value=value,
        bound=reported_bound(value, bound, missing, stake),
        positive_weight=gains,
        seconds=seconds,
        solver=name,
        stats={**answer.stats, **figures},
        prove=prove,
        demands=demands,
        losses=lost,
        graph=graph,
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
            shared = {*DEMANDS, *solve_demands.__kwdefaults__} - {"started"}  # type: ignore[misc]
            about = f"solve with the solver {solver}"
            raise unknown_keyword(about, option, [*sorted(known), *sorted(shared)])
    return solver, kind(**options)


def _automatic(
    graph: SynergyGraph, sized: bool, options: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    if not sized:
        if graph.n_players <= EXACT_LIMIT:
            return "branch-and-cut", options
        return ("local-search" if fits_table(graph) else "multilevel"), options
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
    ready = Conditioned.apply(graph)
    return ready.parted(united(ready.graph, limits, start))


def _in_one_piece(
    graph: SynergyGraph, call: Callable[..., Answer], limits: Limits, start: IntVector | None
) -> Answer:
    """Solve a graph at once, unless nobody gains from anybody."""
    if not (graph.edges.weight > 0).any():
        return Answer(np.arange(graph.n_players), 0.0)
    ready = Conditioned.apply(graph)
    return ready.invert(call(ready.graph, ready.scale.limits(limits), start))


def _with_sizes(
    nodes: Contraction,
    call: Callable[..., Answer],
    limits: Limits,
    start: IntVector | None,
    sizes: Sizes,
) -> Answer:
    """Solve the whole graph at once: sizes couple players that no synergy connects."""
    if nodes.graph.n_players == 1:
        return Answer(
            np.zeros(1, np.int64), 0.0, prove=partial(Certificate, 1, (), teams=one_node_proof())
        )
    raised, plain = Conditioned.apply_for_sizes(nodes.graph, sizes.apart)
    found = call(raised.graph, raised.scale.limits(limits), start, sizes)
    answer = raised.invert(found)
    if raised.joins_hopeless(found.labels):
        # Perhaps every structure of these sizes joins such a pair: then it matters how hopeless.
        # It starts from what was found: if the time is over, that is the answer.
        again = plain.invert(call(plain.graph, plain.scale.limits(limits), found.labels, sizes))
        answer = _with_lower_bound(again, answer)
    return _without_dear_pairs(nodes, call, limits, sizes, answer)


def _without_dear_pairs(
    nodes: Contraction,
    call: Callable[..., Answer],
    limits: Limits,
    sizes: Sizes,
    answer: Answer,
) -> Answer:
    """Prove what is not proven yet without the pairs that cost too much; they blur the rest.

    A structure is worth at least minus its losses L, and any that joins a pair below −2·(Σ⁺ + L)
    less than that: in the search for a better one, such pairs are kept apart.
    """
    graph = nodes.graph
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
    again = _with_sizes(nodes, call, limits, labels, kept)
    return _with_lower_bound(replace(again, bound=max(again.bound, rounded_up(value))), answer)


def _with_lower_bound(answer: Answer, before: Answer) -> Answer:
    """Return an answer with the bound of an earlier one, if that is lower, and its certificate."""
    if before.bound >= answer.bound:
        return answer
    return replace(answer, bound=before.bound, prove=before.prove or answer.prove)


def _by_components(
    nodes: Contraction,
    name: str,
    method: Solver,
    limits: Limits,
    start: IntVector | None,
) -> Answer:
    """Solve each component of the positive edges by itself, and put the answers together."""
    parts = Components.apply(nodes.graph)
    progress = ComponentsProgress(parts.graphs, float(nodes.constant), limits)
    answers = []
    for number, (players, graph) in enumerate(zip(parts.players, parts.graphs, strict=True)):
        answer = settled(graph)
        if answer is None:
            own_start = None if start is None else start[players]
            call = partial(_called, name, method)
            answer = _in_one_piece(graph, call, progress.limits_of(number), own_start)
        elif method.certifies:  # a certificate covers every component, also those not searched
            seconds = limits.seconds_left
            prove = partial(_proven_later, name, method, graph, limits.seed, seconds)
            answer = replace(answer, prove=prove)
        answers.append(answer)
        progress.close(number, answer)
    found = parts.invert(answers)
    return found if method.certifies else replace(found, prove=None)


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
    nodes: Contraction,
    structure: CoalitionStructure,
    value: float,
    stake: float,
) -> Fraction:
    """Return what a structure is worth beyond what players that must be together are worth.

    A sum no larger than what is at stake is precise enough as a float.
    """
    if nodes.graph.n_players == graph.n_players and abs(value) <= stake:
        return Fraction(value)
    labels, (i, j, weight) = structure.labels, graph.edges
    counted = weight[(labels[i] == labels[j]) & (nodes.group[i] != nodes.group[j])]
    total = weight_sum(counted)
    if abs(total) <= stake:
        return Fraction(total)
    return sum(map(Fraction, counted.tolist()), Fraction(0))


def _with_team_demands(
    graph: SynergyGraph, demands: Demands, prove: Callable[[], Certificate | None]
) -> Certificate | None:
    """Return a certificate for sizes with the demands that it is about."""
    found = prove()
    if found is None or found.teams is None:
        return None
    return replace(found, demands=TeamDemands.of(graph, **demands.sizes))


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
