"""The Shapley value as a weighted least-squares fit of an additive game."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from coalitions.game import BoolMatrix, FloatVector
from coalitions.one_thread import one_blas_thread
from coalitions.sampling.estimator import Estimator


class RegressionEstimator(Estimator):
    """What estimators share that fit an additive game to pairs of complements."""

    unbiased: ClassVar[bool] = False
    axioms: ClassVar[frozenset[str]] = frozenset({"efficiency", "linearity"})
    stderr_means: ClassVar[str] = "sandwich estimate of least squares, right for large budgets"

    def minimum_budget(self, n_players: int) -> int:
        """Return both ends and n pairs, or all coalitions if that is less."""
        return min(2 + 2 * n_players, 1 << n_players)


@one_blas_thread()
def additive_fit(
    rows: BoolMatrix, odd: FloatVector, weights: FloatVector, total: float, spread: FloatVector
) -> tuple[FloatVector, FloatVector]:
    r"""Return the values that fit pairs of complements best, and their standard errors.

    The additive game of values φ has the odd part ½ z·φ, z = ±1. So with u = ½[v(S) − v(N∖S)]

    .. math:: \hat\phi = \arg\min_{\sum_i \phi_i = v(N) - v(\emptyset)}
              \sum_k w_k \big( u_k - \tfrac12 z_k \cdot \phi \big)^2 .

    The errors are the sandwich estimate: what each pair adds to the answer, squared and summed.

    Parameters
    ----------
    rows
        One coalition of each pair, [m, n].
    odd
        u of each pair.
    weights
        Weight of each pair.
    total
        v(N) − v(∅).
    spread
        Variance of how often a pair is in the sample, relative to independent draws: 1 for these,
        0 for a pair that is always there.
    """
    m, n = rows.shape
    signs = np.where(rows, 0.5, -0.5)
    middle = signs.mean(axis=1)
    target = odd - middle * total
    design = signs - middle[:, None]
    scaled = design * weights[:, None]
    # Singular by construction (rows sum to 0), and further if there are few pairs: the smallest
    # deviation from equal shares is taken.
    inverse = np.linalg.pinv(scaled.T @ design, rcond=1e-10, hermitian=True)
    deviation = inverse @ (scaled.T @ target)
    residual = target - design @ deviation
    influence = (scaled * residual[:, None]) @ inverse
    # n−1 directions are fitted; the residuals are that much too small.
    inflation = m / max(1, m - (n - 1))
    variance = inflation * (spread[:, None] * influence**2).sum(axis=0)
    return deviation + total / n, np.sqrt(variance)
