"""Banzhaf interactions by least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.sampling.coins import fair_coalitions, least_squares
from coalitions.sampling.degree_two import n_coefficients
from coalitions.sampling.estimator import PAIR_ESTIMATORS, PairEstimator, Sampled
from coalitions.sampling.evaluator import Evaluator


@PAIR_ESTIMATORS.register("regression")
@dataclass(frozen=True)
class Regression(PairEstimator):
    """Coefficients of x_i x_j in the best approximation of v of degree two [Hammer1992]_.

    What single players and pairs explain is no noise here, so it needs the fewest samples; a
    2-additive game is fitted without error. The bias is of the order of 1 / budget.
    """

    indices: ClassVar[frozenset[str]] = frozenset({"banzhaf"})

    def minimum_budget(self, n_players: int) -> int:
        """Return more evaluations, in pairs, than there are coefficients."""
        return 2 * (n_coefficients(n_players) // 2 + 1)

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the coefficients, and their standard errors."""
        n = game.n_players
        coalitions = fair_coalitions(game.budget, n, np.random.default_rng(seed))
        values = game(coalitions)
        signs = np.where(coalitions, 1.0, -1.0)
        i, j = np.triu_indices(n, 1)
        design = np.column_stack([np.ones(len(values)), signs, signs[:, i] * signs[:, j]])
        coefficients, errors, freedom = least_squares(design, values)
        mean, stderr = np.zeros((n, n)), np.zeros((n, n))
        # A step from out (−1) to in (+1) of both players is four times the coefficient.
        mean[i, j] = mean[j, i] = 4 * coefficients[1 + n :]
        stderr[i, j] = stderr[j, i] = 4 * errors[1 + n :]
        return Sampled(mean, stderr, freedom)
