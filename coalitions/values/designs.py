"""Designs: which coalitions are evaluated, and the pool of values that models are fitted to.

Coalitions by fair coins, coalitions of a given size, and pairs of complements spread over the
sizes. The last two are streams: with the same seed a larger sample contains the smaller one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb, sqrt
from typing import NamedTuple

import numpy as np

from coalitions.game import BoolMatrix, BoolVector, FloatMatrix, FloatVector, IntVector

# ----------------------------------------------------------------------------------------
# Coalitions by coins


def fair_coalitions(budget: int, n_players: int, rng: np.random.Generator) -> BoolMatrix:
    """Return coalitions of fair coins, every player in exactly half of them.

    Each column is half ones in random order, independently of the others: a row is a fair toss of
    n coins. An odd budget leaves one evaluation over.
    """
    column = np.repeat([[True], [False]], budget // 2, axis=0)
    return rng.permuted(column.repeat(n_players, axis=1), axis=0)


# ----------------------------------------------------------------------------------------
# Means of samples, and how many coalitions a linear model needs

CELLS_PER_CALL = 1 << 26
"""Paths are evaluated together until their coalitions fill this many cells (64 MiB)."""


def mean_and_error(samples: FloatMatrix) -> tuple[FloatVector, FloatVector]:
    """Return the mean of the rows and its standard error; the rows are independent."""
    mean = samples.mean(axis=0)
    return mean, samples.std(axis=0, ddof=1) / np.sqrt(len(samples))


FITTED_PLAYERS = 48
"""Up to this many players a model of degree two is fitted: 1177 coefficients."""


def n_coefficients(n_players: int) -> int:
    """Return the number of coefficients of a model of degree two."""
    return 1 + n_players * (n_players + 1) // 2


def is_fitted(n_players: int, budget: int) -> bool:
    """Tell whether there are two evaluations for each coefficient, and not too many of these."""
    return n_players <= FITTED_PLAYERS and budget >= 2 * (n_players + n_coefficients(n_players))


# ----------------------------------------------------------------------------------------
# Coalitions of a given size

LISTED = 20_000
"""Up to this many coalitions of a size are listed and shuffled; else repeats are thrown away."""

BLOCK = 256
"""Coalitions drawn at a time; fixed, so that a longer sample starts with the shorter one."""


def random_subsets(n_players: int, size: int, count: int, rng: np.random.Generator) -> BoolMatrix:
    """Return independent coalitions of one size, uniform, [count, n]; repeats are possible."""
    rows = np.zeros((count, n_players), np.bool_)
    for start in range(0, count, BLOCK):
        block = rng.random((BLOCK, n_players)).argpartition(size - 1, axis=1)[:, :size]
        part = rows[start : start + BLOCK]
        np.put_along_axis(part, block[: len(part)], True, axis=1)
    return rows


def distinct_subsets(
    n_players: int, size: int, count: int, rng: np.random.Generator, *, halved: bool = False
) -> BoolMatrix:
    """Return different coalitions of one size in random order, [count, n].

    Parameters
    ----------
    n_players, size
        What to choose from, and how many, 1 ≤ size < n.
    count
        How many coalitions; never more than there are.
    rng
        Source of randomness.
    halved
        Take only coalitions with player 0: one of each pair of complements if size is n/2.
    """
    total = n_subsets(n_players, size, halved=halved)
    if total <= LISTED:
        picks = np.array(list(combinations(range(n_players), size)), np.int64)[:total]
        rows = np.zeros((count, n_players), np.bool_)
        np.put_along_axis(rows, picks[rng.permutation(total)[:count]], True, axis=1)
        return rows
    seen: dict[bytes, None] = {}
    found: list[BoolMatrix] = []
    while len(seen) < count:
        block = random_subsets(n_players, size, BLOCK, rng)
        if halved:
            block[~block[:, 0]] ^= True
        for row in block:
            key = row.tobytes()
            if key not in seen:
                seen[key] = None
                found.append(row)
    return np.array(found[:count])


def n_subsets(n_players: int, size: int, *, halved: bool = False) -> int:
    """Return the number of coalitions of a size; with `halved`, of those with player 0."""
    return comb(n_players - 1, size - 1) if halved else comb(n_players, size)


# ----------------------------------------------------------------------------------------
# Pairs of complements
#
# The Shapley value depends on the odd part of a game only, ½[v(S) − v(N∖S)]: a pair gives one
# value of it. Sizes s and n−s count as one. An even design has the same number of pairs of all
# sizes, which is what the leverage scores of the Shapley regression come to [Musco2025]_, until
# there are no more coalitions of a size. A design with borders has as many of each size as make
# the variance of stratified means least, in proportion to :math:`1/\sqrt{s(n-s)}` [Witter2025]_;
# but all pairs of one player and the others as soon as they are affordable, since games of data
# jump there.

GOLDEN = 0.6180339887498949

BORDERS_AFTER = 0.6
"""Pairs for each player, after which all pairs of one player and the others are taken."""


def most_pairs(n_players: int) -> int:
    """Return how many pairs there are; that of the empty and the grand coalition is left out."""
    return (1 << (n_players - 1)) - 1


def pairs_per_size(
    n_players: int, n_pairs: int, *, borders: bool = False, shares: FloatVector | None = None
) -> IntVector:
    """Return how many pairs to take of each size s = 0 … n/2; the counts grow with `n_pairs`.

    Size n/2 has one coalition of each pair where the others have two, so it gets half as many.
    With `shares`, sizes get as many as these positive numbers say, as long as there are any left.
    """
    counts = np.zeros(n_players // 2 + 1, np.int64)
    # A size's turn comes again after this long.
    pause = [sqrt(s * (n_players - s)) if borders else 1.0 for s in range(len(counts))]
    if shares is not None:
        pause = (1 / shares).tolist()
    # Sizes take turns; their first turns are spread out, so that few pairs meet all sorts of sizes.
    queue = [((s * GOLDEN) % 1.0 * pause[s], s) for s in range(1, len(counts))]
    heapq.heapify(queue)
    for taken in range(min(n_pairs, most_pairs(n_players))):
        if borders and counts[1] < n_players and taken >= BORDERS_AFTER * n_players:
            queue = [(turn, s) for turn, s in queue if s > 1]
            heapq.heapify(queue)
            counts[1] += 1
            continue
        turn, s = queue[0]
        counts[s] += 1
        halved = 2 * s == n_players
        if counts[s] == n_subsets(n_players, s, halved=halved):
            heapq.heappop(queue)
        else:
            heapq.heapreplace(
                queue, (turn + (2.0 if halved and shares is None else 1.0) * pause[s], s)
            )
    return counts


def random_pairs(
    n_players: int,
    n_pairs: int,
    seed: int,
    *,
    borders: bool = False,
    shares: FloatVector | None = None,
) -> BoolMatrix:
    """Return different coalitions S [m, n] with |S| ≤ n/2, no two of them complements.

    Fewer come back if there are not so many. The sets of a smaller design are among those of a
    larger one with the same seed.
    """
    counts = pairs_per_size(n_players, n_pairs, borders=borders, shares=shares)
    streams = np.random.SeedSequence(seed).spawn(len(counts))
    parts = [
        distinct_subsets(
            n_players,
            s,
            int(counts[s]),
            np.random.default_rng(streams[s]),
            halved=2 * s == n_players,
        )
        for s in range(1, len(counts))
        if counts[s]
    ]
    return np.concatenate([np.zeros((0, n_players), np.bool_), *parts])


# ----------------------------------------------------------------------------------------
# The pool of evaluated pairs, and what a model that is fitted to it returns

FOLDS = 4
"""Parts for cross-validation, of surrogates that have no shorter way to it."""

ROUNDING = 1e-12
"""Values count as the same up to this, relative to the largest."""

EXACT_FIT = 1e-5
"""A model fits a pair exactly if its error is no more than this, relative to the largest value.
Held-out residuals of smooth games are some 1e-4 and more; less is the jitter of an exact fit."""


class Rare(NamedTuple):
    """Pairs that do not have the usual value of their size, where there is such a one.

    Attributes
    ----------
    pairs
        Which pairs do not have the median of their size [m].
    usual
        Sizes of which half of the pairs or more, and at least two, have the median [n/2 + 1].
    share
        The share of the rare pairs among all of the sizes where there are some.
    nearest
        For each size, the nearest one with rare pairs [n/2 + 1].
    """

    pairs: BoolVector
    usual: BoolVector
    share: float
    nearest: IntVector

    def counted_at(self, s: int, sizes: IntVector) -> BoolVector:
        """Return which pairs of some sizes are evidence of how rare others are at the size s.

        These get rarer with the distance from the sizes where they were seen. So at a size without
        any, the pairs of all sizes from there to the next one with some count.
        """
        nearest = self.nearest[s]
        counted: BoolVector = sizes == s
        if nearest < s:
            counted = (nearest < sizes) & (sizes <= s)
        elif nearest > s:
            counted = (s <= sizes) & (sizes < nearest)
        return counted


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
        existing = [1, *(n_subsets(n, s, halved=2 * s == n) for s in range(1, n // 2 + 1))]
        pairs = zip(self.taken, existing, strict=True)
        return np.array([1 - int(taken) / all_ for taken, all_ in pairs])

    @cached_property
    def equal_by_size(self) -> bool:
        """Whether all pairs of a size that is not complete have the same value.

        Then the known pairs of such sizes show no difference between players.
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
        """Whether single players and the sizes determine the values of all pairs."""
        alone, n = self.sizes == 1, self.n_players
        if n < 3 or self.missing[1] > 0.0 or not self.missing.any():
            return False
        single = (self.signs[alone] > 0) == (2 * self.members[alone] < n)[:, None]
        smaller = np.where(2 * self.members[alone] > n, -self.odd[alone], self.odd[alone])
        straight = self.signs @ (single.T @ smaller) / 2
        off = np.abs(self._off_sizes(self.odd - straight))
        return bool(off.max() <= ROUNDING * np.abs(self.odd).max())

    @cached_property
    def surprise(self) -> float:
        """The mean square to expect of the next pair's error in a simple game; 0 in others.

        By Laplace's rule of succession, the next pair may be the first that breaks the pattern.
        If all pairs of a size are equal, it may have the opposite value. If all of them are 0, it
        may be as large as (N, ∅), or as any coalition. In an additive game its error may be as
        large as the differences between pairs of one size.
        """
        if self.equal_by_size:
            other_way = 2 * float(np.abs(self.odd[self._partly]).max(initial=0.0))
            swing = max(other_way, abs(float(self.odd[0]))) if self.odd.any() else self._range
            return swing**2 / (int(self._partly.sum()) + 1)
        return self._spread / (len(self.odd) + 1) if self.additive else 0.0

    def surprise_of_fit(self, residual: FloatVector) -> float:
        """Return the same for a model that fits all pairs of a game that is not simple; else 0.

        Only pairs of sizes that are not complete count. Some of them were needed to fit the model,
        so they prove less than those of an additive game, which single players determine.
        """
        counted = np.abs(residual)[self._partly]
        exact_fit = bool((counted <= EXACT_FIT * np.abs(self.odd).max()).all())
        return self._spread if exact_fit and not (self.equal_by_size or self.additive) else 0.0

    @cached_property
    def rare(self) -> Rare:
        """The pairs that differ from most of their size."""
        smaller = self._smaller(self.odd)
        off = np.zeros(len(smaller))
        for s in np.flatnonzero(self.taken[1:]) + 1:
            of_size = self.sizes == s
            off[of_size] = np.abs(smaller[of_size] - np.median(smaller[of_size]))
        pairs = off > ROUNDING * np.abs(self.odd).max()
        count = np.bincount(self.sizes[pairs], minlength=len(self.taken))
        usual = (self.taken >= 2) & (2 * count <= self.taken)
        all_, seen = np.arange(len(count)), np.flatnonzero(count)
        share = float(pairs.sum() / max(1, self.taken[seen].sum()))
        distance = np.abs(all_[:, None] - seen)
        nearest = seen[distance.argmin(axis=1)] if seen.size else all_
        return Rare(pairs, usual, share, nearest)

    @property
    def _spread(self) -> float:
        """How far pairs of one size are from each other: the mean square."""
        return float((self._off_sizes(self.odd)[1:] ** 2).mean())

    @property
    def _range(self) -> float:
        """How far a value is from that of the empty coalition, at most."""
        values = np.concatenate([self.inside, self.outside])
        return float(np.abs(values - self.outside[0]).max())

    def _off_sizes(self, odd: FloatVector) -> FloatVector:
        """Return the values of the smaller coalitions, less the mean of their size."""
        smaller = self._smaller(odd)
        sums = np.bincount(self.sizes, smaller, minlength=len(self.taken))
        off: FloatVector = smaller - (sums / np.maximum(1, self.taken))[self.sizes]
        return off

    def _smaller(self, odd: FloatVector) -> FloatVector:
        """Return the values of the smaller coalitions of the pairs."""
        smaller: FloatVector = np.where(2 * self.members > self.n_players, -odd, odd)
        return smaller

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


class Surrogate(NamedTuple):
    """A model of the odd part of a game, fitted to a pool.

    Attributes
    ----------
    values
        The Shapley values of the model [n].
    fitted
        The model at the coalitions of the pool [m].
    held_out
        The same, each by a fit that has not seen its pair [m].
    guarded
        Whether the fit is on its guard against few pairs: by a prior, or since it fits so little.
    """

    values: FloatVector
    fitted: FloatVector
    held_out: FloatVector
    guarded: bool = False


ShapleyFit = Callable[[Pool], tuple[Surrogate, ...]]
"""Fits one or several surrogates; none if the pool is too small for them."""
