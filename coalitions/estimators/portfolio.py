"""Several surrogates on one pool of coalitions, mixed by their held-out errors and corrected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.one_thread import one_blas_thread
from coalitions.sampling.estimator import ESTIMATORS, Estimator, Sampled
from coalitions.sampling.evaluator import Evaluator
from coalitions.sampling.pairs import random_pairs
from coalitions.surrogates.additive import additive
from coalitions.surrogates.equal import borders, equal
from coalitions.surrogates.pool import Pool
from coalitions.surrogates.process import process
from coalitions.surrogates.surrogate import Fit, left_over, mixed
from coalitions.surrogates.trees import trees

CAUTION = 1.5
"""Factor on the variance: the same pairs choose the surrogates and tell how good they are."""


@ESTIMATORS.register("portfolio")
@dataclass(frozen=True)
class Portfolio(Estimator):
    r"""The Shapley values of a mixture of surrogates, corrected by what it misses.

    Pairs (S, N∖S) are drawn without replacement, of all sizes, and of single players all there are.
    Each surrogate f is fitted to all of them and tells besides what it would have said of each
    pair without having seen it. The mixture has the least error on such held-out pairs. Then

    .. math:: \hat\phi = \phi(f) + \sum_{S \text{ in the pool}} w(S) [u(S) - f(S)]
              + \lambda\,c, \quad \lambda = \max(0, 1 - \sum_i V_i / |c|^2),

    with the weights w(S) of the odd part u in the Shapley value: what was evaluated counts as it
    is, and the surrogate speaks for the rest. The correction c is the unbiased estimate, size by
    size, of what it gets wrong there, from held-out residuals, and V is its variance. A surrogate
    that is as good as it seems makes c mere noise, and λ is near 0; one that is systematically
    wrong makes λ tend to 1. So a bad surrogate costs evaluations, not correctness. With all pairs
    the values are exact.

    Attributes
    ----------
    surrogates
        The fits; the mixture has a head start for those of their surrogates that are guarded.
    """

    surrogates: tuple[Fit, ...] = (process, additive, trees, equal, borders)

    unbiased: ClassVar[bool] = False
    axioms: ClassVar[frozenset[str]] = frozenset({"efficiency"})
    stderr_means: ClassVar[str] = (
        "standard deviation of the correction by held-out pairs as if it were made in full, with"
        " what was left uncorrected and some caution: intervals tend to be too wide"
    )

    def __post_init__(self) -> None:
        if not self.surrogates:
            raise InvalidInputError("a portfolio needs at least one surrogate")

    def minimum_budget(self, n_players: int) -> int:
        """Return 4: both ends and one pair."""
        del n_players
        return 4

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the corrected values of the mixture and their standard errors."""
        import scipy.linalg  # noqa: F401 (before its threads are limited)

        n = game.n_players
        ends = game.ends
        rows = random_pairs(n, (game.budget - 2) // 2, seed, borders=True)
        pool = Pool.of(rows, game(np.concatenate([rows, ~rows])), ends, seed)
        few = 1 + n / max(1, len(rows))  # few pairs say little about their spread
        if not pool.odd.any():
            _, variance = left_over(pool, pool.odd)
            return Sampled(np.zeros(n), np.sqrt(CAUTION * variance * few), len(rows))
        with one_blas_thread():
            model = mixed(pool, [one for fit in self.surrogates for one in fit(pool)])
            values = model.values + (pool.odd - model.fitted) @ pool.shares
            values += (2 * pool.odd[0] - values.sum()) / n
            correction, variance = left_over(pool, pool.odd - model.held_out)
        size = float(correction @ correction)
        factor = max(0.0, 1 - float(variance.sum()) / size) if size > 0.0 else 0.0
        values += factor * correction
        # What was not corrected may be an error.
        doubt = CAUTION * variance + ((1 - factor) * correction) ** 2
        return Sampled(values, np.sqrt(doubt * few), len(rows))
