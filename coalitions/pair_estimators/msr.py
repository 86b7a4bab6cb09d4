"""Banzhaf interactions by maximum sample reuse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.one_thread import one_blas_thread
from coalitions.sampling.coins import fair_coalitions
from coalitions.sampling.estimator import PAIR_ESTIMATORS, PairEstimator, Sampled
from coalitions.sampling.evaluator import Evaluator


@PAIR_ESTIMATORS.register("msr")
@dataclass(frozen=True)
class SampleReuse(PairEstimator):
    r"""The mean over sampled coalitions of :math:`4 ε_i ε_j v(S)`, with ε = ±1 for in and out.

    Unbiased but for the mean value, which is subtracted first.
    """

    indices: ClassVar[frozenset[str]] = frozenset({"banzhaf"})

    def minimum_budget(self, n_players: int) -> int:
        """Return eight coalitions, so that there is a spread."""
        return 8

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return mean products of signs and values, and their standard errors."""
        coalitions = fair_coalitions(game.budget, game.n_players, np.random.default_rng(seed))
        values = game(coalitions)
        centred = values - values.mean()
        signs = np.where(coalitions, 1.0, -1.0)
        m = len(values)
        with one_blas_thread():
            mean = 4 * (signs.T * centred) @ signs / m
        # (4 ε_i ε_j v)² does not depend on the pair: only the mean that is subtracted does.
        square = 16 * float((centred**2).sum()) / m
        stderr = np.sqrt(np.maximum(0.0, square - mean**2) / (m - 1))
        return Sampled(mean, stderr, m - 1)
