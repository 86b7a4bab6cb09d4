"""Stratified sampling: a mean for each size of coalition, by player or by pair."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import ClassVar, NamedTuple

import numpy as np

from coalitions.game import BoolMatrix, FloatMatrix, FloatVector, IntVector
from coalitions.runtime import one_blas_thread
from coalitions.values.budget import Evaluator
from coalitions.values.designs import BLOCK, is_fitted
from coalitions.values.estimator import (
    ESTIMATORS,
    PAIR_ESTIMATORS,
    Estimator,
    PairEstimator,
    Sampled,
)

# ----------------------------------------------------------------------------------------
# Shapley values: marginal contributions for each player and each size

FEWEST = 2
"""Samples of a stratum from which its variance can be estimated."""


@ESTIMATORS.register("stratified")
@dataclass(frozen=True)
class Stratified(Estimator):
    r"""Stratified sampling [Maleki2013]_ [Castro2017]_.

    .. math:: \hat\phi_i = \frac1n \sum_{s=0}^{n-1} \frac1k \sum_{r=1}^k
              \big[ v(S_{isr} \cup \{i\}) - v(S_{isr}) \big]

    with :math:`S_{isr}` uniform among the coalitions of size s without i. Sizes 0 and n−1 have one
    coalition each and are exact. Each of the n(n−2) other strata needs two samples of two
    evaluations, so this is for small games with large budgets.
    """

    unbiased: ClassVar[bool] = True
    axioms: ClassVar[frozenset[str]] = frozenset({"null player", "linearity"})
    stderr_means: ClassVar[str] = "standard deviation from the variances of independent strata"

    def minimum_budget(self, n_players: int) -> int:
        """Return the cost of two samples in every stratum, or all coalitions if that is less."""
        return min(_cost(n_players, FEWEST), 1 << n_players)

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return mean and standard error over the strata."""
        n = game.n_players
        count = max(FEWEST, _affordable(n, game.budget))
        empty, grand = game.ends
        alone, together = game(np.concatenate([np.eye(n) == 1, np.eye(n) == 0])).reshape(2, n)
        total = (alone - empty) + (grand - together)
        if n == 2:
            return Sampled(total / n, np.zeros(n))
        means, variances = _sampled_strata(game, count, seed)
        values = (total + means.sum(axis=1)) / n
        errors = np.sqrt(variances.sum(axis=1) / count) / n
        return Sampled(values, errors, (count - 1) * (n - 2))


def _cost(n: int, count: int) -> int:
    """Return the most evaluations that `count` samples in each stratum take."""
    return 2 + 2 * n + 2 * n * (n - 2) * count


def _affordable(n: int, budget: int) -> int:
    if budget >= 1 << n:
        return budget // (n * n) + 1  # no number of samples can exceed the budget
    return (budget - 2 - 2 * n) // (2 * n * (n - 2))


