"""Shapley interactions by size, with a model that takes most of the noise away."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import ClassVar, NamedTuple

import numpy as np

from coalitions.game import BoolMatrix, FloatMatrix, FloatVector
from coalitions.one_thread import one_blas_thread
from coalitions.sampling.degree_two import is_fitted
from coalitions.sampling.estimator import PAIR_ESTIMATORS, PairEstimator, Sampled
from coalitions.sampling.evaluator import Evaluator


@PAIR_ESTIMATORS.register("stratified")
@dataclass(frozen=True)
class Stratified(PairEstimator):
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
