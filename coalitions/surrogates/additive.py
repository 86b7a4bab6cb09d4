"""The additive game that fits best: least squares on pairs of complements."""

from __future__ import annotations

import numpy as np

from coalitions.surrogates.pool import Pool
from coalitions.surrogates.surrogate import Surrogate

SPARE_PAIRS = 4
"""Pairs over the number of players without which the fit says nothing."""


def additive(pool: Pool) -> tuple[Surrogate, ...]:
    r"""Return the game of values φ, whose odd part is ½ z·φ, with the right sum.

    Pairs are weighed as in the regression whose solution the Shapley value is; what a pair's own
    value adds to the fit there is known, so leaving it out takes no second fit.
    """
    n, s = pool.n_players, pool.sizes[1:]
    if len(s) < n + SPARE_PAIRS:
        return ()
    total = 2 * pool.odd[0]
    signs = pool.signs / 2
    middle = signs.mean(axis=1)
    design = signs - middle[:, None]
    target = pool.odd - middle * total
    halves = np.where(2 * s == n, 0.5, 1.0)
    weights = np.concatenate([[0.0], halves / (s * (n - s)) / pool.taken[s]])
    scaled = design * weights[:, None]
    inverse = np.linalg.pinv(scaled.T @ design, rcond=1e-10, hermitian=True)
    deviation = inverse @ (scaled.T @ target)
    fitted = design @ deviation
    leverage = np.einsum("ij,ij->i", scaled @ inverse, design)
    if leverage.max() > 1 - 1e-6:  # a pair that alone settles a value has no held-out guess
        return ()
    held_out = target - (target - fitted) / (1 - leverage)
    back = middle * total
    return (Surrogate(deviation + total / n, fitted + back, held_out + back),)
