"""Banzhaf values by least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.sampling.coins import fair_coalitions, least_squares
from coalitions.sampling.estimator import SEMIVALUE_ESTIMATORS, Sampled, SemivalueEstimator
from coalitions.sampling.evaluator import Evaluator


@SEMIVALUE_ESTIMATORS.register("regression")
@dataclass(frozen=True, eq=False)
class Regression(SemivalueEstimator):
    """Coefficients of the best linear approximation of v [Hammer1992]_, fitted to samples.

    What the other players explain is no noise here. The bias is of the order of 1 / budget.
    """

    banzhaf_only: ClassVar[bool] = True

    def minimum_budget(self, n_players: int) -> int:
        """Return more evaluations, in pairs, than there are coefficients."""
        return 2 * ((n_players + 1) // 2 + 1)

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the coefficients, and their standard errors."""
        coalitions = fair_coalitions(game.budget, game.n_players, np.random.default_rng(seed))
        values = game(coalitions)
        signs = np.where(coalitions, 1.0, -1.0)
        design = np.column_stack([np.ones(len(values)), signs])
        coefficients, errors, freedom = least_squares(design, values)
        # A step from out (−1) to in (+1) is twice the coefficient.
        return Sampled(2 * coefficients[1:], 2 * errors[1:], freedom)
