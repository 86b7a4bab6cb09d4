"""LeverageSHAP: least squares on distinct pairs, spread evenly over the sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coalitions.sampling.estimator import ESTIMATORS, Sampled
from coalitions.sampling.evaluator import Evaluator
from coalitions.sampling.pairs import random_pairs
from coalitions.sampling.regression import RegressionEstimator, additive_fit
from coalitions.sampling.subsets import n_subsets


@ESTIMATORS.register("leverage")
@dataclass(frozen=True)
class LeverageShap(RegressionEstimator):
    r"""Leverage-score sampling for the Shapley regression [Musco2025]_.

    The leverage score of a coalition is proportional to :math:`\binom{n}{|S|}^{-1}`, so every size
    gets the same number of coalitions. They are drawn without replacement and in pairs, and the
    fit weighs each by its kernel weight over its chance to be drawn. With all pairs it is exact.
    """

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the constrained least-squares fit and its standard errors."""
        n = game.n_players
        empty, grand = game.ends
        rows = random_pairs(n, (game.budget - 2) // 2, seed)
        values = game(np.concatenate([rows, ~rows])).reshape(2, -1)
        size = rows.sum(axis=1)
        taken = np.bincount(size, minlength=n // 2 + 1)
        there = [n_subsets(n, s, halved=2 * s == n) if s else 1 for s in range(n // 2 + 1)]
        chance = np.array([min(1.0, int(t) / all_) for t, all_ in zip(taken, there, strict=True)])
        # A size's pairs share its kernel weight 1/(s(n−s)); the pairs of size n/2 have half of it.
        halves = np.where(2 * size == n, 0.5, 1.0)
        weights = halves / (size * (n - size)) / taken[size]
        odd = (values[0] - values[1]) / 2
        fit = additive_fit(rows, odd, weights, grand - empty, 1 - chance[size])
        return Sampled(*fit, max(1, len(rows) - n + 1))
