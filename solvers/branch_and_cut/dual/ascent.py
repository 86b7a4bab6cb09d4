r"""The Lagrangian dual over all triangles, climbed down by accelerated gradient steps.

The bound U(y) = Σy + Σ max(0, r_e) with r = w − Aᵀy is smoothed by replacing max(0, r) with
μ·log(1 + exp(r/μ)). The gradient of a row is then its slack at the soft point
x = 1/(1 + exp(−r/μ)), and FISTA with restarts applies [Nesterov2005]_, [Beck2009]_. Of all
3·C(m, 3) triangles only those are kept that are violated by the soft point or have a multiplier.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coalitions.game import IntMatrix, IntVector
from solvers.branch_and_cut.dual.multipliers import Multipliers, Singles, row_keys
from solvers.branch_and_cut.dual.tools import Tools
from solvers.branch_and_cut.problem import Problem

BOLDNESS = 2.0
"""Steps are this much longer than the smoothness of the dual guarantees; restarts catch errors."""

PATIENCE = 3
"""Rounds for which a triangle without a multiplier is kept."""

MOST_TRIANGLES = 4_000_000


class Ascent:
    """The dual of one problem under way.

    Parameters
    ----------
    problem
        What is to be bounded.
    multipliers
        Where to start.
    mu
        Smoothing, in units of the integer weights.
    tools
        Who does the arithmetic.
    """

    def __init__(self, problem: Problem, multipliers: Multipliers, mu: float, tools: Tools) -> None:
        m = problem.n_groups
        self._tools = tools
        self.problem = problem
        self.scale = float(np.abs(problem.weights).max()) or 1.0
        self.mu = mu / self.scale
        self._weights = (np.triu(problem.weights, 1) / self.scale).astype(np.float32).ravel()
        self._undecided = (~problem.apart).astype(np.float32).ravel()
        order = np.lexsort(multipliers.triangles.T[::-1])
        triangles = multipliers.triangles[order]
        self._keys = (triangles[:, 0] * m + triangles[:, 1]) * m + triangles[:, 2]
        self._y = (multipliers.triangle_values[order] / self.scale).astype(np.float32)
        self._previous_y = self._y.copy()
        self._idle = np.zeros(len(self._y), np.int16)
        self._cuts = multipliers.cuts
        self._heads = multipliers.heads
        self._cut_keys = row_keys(self._cuts, self._heads)
        self._cut_y = (multipliers.cut_values / self.scale).astype(np.float32)
        self._previous_cut_y = self._cut_y.copy()
        self._cut_idle = np.zeros(len(self._cut_y), np.int64)
        self._x = np.zeros(m * m, np.float32)
        self._momentum = 1.0
        self._index()
        self._restart()

    @property
    def n_rows(self) -> int:
        """Number of inequalities at work."""
        return len(self._keys) + len(self._cuts)

    @property
    def point(self) -> Singles:
        """The soft point x as a symmetric matrix [m, m]."""
        m = self.problem.n_groups
        upper = np.triu(self._x.reshape(m, m), 1)
        point = upper + upper.T
        return point

    @property
    def multipliers(self) -> Multipliers:
        """The multipliers that are not zero."""
        m = self.problem.n_groups
        used = np.flatnonzero(self._y)
        keys = self._keys[used]
        triangles = np.stack([keys // (m * m), keys // m % m, keys % m], axis=1)
        cuts_used = np.flatnonzero(self._cut_y)
        return Multipliers(
            triangles,
            self._y[used].astype(np.float64) * self.scale,
            self._cuts[cuts_used],
            self._heads[cuts_used],
            self._cut_y[cuts_used].astype(np.float64) * self.scale,
        )

    def run(self, iterations: int, decay: float = 1.0) -> float:
        """Take some steps, μ shrinking by `decay` in each; return the bound, as a float."""
        bound, self.mu, self._momentum = self._tools.ascend(
            self._weights,
            self._undecided,
            self._pairs,
            self._y,
            self._previous_y,
            self._steps,
            self._cut_pointer,
            self._cut_pairs,
            self._signs,
            self._heads.astype(np.float32),
            self._cut_y,
            self._previous_cut_y,
            self._cut_steps,
            self._reduced,
            self._previous_reduced,
            self._x,
            self.mu,
            decay,
            self._momentum,
            iterations,
        )
        return float(bound) * self.scale + self.problem.inside

    def update_triangles(self, tolerance: float, check: Callable[[], None]) -> int:
        """Take in violated triangles, let go of idle ones; return how many were violated.

        `check` is called often, and may raise an exception.
        """
        point = self.point
        m = len(point)
        room = max(1000, MOST_TRIANGLES - len(self._keys))
        # In pieces that take no more than some hundredths of a second.
        centres = max(1, min(m, int(1e8 / (m * m))))
        found = []
        for first in range(0, m, centres):
            last = min(m, first + centres)
            share = room * (last - first) // m
            found.append(self._tools.violated_triangles(point, first, last, tolerance, share))
            check()
        keys = np.concatenate(found)
        self._keys, self._y, self._previous_y, self._idle = self._tools.merge_rows(
            self._keys, self._y, self._previous_y, self._idle, PATIENCE, keys
        )
        self._index()
        return len(keys)

    def update_cuts(self, cuts: IntMatrix, heads: IntVector, patience: int) -> None:
        """Take in cuts, and let go of those that were idle for `patience` rounds."""
        self._cut_idle = np.where(self._cut_y > 0.0, 0, self._cut_idle + 1)
        keep = self._cut_idle < patience
        keys = row_keys(cuts, heads)
        new = ~np.isin(keys, self._cut_keys[keep])
        self._cuts = np.concatenate([self._cuts[keep], cuts[new]])
        self._heads = np.concatenate([self._heads[keep], heads[new]])
        self._cut_keys = np.concatenate([self._cut_keys[keep], keys[new]])
        none = np.zeros(np.count_nonzero(new), np.float32)
        self._cut_y = np.concatenate([self._cut_y[keep], none])
        self._previous_cut_y = np.concatenate([self._previous_cut_y[keep], none])
        self._cut_idle = np.concatenate([self._cut_idle[keep], none.astype(np.int64)])
        self._index()

    def decide(self, problem: Problem) -> None:
        """Go on with a problem in which more pairs of the same groups are apart."""
        self.problem = problem
        self._undecided = (~problem.apart).astype(np.float32).ravel()

    def _index(self) -> None:
        """Lay out pairs and step sizes of the rows at work.

        The curvature of row c is at most Σ_{e ∈ c} d_e / 4μ, with d_e the number of rows at
        pair e.
        """
        m = self.problem.n_groups
        self._pairs, degree = self._tools.triangle_pairs(self._keys, m)
        self._cut_pointer, self._cut_pairs, self._signs = self._tools.cut_pairs(
            self._cuts, self._heads, m
        )
        if len(self._cuts):
            degree += np.bincount(self._cut_pairs, minlength=m * m).astype(np.int32)
        self._steps = self._tools.step_lengths(self._pairs, degree, 4.0 * BOLDNESS)
        if len(self._cuts):
            crowd = np.add.reduceat(degree[self._cut_pairs], self._cut_pointer[:-1])
            self._cut_steps = (4.0 * BOLDNESS / crowd).astype(np.float32)
        else:
            self._cut_steps = np.empty(0, np.float32)

    def _restart(self) -> None:
        """Compute the reduced weights afresh, and drop the momentum."""
        reduced = self._weights.copy()
        for column, sign in ((0, -1.0), (1, -1.0), (2, 1.0)):
            reduced += sign * np.bincount(
                self._pairs[:, column], self._y, minlength=len(reduced)
            ).astype(np.float32)
        spread = np.repeat(self._cut_y, np.diff(self._cut_pointer)) * self._signs
        reduced -= np.bincount(self._cut_pairs, spread, minlength=len(reduced)).astype(np.float32)
        self._reduced = reduced
        self._previous_reduced = reduced.copy()
        self._momentum = 1.0
