"""Problem: what is left to decide when some players are known to be together or apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coalitions.game import BoolMatrix, IntMatrix, IntVector


@dataclass(frozen=True)
class Problem:
    """Groups of players that stay together, and the integer weights between them.

    Attributes
    ----------
    weights
        Weight between groups [m, m]: symmetric, with a zero diagonal.
    apart
        Pairs of groups that must not be together [m, m], symmetric.
    groups
        Group of each player [n].
    inside
        Weight inside the groups, which every structure of this problem has.
    """

    weights: IntMatrix
    apart: BoolMatrix
    groups: IntVector
    inside: int

    @classmethod
    def undecided(cls, weights: IntMatrix) -> Problem:
        """Return the problem in which nothing is decided."""
        n = len(weights)
        return cls(weights, np.zeros((n, n), np.bool_), np.arange(n), 0)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.weights)

    @property
    def representatives(self) -> IntVector:
        """First player of each group [m]."""
        first = np.empty(self.n_groups, np.int64)
        first[self.groups[::-1]] = np.arange(len(self.groups))[::-1]
        return first

    @property
    def n_undecided(self) -> int:
        """Number of pairs of groups that are neither together nor apart."""
        m = self.n_groups
        return (m * (m - 1) - int(np.count_nonzero(self.apart))) // 2

    def separated(self, first: IntVector, second: IntVector) -> Problem:
        """Return the problem with the pairs of groups (first[k], second[k]) apart."""
        apart = self.apart.copy()
        apart[first, second] = apart[second, first] = True
        return Problem(self.weights, apart, self.groups, self.inside)

    def merged(self, merge: IntVector) -> Problem | None:
        """Return the problem with each group g in the new group merge[g], or None if impossible.

        It is impossible if two groups that are apart would meet.
        """
        m = int(merge.max()) + 1
        order = np.argsort(merge, kind="stable")
        starts = np.searchsorted(merge[order], np.arange(m))
        weights = _summed(self.weights, order, starts)
        apart = _summed(self.apart.astype(np.int64), order, starts) > 0
        if apart.diagonal().any():
            return None
        inside = self.inside + int(np.trace(weights)) // 2
        np.fill_diagonal(weights, 0)
        return Problem(weights, apart, merge[self.groups], inside)


def _summed(matrix: IntMatrix, order: IntVector, starts: IntVector) -> IntMatrix:
    """Add up the rows and the columns of each group."""
    rows = np.add.reduceat(matrix[order], starts, axis=0)
    columns: IntMatrix = np.add.reduceat(rows[:, order], starts, axis=1)
    return columns
