"""Banzhaf values by maximum sample reuse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.one_thread import one_blas_thread
from coalitions.sampling.coins import fair_coalitions
from coalitions.sampling.estimator import SEMIVALUE_ESTIMATORS, Sampled, SemivalueEstimator
from coalitions.sampling.evaluator import Evaluator


@SEMIVALUE_ESTIMATORS.register("msr")
@dataclass(frozen=True, eq=False)
class SampleReuse(SemivalueEstimator):
    """The mean value of sampled coalitions with the player minus the mean without [WangJ2023]_.

    Every sample counts for every player. The samples are balanced: each player is in exactly half
    of them.
    """

    banzhaf_only: ClassVar[bool] = True

    def minimum_budget(self, n_players: int) -> int:
        """Return two coalitions with each player and two without."""
        return 4

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return differences of means, and their standard errors."""
        half = game.budget // 2
        coalitions = fair_coalitions(game.budget, game.n_players, np.random.default_rng(seed))
        values = game(coalitions)
        centred = values - values.mean()
        squares = centred**2
        with one_blas_thread():
            inside = centred @ coalitions / half
            outside = centred @ ~coalitions / half
            spread = (squares @ coalitions + squares @ ~coalitions) / half - inside**2 - outside**2
        # Both halves have sample variances with half − 1 in the denominator.
        stderr = np.sqrt(np.maximum(0.0, spread) / (half - 1))
        return Sampled(inside - outside, stderr, 2.0 * (half - 1))
