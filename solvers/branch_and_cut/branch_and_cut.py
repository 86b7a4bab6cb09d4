"""branch-and-cut: exact, with a certificate; stopped at any time it still has a valid bound.

The steps: whole numbers and merged pairs (`partition_problem`), a first structure, Russian dolls
(`russian_dolls`), and the tree of `branching` with the bounds of `lagrangian_dual`. A forecast
says whether local search should come first.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from coalitions.game import IntMatrix, IntVector
from coalitions.graph import SynergyGraph, matrix_of_pairs
from coalitions.runtime import clock
from solvers.branch_and_cut.partition_problem import (
    FEW_GROUPS,
    PartitionIncumbent,
    PartitionProblem,
    merges,
    trimmed,
)
from solvers.branch_and_cut.plain import plain_greedy
from solvers.demands import Sizes
from solvers.optimality import OPTIMALITY_TOLERANCE
from solvers.proofs.certificate import Certificate, Part
from solvers.reductions import ScaledWeights, components, integer_weights
from solvers.solver import (
    SOLVERS,
    Answer,
    Limits,
    SearchProgress,
    Solver,
    TimeIsUp,
    fits_table,
    is_ctrl_c,
    leaving_time_to_close,
)

if TYPE_CHECKING:
    from solvers.branch_and_cut.branching import PartitionRecord

REPORT_EVERY = 0.5
"""Seconds between two reports of progress."""

SECONDS_PER_PAIR = 1.5e-7
"""What it takes, per n², before the search can begin: whole numbers, reductions, a first descent;
CPU time at n = 5000 (`python -m benchmarks.constants SECONDS_PER_PAIR --players 5000`)."""

SHARE_OF_PREPARATION = 0.25
"""Part of the time that this may take; where it takes more, nothing would come of it: a guess."""

SHARE_OF_BOUND = 0.12
"""Part of the time that a cheap bound may take where there is hardly time for the dual's: less than
in `local-search`, which has nothing else to do. `benchmarks/anytime.py` compares the two."""


@SOLVERS.register("branch-and-cut")
@dataclass(frozen=True)
class BranchAndCut(Solver):
    r"""Exact clique partitioning by a Lagrangian dual, cuts, pegging and branching.

    With x_ij telling whether i and j are together, the best structure solves

    .. math:: \max \sum_{i<j} w_{ij} x_{ij}
       \quad\text{subject to}\quad x_{ij} + x_{jk} - x_{ik} \le 1 \text{ for all } i, j, k

    in zeros and ones [Groetschel1989]_. Weights are scaled to integers, and every conclusion is
    drawn in integer arithmetic.

    Attributes
    ----------
    certify
        Take no short cut that leaves nothing to check. Without it, what is small enough is searched
        by Russian dolls. A certificate takes another search then, when it is asked for.
    """

    certify: bool = False

    certifies: ClassVar[bool] = True
    at_once: ClassVar[int] = FEW_GROUPS

    def certifying(self) -> BranchAndCut:
        """Return this method without its short cuts."""
        return replace(self, certify=True)

    def search(
        self,
        graph: SynergyGraph,
        *,
        limits: Limits,
        warm_start: IntVector | None = None,
        sizes: Sizes | None = None,
    ) -> Answer:
        """Return the best structure, a bound, and a way to a certificate of it."""
        seconds, n = limits.seconds_left, graph.n_players
        if n > FEW_GROUPS and SHARE_OF_PREPARATION * seconds < SECONDS_PER_PAIR * n**2:
            found = _unproven(graph, limits, warm_start)
            # A certificate that is made later may prove less than the cheap bound.
            return replace(found, bound=graph.positive_weight) if self.certify else found
        task = _Task.of(graph, limits)
        incumbent = PartitionIncumbent(
            task.untrimmed,
            warm_start,
            limits.seed,
            expired=lambda: limits.expired,
            searched=functools.partial(_searched, graph, limits, warm_start),
            quick=not fits_table(graph),
        )
        known = _is_known(task, incumbent, self.certify)
        if known and not self.certify:
            stats = {"nodes": 1, "steps": 0, "cuts": 0, "merged": len(task.rules)}
            bound = task.scaled.bound(incumbent.value)
            answer, short_cuts = Answer(incumbent.labels, bound, stats), 1
        else:
            cheap = math.inf if known else _search_first(graph, task, incumbent, limits)
            hurried = leaving_time_to_close(limits, n)
            answer, short_cuts = _bounded(task, incumbent, hurried, self.certify, known)
            if not self.certify:  # no certificate proves the cheap bound
                answer = replace(answer, bound=min(answer.bound, cheap))
        if not short_cuts:
            return answer
        prove = functools.partial(_certified, graph, answer.labels, limits.seed, seconds)
        return replace(answer, prove=prove)


def _unproven(graph: SynergyGraph, limits: Limits, warm_start: IntVector | None) -> Answer:
    """Return the answer of local search, where the time is too short for even one bound."""
    from solvers.heuristics.local_search import LocalSearch

    seconds = limits.seconds_left
    found = LocalSearch().search(graph, limits=limits, warm_start=warm_start)
    return replace(
        found,
        stats={**found.stats, "model": "too large for the time limit"},
        prove=functools.partial(_certified, graph, found.labels, limits.seed, seconds),
    )


def _searched(graph: SynergyGraph, limits: Limits, start: IntVector | None) -> IntVector:
    from solvers.heuristics.dense_search import searched

    return searched(graph, limits, start, bound=graph.positive_weight)[0]


def _search_first(
    graph: SynergyGraph, task: _Task, incumbent: PartitionIncumbent, limits: Limits
) -> float:
    """Let local search come first where the dual would take long to say anything.

    Returns a bound that is cheap, if time is short; else infinity.
    """
    if task.problem.n_groups <= FEW_GROUPS:
        return math.inf
    from solvers.branch_and_cut.branching import SMOOTH
    from solvers.branch_and_cut.lagrangian_dual import MOST_TRIANGLES
    from solvers.heuristics.bounds import cycle_packing_bound

    forecast = Forecast.of(
        task.problem, smoothing=SMOOTH, most_rows=MOST_TRIANGLES, seed=limits.seed
    )
    if not forecast.search_first(limits.seconds_left):
        return math.inf
    bound = math.inf
    if limits.deadline is not None:
        bound = cycle_packing_bound(graph, limits=limits.part(SHARE_OF_BOUND))
    incumbent.search_to_the_end()
    return bound


@dataclass(frozen=True)
class _Task:
    """A graph in whole numbers, and what the reductions leave of it.

    Attributes
    ----------
    scaled
        The whole numbers, their unit and their slack.
    tolerance
        By how much bound and value may differ in a proof.
    untrimmed
        The weights [n, n] on which structures are priced: on trimmed ones, a pair that must not be
        together would cost one unit, which is nothing if units are small.
    rules
        Pairs that the reductions put together, on trimmed weights.
    problem
        What they leave to decide, on trimmed weights.
    """

    scaled: ScaledWeights
    tolerance: int
    untrimmed: IntMatrix
    rules: list[tuple[int, int]]
    problem: PartitionProblem

    @classmethod
    def of(cls, graph: SynergyGraph, limits: Limits) -> _Task:
        n = graph.n_players
        i, j, weight = graph.edges
        scaled = integer_weights(weight)
        untrimmed = matrix_of_pairs(n, i, j, scaled.integers)
        weights = trimmed(untrimmed)
        rules = merges(weights, lambda: limits.expired)
        problem = PartitionProblem.undecided(weights)
        if rules:
            pairs = np.array(rules)
            merged = problem.merged(components(n, pairs[:, 0], pairs[:, 1]))
            assert merged is not None
            problem = merged
        # The slack of the roundings comes on top, and a rounding of the tolerance itself.
        tolerance = 0.9 * OPTIMALITY_TOLERANCE * float(weight[weight > 0].sum()) - scaled.slack
        units = max(0, int(Fraction(tolerance) / scaled.unit))
        return cls(scaled, units, untrimmed, rules, problem)


def _is_known(task: _Task, incumbent: PartitionIncumbent, certify: bool) -> bool:
    """Look for the best structure before the dual starts; tell whether the incumbent has it.

    With few groups Russian dolls know it, also where they are no proof; with more, a first descent
    gives them something to start from.
    """
    from solvers.branch_and_cut.russian_dolls import closed_by_russian_dolls

    if task.problem.n_groups <= FEW_GROUPS:
        if closed_by_russian_dolls(task.problem, incumbent):
            return True
        if incumbent.expired():
            incumbent.offer(plain_greedy(task.untrimmed))
        else:
            incumbent.descend()
        return False
    incumbent.descend()
    return (
        not certify and not incumbent.expired() and closed_by_russian_dolls(task.problem, incumbent)
    )


def _bounded(
    task: _Task, incumbent: PartitionIncumbent, limits: Limits, certify: bool, known: bool
) -> tuple[Answer, int]:
    """Search with the dual; return also how many short cuts its record does not prove.

    Where the best structure is `known`, no time is spent on the search for a better one.
    """
    from solvers.branch_and_cut.branching import PartitionSearch

    last_report = started = clock()

    def allowed(value: int) -> int:
        return value + max(task.tolerance, int(limits.gap * abs(value)))

    def check() -> None:
        nonlocal last_report
        if limits.expired:
            raise TimeIsUp
        now = clock()
        if limits.report is not None and now - last_report > REPORT_EVERY:
            last_report = now
            limits.report(_progress(task.scaled, incumbent.value, tree.bound, now - started))

    tree = PartitionSearch(
        task.problem,
        incumbent,
        allowed=allowed,
        check=check,
        seconds_left=lambda: limits.seconds_left,
        seed=limits.seed,
        certify=certify,
        known=known,
    )
    try:
        tree.run()
    except TimeIsUp:
        tree.finish()
    except (KeyboardInterrupt, SystemError) as error:
        if not is_ctrl_c(error):
            raise
        limits.interrupted.set()
        tree.finish()
    record, value, bound = tree.record, incumbent.value, tree.bound
    answer = Answer(
        labels=incumbent.labels,
        bound=task.scaled.bound(bound),
        stats={
            "nodes": len(record),
            "steps": tree.steps,
            "cuts": tree.cuts,
            "merged": len(task.rules),
            **({"columns": tree.columns} if tree.columns else {}),
        },
        prove=functools.partial(_written, task, value, bound, record) if record.complete else None,
    )
    return answer, tree.short_cuts.taken if tree.short_cuts is not None else 0


def _written(task: _Task, value: int, bound: int, record: PartitionRecord) -> Certificate | None:
    """Return the certificate of a search, if its record is complete."""
    n = len(task.untrimmed)
    triangles, cuts, heads, branches = record.written(bound)
    if not record.complete:
        return None
    part = Part(
        nodes=tuple((player,) for player in range(n)),
        unit=task.scaled.unit,
        value=value,
        bound=bound,
        merges=tuple(task.rules),
        triangles=triangles,
        cuts=cuts,
        heads=heads,
        tree=branches,
    )
    return Certificate(n, (part,))


def _certified(
    graph: SynergyGraph, labels: IntVector, seed: int, seconds: float
) -> Certificate | None:
    """Return a certificate of the bound that can be proven for a known structure in that time."""
    from solvers.branch_and_cut.russian_dolls import closed_by_russian_dolls

    deadline = None if seconds == math.inf else clock() + seconds
    limits = Limits(deadline=deadline, seed=seed)
    task = _Task.of(graph, limits)
    incumbent = PartitionIncumbent(task.untrimmed, labels, seed)
    known = task.problem.n_groups <= FEW_GROUPS and closed_by_russian_dolls(task.problem, incumbent)
    answer, _ = _bounded(task, incumbent, limits, certify=True, known=known)
    if limits.interrupted.is_set():
        raise KeyboardInterrupt
    return answer.certificate


def _progress(scaled: ScaledWeights, value: int, bound: int, seconds: float) -> SearchProgress:
    return SearchProgress(float(scaled.unit * value), scaled.bound(bound), seconds)


# ----------------------------------------------------------------------------------------
# Forecast: what a first look at the bound costs, and whether a bound leaves hope for a proof.

SAMPLE = 20_000
"""Triples of groups that are asked how many triangles the dual will begin with."""

SECONDS_PER_TRIPLE, SECONDS_PER_ROW = 2.5e-9, 2.5e-7
"""CPU time of the first look, twenty steps: per m³ for finding violated triangles, and per row.
Rates of one machine; no program measures them again."""

RANDOM, AT_ONCE = 0.15, 0.1
"""Weights in conflict like uniform random ones: 0.21 of the triangles there
(`python -m benchmarks.constants RANDOM`), 0.11 at most in graphs of so many groups that were seen
proven. Then a look must be over at once, in seconds."""

SHARE_OF_LOOK = 0.3
"""Part of the time that is left which the first look may take else: a guess."""

HOPELESS = (2.0, 0.9, 0.6, 0.5)
"""How far above the value, relative to it, a bound may be after the first, second … look. Of 86
instances of 150 to 1150 players all that are proven in 10 s are nearer at every look; those of
random weights are not, at the first or the second (`python -m benchmarks.constants HOPELESS`)."""


def is_hopeless(looks: int, bound: int, value: int) -> bool:
    """Tell whether a bound after so many looks is too far from the value to come down to it."""
    return bound - value > HOPELESS[min(looks, len(HOPELESS)) - 1] * max(value, 1)


@dataclass(frozen=True)
class Forecast:
    r"""What the dual will begin with.

    A row is a triangle that the first soft point x = 1/(1 + exp(−w/μ)) violates,
    :math:`x_{ij} + x_{jk} - x_{ik} > 1`; their number is estimated by a sample.

    Attributes
    ----------
    conflicts
        Part of all triangles that are rows.
    seconds
        CPU time until the first bound.
    """

    conflicts: float
    seconds: float

    @classmethod
    def of(
        cls, problem: PartitionProblem, *, smoothing: float, most_rows: int, seed: int
    ) -> Forecast:
        """Return the forecast for a dual that is smoothed by μ, relative to the largest weight."""
        m = problem.n_groups
        triples = np.random.default_rng(seed).integers(0, m, (3, SAMPLE))
        i, j, k = triples[:, (triples != np.roll(triples, 1, axis=0)).all(axis=0)]
        mu = smoothing * max(1.0, float(np.abs(problem.weights).max(initial=0)))
        one, two, three = (
            1.0 / (1.0 + np.exp(-np.clip(problem.weights[a, b] / mu, -50.0, 50.0)))
            for a, b in ((i, j), (j, k), (i, k))
        )
        conflicts = float(np.mean(one + two - three > 1.02)) if len(i) else 0.0
        rows = min(float(most_rows), conflicts * m**3 / 2)
        return cls(conflicts, SECONDS_PER_TRIPLE * m**3 + SECONDS_PER_ROW * rows)

    def search_first(self, seconds_left: float) -> bool:
        """Tell whether local search is to come before the dual, which will take too long."""
        if self.conflicts > RANDOM:
            return self.seconds > AT_ONCE
        return self.seconds > SHARE_OF_LOOK * seconds_left
