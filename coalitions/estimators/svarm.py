"""Stratified SVARM: every evaluation counts for every player."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np

from coalitions.game import BoolMatrix, FloatVector, IntVector
from coalitions.one_thread import one_blas_thread
from coalitions.sampling.estimator import ESTIMATORS, Estimator, Sampled
from coalitions.sampling.evaluator import Evaluator


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