def _sampled_strata(
    game: Evaluator, count: int, seed: int
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float64]], ...]:
    """Return mean and variance of the marginals in each stratum (player, size 1 … n−2)."""
    n = game.n_players
    rng = np.random.default_rng(seed)
    sizes = np.arange(1, n - 1)
    per_call = max(1, BLOCK * BLOCK // (n * n))
    marginals = np.empty((count, n, n - 2))
    for start in range(0, count, per_call):
        rows = np.stack([_stratum_rows(n, sizes, rng) for _ in range(min(per_call, count - start))])
        joined = rows | np.eye(n, dtype=np.bool_)[:, None, :]
        both = game(np.stack([rows, joined]).reshape(-1, n)).reshape(2, *rows.shape[:3])
        marginals[start : start + len(rows)] = both[1] - both[0]
    return marginals.mean(axis=0), marginals.var(axis=0, ddof=1)


def _stratum_rows(
    n: int, sizes: np.ndarray[tuple[int], np.dtype[np.int64]], rng: np.random.Generator
) -> np.ndarray[tuple[int, int, int], np.dtype[np.bool_]]:
    """Return one coalition of each size without each player, [n, n−2, n]."""
    keys = rng.random((n, len(sizes), n))
    keys[np.arange(n), :, np.arange(n)] = 2.0  # the player comes last: never among the chosen
    rank = keys.argsort(axis=2).argsort(axis=2)
    return np.asarray(rank < sizes[None, :, None])


# ----------------------------------------------------------------------------------------
# Stratified SVARM: every evaluation counts for every player


@ESTIMATORS.register("svarm")
@dataclass(frozen=True)
class Svarm(Estimator):
    r"""Stratified SVARM [Kolpaczki2024]_.

    The Shapley value is a difference of means over strata, and a coalition of size s tells
    something of all n players: of its members' :math:`\phi^+_{i,s}`, of the others'
    :math:`\phi^-_{i,s}`.

    .. math:: \phi_i = \frac1n \sum_{s=0}^{n-1} \big( \phi^+_{i,s+1} - \phi^-_{i,s} \big), \quad
              \phi^\pm_{i,s} = E\big[ v(S) : |S| = s,\ i \in S \text{ resp. } i \notin S \big]

    Sizes 0, 1, n−1 and n are evaluated completely. A warm-up partitions the players at random into
    groups, for each size, so that every stratum has a sample. Then sizes take turns and coalitions
    are drawn uniformly.
    """

    unbiased: ClassVar[bool] = True
    axioms: ClassVar[frozenset[str]] = frozenset({"linearity"})
    stderr_means: ClassVar[str] = "standard deviation from the variances of independent strata"

    def minimum_budget(self, n_players: int) -> int:
        """Return the sizes that are complete and the warm-up, or all coalitions if less."""
        return min(_complete(n_players) + _warm_up_cost(n_players), 1 << n_players)

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the differences of stratum means and their standard errors."""
        n = game.n_players
        empty, grand = game.ends
        borders = np.concatenate([np.eye(n) == 1, np.eye(n) == 0])
        alone, without = game(borders).reshape(2, n)
        # Members' strata 1 … n and the others' strata 0 … n−1, of the sizes known completely.
        total = alone + grand - empty
        variance = np.zeros(n)
        if n == 2:
            return Sampled((total - alone[::-1]) / n, variance)
        total += (without.sum() - without) / (n - 1)  # size n−1, with i
        total -= (alone.sum() - alone) / (n - 1) + without  # size 1 and size n−1, without i
        streams = np.random.SeedSequence(seed).spawn(2)
        warm, members = _warm_up(n, np.random.default_rng(streams[0]))
        n_draws = _affordable_draws(n, game.budget) if n > 3 else 0
        drawn = _draws(n, n_draws, np.random.default_rng(streams[1]))
        values = game(np.concatenate([warm, drawn]))
        # In the warm-up only the partition's own members count, or the filled-up rest would weigh
        # more; a draw counts for everybody.
        plus = np.concatenate([members & warm, drawn])
        minus = np.concatenate([members & ~warm, ~drawn])
        sizes = np.concatenate([warm, drawn]).sum(axis=1)
        for s in range(2, n - 1):
            at = sizes == s
            spread = float(values[at].var(ddof=1)) if at.sum() > 1 else 0.0
            mean, error = _strata(values[at], plus[at], spread)
            total += mean
            variance += error
            mean, error = _strata(values[at], minus[at], spread)
            total -= mean
            variance += error
        return Sampled(total / n, np.sqrt(variance) / n)


def _complete(n: int) -> int:
    """Return the number of coalitions of sizes 0, 1, n−1 and n."""
    return 4 if n == 2 else 2 + 2 * n


def _warm_up_cost(n: int) -> int:
    return sum(_warm_up_rows(n, s) for s in range(2, n - 1))


def _warm_up_rows(n: int, s: int) -> int:
    """Return the number of coalitions of size s in the warm-up."""
    return -(-n // s) + -(-n // (n - s))


def _affordable_draws(n: int, budget: int) -> int:
    """Return the most draws that cannot exceed the budget; it does not depend on the draws."""

    def cost(count: int) -> int:
        per_size = -(-count // (n - 3))
        return _complete(n) + sum(
            min(_warm_up_rows(n, s) + per_size, comb(n, s)) for s in range(2, n - 1)
        )

    low, high = 0, budget
    if cost(high) <= budget:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(middle) <= budget else (low, middle)
    return low


def _warm_up(n: int, rng: np.random.Generator) -> tuple[BoolMatrix, BoolMatrix]:
    """Return coalitions where each player is once in and once out at each size, and who counts."""
    rows: list[BoolMatrix] = []
    counting: list[BoolMatrix] = []
    for s in range(2, n - 1):
        for group_size, inside in ((s, True), (n - s, False)):
            order = rng.permutation(n)
            for start in range(0, n, group_size):
                own = order[start : start + group_size]
                rest = np.concatenate([order[start + group_size :], order[:start]])
                fill = rng.permutation(rest)[: group_size - len(own)]
                row = np.full(n, not inside)
                row[own] = row[fill] = inside
                counts = np.zeros(n, np.bool_)
                counts[own] = True
                rows.append(row)
                counting.append(counts)
    shape = (-1, n)
    return np.array(rows, np.bool_).reshape(shape), np.array(counting, np.bool_).reshape(shape)


def _draws(n: int, count: int, rng: np.random.Generator) -> BoolMatrix:
    """Return uniform coalitions of the sizes 2 … n−2, which take turns."""
    sizes: IntVector = 2 + np.arange(count) % max(1, n - 3)
    # Sizes far apart follow each other, so that a small budget meets all sorts of sizes.
    sizes = 2 + ((sizes - 2) * _stride(n - 3)) % max(1, n - 3)
    rank = rng.random((count, n)).argsort(axis=1).argsort(axis=1)
    return np.asarray(rank < sizes[:, None])


def _stride(n: int) -> int:
    """Return a number near the golden section of n that has no divisor in common with it."""
    stride = max(1, round(0.618 * n))
    while np.gcd(stride, max(1, n)) > 1:
        stride += 1
    return stride


@one_blas_thread()
def _strata(values: FloatVector, counts: BoolMatrix, spread: float) -> tuple[FloatVector, ...]:
    """Return the mean of each player's stratum and the variance of that mean.

    A stratum with a single sample has the variance of all coalitions of its size.
    """
    weights = counts.astype(np.float64)
    number = weights.sum(axis=0)
    mean = values @ weights / number
    squares = ((values[:, None] - mean) ** 2 * weights).sum(axis=0)
    variance = np.where(number > 1, squares / np.maximum(1.0, number - 1), spread)
    return mean, variance / number


# ----------------------------------------------------------------------------------------
# Shapley interactions by size, with a model that takes most of the noise away


@PAIR_ESTIMATORS.register("stratified")
@dataclass(frozen=True)
class StratifiedPairs(PairEstimator):
    r"""Means by size of what a fitted model of sizes, players and pairs leaves over.

    With means over the coalitions of size u that hold both players, one of them or none,

    .. math:: I_{ij} = \frac{1}{n-1} \sum_u \big[ \bar v_u(ij) - \bar v_u(i \bar j)
        - \bar v_u(\bar i j) + \bar v_u(\bar i \bar j) \big],

    every coalition counts for every pair (as in SVARM-IQ [Kolpaczki2024b]_). The means are
    taken of what a fitted model leaves over: a value for every size, every player and, if there
    are enough evaluations, every pair, whose own interactions are known. Small and large sizes
    are evaluated completely where they are few. A 2-additive game is found without error once
    pairs are fitted. The bias is of the order of 1 / budget.
    """

    indices: ClassVar[frozenset[str]] = frozenset({"shapley"})

    def minimum_budget(self, n_players: int) -> int:
        """Return two coalitions of every size but the empty and the grand one, and those two."""
        return 2 * n_players

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return what the samples of all sizes together say of every pair."""
        samples = _by_size(game.n_players, game.budget, np.random.default_rng(seed))
        members = np.concatenate([sample.coalitions for sample in samples])
        return _by_strata(samples, members, game(members))


class SizeSample(NamedTuple):
    """Coalitions of one size, and whether they are all of them."""

    coalitions: BoolMatrix
    complete: bool


@one_blas_thread()
def _by_strata(samples: list[SizeSample], members: BoolMatrix, values: FloatVector) -> Sampled:
    """Return what the values of all samples together say of every pair."""
    n = members.shape[1]
    design = _model(members)
    # Sizes, players and pairs overlap (all three can say "two more"); any best fit will do.
    lengths, axes = np.linalg.eigh(design.T @ design)
    kept = lengths > 1e-10 * lengths[-1]
    fit = (axes[:, kept] / lengths[kept]) @ (axes[:, kept].T @ (design.T @ values))
    residual = values - design @ fit
    by_size, by_pair = fit[: n + 1], fit[2 * n + 1 :]
    mean = np.full((n, n), (by_size[2:] - 2 * by_size[1:-1] + by_size[:-2]).mean())
    if len(by_pair):
        i, j = np.triu_indices(n, 1)
        mean[i, j] += by_pair
        mean[j, i] += by_pair
    freedom = max(1, len(values) - int(kept.sum()))
    # The noise is that of values the model has not seen: residuals over the share that is free.
    unseen = (len(values) / freedom) ** 2
    variance = np.zeros((n, n))
    ends = np.cumsum([len(sample.coalitions) for sample in samples])
    for size, (sample, rest) in enumerate(zip(samples, np.split(residual, ends), strict=False)):
        inside, outside = sample.coalitions.astype(float), (~sample.coalitions).astype(float)
        both, both_share = _stratum(inside, inside, rest)
        one, one_share = _stratum(inside, outside, rest)
        none, none_share = _stratum(outside, outside, rest)
        mean += (both - one - one.T + none) / (n - 1)
        if not sample.complete:
            noise = unseen * float(rest @ rest) / len(rest)
            share = (size >= 2) * both_share + (size <= n - 2) * none_share
            variance += noise * (share + one_share + one_share.T) / (n - 1) ** 2
    return Sampled(mean, np.sqrt(variance), freedom)


def _by_size(n_players: int, budget: int, rng: np.random.Generator) -> list[SizeSample]:
    """Return coalitions of every size from 0 to n: all of them, or equally many of each.

    Sizes are completed from both ends inwards as long as an equal share of the budget pays for it.
    """
    left, sizes = budget, list(range(n_players + 1))
    samples: dict[int, SizeSample] = {}
    while sizes and comb(n_players, sizes[0]) <= left // len(sizes):
        for size in dict.fromkeys((sizes[0], sizes[-1])):
            rows = np.zeros((comb(n_players, size), n_players), np.bool_)
            listed = combinations(range(n_players), size)
            for row, coalition in zip(rows, listed, strict=True):
                row[list(coalition)] = True
            samples[size] = SizeSample(rows, True)
            sizes.remove(size)
            left -= len(rows)
    for place, size in enumerate(sizes):
        count = left // len(sizes) + (place < left % len(sizes))
        rank = rng.permuted(np.tile(np.arange(n_players), (count, 1)), axis=1)
        samples[size] = SizeSample(rank < size, False)
    return [samples[size] for size in range(n_players + 1)]


def _model(members: BoolMatrix) -> FloatMatrix:
    """Return the columns of the model: sizes, players and, if there are rows enough, pairs."""
    m, n = members.shape
    centred = members - 0.5
    columns = [np.eye(n + 1)[members.sum(axis=1)], centred]
    if is_fitted(n, m):
        i, j = np.triu_indices(n, 1)
        columns.append(centred[:, i] * centred[:, j])
    return np.column_stack(columns)


def _stratum(
    left: FloatMatrix, right: FloatMatrix, values: FloatVector
) -> tuple[FloatMatrix, FloatMatrix]:
    """Return the mean of the values where i is on the left and j on the right, and 1 / count.

    Where there are none the mean is 0: the model's word stands, with the doubt of one value.
    """
    count = np.maximum(left.T @ right, 1.0)
    return (left.T * values) @ right / count, 1 / count
