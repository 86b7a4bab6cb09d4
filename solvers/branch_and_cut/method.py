"""branch-and-cut: exact, with a certificate; stopped at any time it still has a valid bound."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.game import IntVector
from coalitions.graph import SynergyGraph
from solvers.certificate import Certificate, Part
from solvers.scaling import ScaledWeights, integer_weights
from solvers.solution import OPTIMALITY_TOLERANCE
from solvers.solver import SOLVERS, Answer, Limits, Progress, Sizes, Solver, is_ctrl_c

REPORT_EVERY = 0.5
"""Seconds between two reports of progress."""


class TimeIsUp(Exception):  # noqa: N818 (a signal, not an error)
    """The limits ask the search to stop."""


@SOLVERS.register("branch-and-cut")
@dataclass(frozen=True)
class BranchAndCut(Solver):
    r"""Exact clique partitioning by a Lagrangian dual, cuts, pegging and branching.

    With x_ij telling whether i and j are together, the best structure solves

    .. math:: \max \sum_{i<j} w_{ij} x_{ij}
       \quad\text{subject to}\quad x_{ij} + x_{jk} - x_{ik} \le 1 \text{ for all } i, j, k

    in zeros and ones [Groetschel1989]_. Weights are scaled to integers; every conclusion is drawn
    in integer arithmetic and goes into the certificate.
    """

    certifies: ClassVar[bool] = True

    def search(
        self,
        graph: SynergyGraph,
        *,
        limits: Limits,
        warm_start: IntVector | None = None,
        sizes: Sizes | None = None,
    ) -> Answer:
        """Return the best structure, a bound, and a certificate of it."""
        from solvers.branch_and_cut.incumbent import Incumbent
        from solvers.branch_and_cut.problem import Problem, joined
        from solvers.branch_and_cut.tree import TreeSearch
        from solvers.reductions import merges, trimmed

        started = time.monotonic()
        n = graph.n_players
        i, j, weight = graph.edges
        scaled = integer_weights(weight)
        weights = np.zeros((n, n), np.int64)
        weights[i, j] = weights[j, i] = scaled.integers
        weights = trimmed(weights)

        incumbent = Incumbent(weights, warm_start, limits.seed)
        rules = merges(weights)
        problem = Problem.undecided(weights)
        if rules:
            pairs = np.array(rules)
            merged = problem.merged(joined(n, pairs[:, 0], pairs[:, 1]))
            assert merged is not None
            problem = merged

        tolerance = OPTIMALITY_TOLERANCE / 2 * max(1.0, float(np.abs(weight).sum()))
        within = int(tolerance / float(scaled.unit))
        last_report = started

        def allowed(value: int) -> int:
            return value + max(within, int(limits.gap * abs(value)))

        def check() -> None:
            nonlocal last_report
            if limits.expired:
                raise TimeIsUp
            now = time.monotonic()
            if limits.report is not None and now - last_report > REPORT_EVERY:
                last_report = now
                limits.report(_progress(scaled, incumbent.value, tree.bound, now - started))

        tree = TreeSearch(
            problem,
            incumbent,
            allowed=allowed,
            check=check,
            seconds_left=lambda: limits.seconds_left,
            seed=limits.seed,
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
        triangles, cuts, branches = tree.record.written()
        part = Part(
            nodes=tuple((player,) for player in range(n)),
            unit=scaled.unit,
            value=incumbent.value,
            bound=tree.bound,
            merges=tuple(rules),
            triangles=triangles,
            cuts=cuts,
            tree=branches,
        )
        return Answer(
            labels=incumbent.labels,
            bound=scaled.bound(tree.bound),
            stats={
                "nodes": len(tree.record),
                "steps": tree.steps,
                "cuts": tree.cuts,
                "merged": len(rules),
            },
            certificate=Certificate(n, (part,)) if tree.record.complete else None,
        )


def _progress(scaled: ScaledWeights, value: int, bound: int, seconds: float) -> Progress:
    return Progress(float(scaled.unit * value), scaled.bound(bound), seconds)
