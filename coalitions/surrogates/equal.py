"""A game in which only numbers count."""

from __future__ import annotations

import numpy as np

from coalitions.surrogates.pool import Pool
from coalitions.surrogates.surrogate import Surrogate


def equal(pool: Pool) -> tuple[Surrogate, ...]:
    """Return the game whose odd part is the mean of each size: all players get the same.

    It is what is left to say where a game looks like noise, as a vote does to a small sample. The
    mean of a size is borrowed from its neighbours, as much as a pair is near: e^{-|s-t|}. That of
    size n/2 is 0, since a coalition and its complement are of the same size there.
    """
    n = pool.n_players
    s = np.arange(n // 2 + 1)
    near = np.exp(-np.abs(s[:, None] - s))
    inner = np.where(2 * s == n, 0.0, 1.0)
    smaller = np.where(2 * pool.members > n, -pool.odd, pool.odd)  # u of the smaller of the two
    sums = np.bincount(pool.sizes, smaller, minlength=len(s))
    weighted, weight = (near @ sums)[pool.sizes], (near @ pool.taken)[pool.sizes]
    sign = np.where(2 * pool.members > n, -1.0, 1.0) * inner[pool.sizes]
    fitted = sign * weighted / weight
    held_out = sign * (weighted - smaller) / np.maximum(1e-9, weight - 1)
    held_out[0] = fitted[0] = pool.odd[0]
    return (Surrogate(np.full(n, 2 * pool.odd[0] / n), fitted, held_out),)
