"""The evaluated coalitions that all surrogates of a game share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coalitions.game import BoolMatrix, BoolVector, FloatMatrix, FloatVector, IntVector
from coalitions.sampling.subsets import n_subsets

FOLDS = 4
"""Parts for cross-validation, of surrogates that have no shorter way to it."""

ROUNDING = 1e-12
"""Values count as the same up to this, relative to the largest."""

TOLD = 1e-5
"""A model tells a pair if it is off by no more than this, relative to the largest value. Held-out
residuals of smooth games are some 1e-4 and more; what is less is the jitter of an exact fit."""


@dataclass(frozen=True, eq=False)
class Pool:
    r"""Pairs of complementary coalitions and their values; the first is (N, ∅).

    Pairs of one size are a simple random sample, drawn without replacement, of those there are.

    Attributes
    ----------
    signs
        One coalition S of each pair, +1 for members and −1 for the others [m, n].
    inside, outside
        The values of S and of its complement [m].
    seed
        Source of what is random about the fits.
    """

    signs: FloatMatrix
    inside: FloatVector
    outside: FloatVector
    seed: int

    @classmethod
    def of(
        cls, rows: BoolMatrix, values: FloatVector, ends: tuple[float, float], seed: int
    ) -> Pool:
        """Return the pool of sampled pairs: values of all rows, then of all complements."""
        empty, grand = ends
        members = np.concatenate([np.ones((1, rows.shape[1]), np.bool_), rows])
        half = len(rows)
        return cls(
            np.where(members, 1.0, -1.0),
            np.concatenate([[grand], values[:half]]),
            np.concatenate([[empty], values[half:]]),
            seed,
        )

    @property
    def n_players(self) -> int:
        """Number of players."""
        return int(self.signs.shape[1])

    @cached_property
    def odd(self) -> FloatVector:
        """The odd part of the game, ½[v(S) − v(N∖S)]: all that its Shapley value depends on."""
        return (self.inside - self.outside) / 2

    @cached_property
    def members(self) -> IntVector:
        """The number of members of each coalition."""
        return np.asarray((self.signs > 0).sum(axis=1), np.int64)

    @cached_property
    def sizes(self) -> IntVector:
        """The size of each pair: that of the smaller of the two, 0 for (N, ∅)."""
        return np.minimum(self.members, self.n_players - self.members)

    @cached_property
    def taken(self) -> IntVector:
        """How many pairs there are of each size in the pool."""
        return np.bincount(self.sizes, minlength=self.n_players // 2 + 1)

    @cached_property
    def missing(self) -> FloatVector:
        """Which share of the pairs of each size is not in the pool."""
        n = self.n_players
        there = [1, *(n_subsets(n, s, halved=2 * s == n) for s in range(1, n // 2 + 1))]
        pairs = zip(self.taken, there, strict=True)
        return np.array([1 - int(taken) / all_ for taken, all_ in pairs])

    @cached_property
    def alike(self) -> bool:
        """Whether all pairs of a size that is not complete have the same value.

        Then what was seen at such sizes makes no player stand out.
        """
        off = np.abs(self._off_sizes(self.odd))[self._partly]
        return bool(off.max(initial=0.0) <= ROUNDING * np.abs(self.odd).max())

    @cached_property
    def _partly(self) -> BoolVector:
        """Which pairs are of a size that is not complete [m]."""
        partly: BoolVector = self.missing[self.sizes] > 0.0
        return partly

    @cached_property
    def additive(self) -> bool:
        """Whether all pairs are told by those of single players, and by their sizes."""
        alone, n = self.sizes == 1, self.n_players
        if n < 3 or self.missing[1] > 0.0 or not self.missing.any():
            return False
        single = (self.signs[alone] > 0) == (2 * self.members[alone] < n)[:, None]
        smaller = np.where(2 * self.members[alone] > n, -self.odd[alone], self.odd[alone])
        straight = self.signs @ (single.T @ smaller) / 2
        off = np.abs(self._off_sizes(self.odd - straight))
        return bool(off.max() <= ROUNDING * np.abs(self.odd).max())

    @cached_property
    def unheard(self) -> float:
        """What the square of the next pair may be where only simple ones were seen; else 0.

        By Laplace's rule of succession, the next pair may be the first that is not so simple. Where
        all are alike, it may go the other way. If no pair goes either way, it may make as much of a
        difference as (N, ∅), or as any coalition. In an additive game it may be as far off as pairs
        of one size are from each other.
        """
        if self.alike:
            other_way = 2 * float(np.abs(self.odd[self._partly]).max(initial=0.0))
            swing = max(other_way, abs(float(self.odd[0]))) if self.odd.any() else self._range
            return swing**2 / (int(self._partly.sum()) + 1)
        return self._apart / (len(self.odd) + 1) if self.additive else 0.0

    def untold(self, residual: FloatVector) -> float:
        """Return the same for a model that tells all pairs of a game that is not so simple.

        Only pairs of sizes that are not complete count. Some of them were needed to fit the model,
        so they prove less than those of an additive game, which single players tell alone.
        """
        counted = np.abs(residual)[self._partly]
        told = bool((counted <= TOLD * np.abs(self.odd).max()).all())
        return self._apart if told and not (self.alike or self.additive) else 0.0

    @property
    def _apart(self) -> float:
        """How far pairs of one size are from each other: the mean square."""
        return float((self._off_sizes(self.odd)[1:] ** 2).mean())

    @property
    def _range(self) -> float:
        """How far a value is from that of the empty coalition, at most."""
        values = np.concatenate([self.inside, self.outside])
        return float(np.abs(values - self.outside[0]).max())

    def _off_sizes(self, odd: FloatVector) -> FloatVector:
        """Return the values of the smaller coalitions, less the mean of their size."""
        smaller = np.where(2 * self.members > self.n_players, -odd, odd)
        sums = np.bincount(self.sizes, smaller, minlength=len(self.taken))
        off: FloatVector = smaller - (sums / np.maximum(1, self.taken))[self.sizes]
        return off

    @cached_property
    def shares(self) -> FloatMatrix:
        r"""What one unit of u(S) adds to the Shapley value of each player [m, n].

        .. math:: \phi_i = \frac2n \Big[ u(N) + \sum_{s \le n/2}
                  \big( E[u(S) : |S| = s, i \in S] - E[u(S) : |S| = s, i \notin S] \big) \Big],

        over pairs; for s = n/2 the two means say the same, and only one of them counts.
        """
        n = self.n_players
        chance = np.zeros((2, n + 1))  # of a coalition among those of its size, by membership
        chance[1, n] = 1.0
        for s in range(1, n):
            chance[1, s] = 1 / n_subsets(n, s, halved=True)
            chance[0, s] = chance[1, s] * s / (n - s)
        inside = chance[1, self.members][:, None]
        outside = chance[0, self.members][:, None]
        shares: FloatMatrix = np.where(self.signs > 0, inside, -outside) * (2 / n)
        return shares

    @cached_property
    def folds(self) -> IntVector:
        """The fold of each pair, spread over the sizes; −1 for (N, ∅), which all fits see."""
        rng = np.random.default_rng(self.seed)
        order = rng.permutation(len(self.sizes))
        order = order[np.argsort(self.sizes[order], kind="stable")]
        folds = np.empty(len(order), np.int64)
        folds[order] = np.arange(len(order)) % FOLDS
        folds[0] = -1
        return folds
