"""branch-and-price: coalitions of limited sizes and counts, exact; a valid bound at any time."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from coalitions.compiling.clock import clock
from coalitions.errors import InfeasibleError, NoSolutionError
from coalitions.game import IntVector
from coalitions.graph import SynergyGraph
from solvers.optimality import OPTIMALITY_TOLERANCE
from solvers.preparation.scaling import ScaledWeights, integer_weights
from solvers.sizes import Sizes
from solvers.solver import SOLVERS, Answer, Limits, Progress, Solver, is_ctrl_c

if TYPE_CHECKING:
    from solvers.branch_and_price.incumbent import Incumbent
    from solvers.branch_and_price.problem import Problem
    from solvers.proofs.certificate import Certificate

REPORT_EVERY = 0.5
"""Seconds between two reports of progress."""


WIDE = 10
"""Where more nodes than this fit in a coalition, the search for columns may take very long."""

WIDE_ROUNDS = 8
"""Rounds of local search there."""

SHARE_OF_BOUND, LONGEST_BOUND = 0.25, 20.0
"""Part of the time, and seconds, for a bound that does not look at the demands."""


class TimeIsUp(Exception):  # noqa: N818 (a signal, not an error)
    """The limits ask the search to stop."""


@SOLVERS.register("branch-and-price")
@dataclass(frozen=True)
class BranchAndPrice(Solver):
    r"""Exact structures of coalitions with limited sizes, by columns and prices.

    With a variable for each allowed coalition C, the best structure solves

    .. math:: \max \sum_C v(C)\, x_C \quad\text{subject to}\quad
       \sum_{C \ni i} x_C = 1 \;\forall i, \quad
       \text{fewest} \le \sum_C x_C \le \text{most}

    in zeros and ones. Its linear relaxation is far tighter than one on pairs, and coalitions are
    only looked for as prices ask for them [Barnhart1998]_. Branches have two nodes together or
    apart [Ryan1981]_. Weights are scaled to integers, and every bound is proven in integers by
    prices that pay for all coalitions; see `solvers.branch_and_price.record`.

    Attributes
    ----------
    certify
        Use no bound that its prices do not prove. Without it, branch-and-cut bounds structures of
        large coalitions, and a certificate takes another search, when it is asked for.
    """

    certify: bool = False

    certifies_sizes: ClassVar[bool] = True

    @property
    def takes_sizes(self) -> bool:
        """It is made for them."""
        return True

    def certifying(self) -> BranchAndPrice:
        """Return this method without bounds of others."""
        return replace(self, certify=True)

    def search(
        self,
        graph: SynergyGraph,
        *,
        limits: Limits,
        warm_start: IntVector | None = None,
        sizes: Sizes | None = None,
    ) -> Answer:
        """Return the best structure and a bound."""
        from coalitions.one_thread import one_blas_thread
        from solvers.branch_and_price.problem import Problem

        n = graph.n_players
        if sizes is None:
            sizes = Sizes(np.ones(n, np.int64), 1, n, 1, n)
        i, j, weight = graph.edges
        scaled = integer_weights(weight)
        weights = np.zeros((n, n), np.int64)
        weights[i, j] = weights[j, i] = scaled.integers
        problem = Problem.of(weights, sizes)
        wide = problem.places > WIDE and n > 2 * WIDE and not self.certify
        seconds = limits.seconds_left
        with one_blas_thread():
            answer, own = _searched(graph, problem, scaled, limits, warm_start, wide)
        if own:
            return answer
        again = functools.partial(_certified, graph, sizes, answer.labels, limits.seed, seconds)
        return replace(answer, prove=again)


def _searched(
    graph: SynergyGraph,
    problem: Problem,
    scaled: ScaledWeights,
    limits: Limits,
    warm_start: IntVector | None,
    wide: bool,
) -> tuple[Answer, bool]:
    """Return the answer, and whether its bound is proven by prices alone."""
    from solvers.branch_and_price.incumbent import Incumbent
    from solvers.branch_and_price.tree import TreeSearch

    last_report = started = clock()
    incumbent = Incumbent(problem, seed=limits.seed, expired=lambda: limits.expired)

    @functools.cache
    def allowed(value: int) -> int:
        if incumbent.labels is None:
            return value
        tolerance = _tolerance(problem, scaled, incumbent.labels)
        return value + max(tolerance, int(limits.gap * abs(value)))

    def check() -> None:
        nonlocal last_report
        if limits.expired:
            raise TimeIsUp
        now = clock()
        if limits.report is None or now - last_report < REPORT_EVERY or incumbent.labels is None:
            return
        last_report = now
        value = float(scaled.unit * incumbent.value)
        limits.report(Progress(value, min(general, scaled.bound(tree.bound)), now - started))

    tree = TreeSearch(problem, incumbent, allowed=allowed, check=check, seed=limits.seed)
    general = math.inf
    try:
        incumbent.begin(warm_start)
        if wide:
            general = _general_bound(graph, incumbent, limits)
        unknown = general == math.inf or incumbent.labels is None
        if unknown or general > scaled.bound(allowed(incumbent.value)):
            tree.run()
    except TimeIsUp:
        pass
    except (KeyboardInterrupt, SystemError) as error:
        if not is_ctrl_c(error):
            raise
        limits.interrupted.set()
    if incumbent.labels is None:
        if tree.bound <= incumbent.value:
            raise InfeasibleError("no structure meets the demands")
        raise NoSolutionError(
            "no structure that meets the demands was found in time, nor a proof that there is none"
        )
    bound = scaled.bound(tree.bound)
    answer = Answer(
        labels=incumbent.labels,
        bound=min(general, bound),
        stats={"nodes": len(tree), "rounds": tree.rounds, "columns": len(tree.master)},
        prove=functools.partial(tree.record().certificate, problem.n, scaled.unit),
    )
    return answer, bound <= general


def _certified(
    graph: SynergyGraph, sizes: Sizes, labels: IntVector, seed: int, seconds: float
) -> Certificate | None:
    """Return a certificate of the bound that prices prove for a known structure in that time."""
    deadline = None if seconds == math.inf else clock() + seconds
    limits = Limits(deadline=deadline, seed=seed)
    answer = BranchAndPrice(certify=True).search(
        graph, limits=limits, warm_start=labels, sizes=sizes
    )
    if limits.interrupted.is_set():
        raise KeyboardInterrupt
    return answer.certificate


def _general_bound(graph: SynergyGraph, incumbent: Incumbent, limits: Limits) -> float:
    """Return a bound on all structures, whatever their sizes; the best may meet the demands."""
    from solvers.branch_and_cut.method import BranchAndCut

    if not (graph.edges.weight > 0).any():
        return 0.0
    seconds = min(SHARE_OF_BOUND * limits.seconds_left, LONGEST_BOUND)
    part = replace(limits, deadline=clock() + seconds, report=None)
    found = BranchAndCut().search(graph, limits=part)
    incumbent.begin(found.labels)
    if incumbent.labels is not None:
        incumbent.improve(incumbent.labels, WIDE_ROUNDS)
    return found.bound


def _tolerance(problem: Problem, scaled: ScaledWeights, labels: IntVector) -> int:
    """Return by how much bound and value may differ in a proof, in whole weights."""
    gains = int(np.maximum(problem.weights, 0).sum()) // 2
    together = labels[:, None] == labels
    losses = -int(np.minimum(problem.weights, 0)[together].sum()) // 2
    stake = scaled.unit * (gains + losses)
    units = Fraction(0.9 * OPTIMALITY_TOLERANCE) * stake - Fraction(scaled.slack)
    return max(0, int(units / scaled.unit))
