"""Games in which only numbers count, or numbers and what players add at the borders."""

from __future__ import annotations

import numpy as np

from coalitions.game import FloatVector
from coalitions.surrogates.pool import Pool
from coalitions.surrogates.surrogate import Surrogate


def equal(pool: Pool) -> tuple[Surrogate, ...]:
    """Return the game whose odd part is the mean of each size: all players get the same.

    It is what is left to say where a game looks like noise, as a vote does to a small sample.
    """
    n = pool.n_players
    fitted, held_out = means_of_sizes(pool, pool.odd)
    return (Surrogate(np.full(n, 2 * pool.odd[0] / n), fitted, held_out, guarded=True),)


def borders(pool: Pool) -> tuple[Surrogate, ...]:
    r"""Return the additive game of the single players, with a mean of each size besides.

    With all pairs of one player and the others, :math:`\phi_i - \phi_j = u(\{i\}) - u(\{j\})`
    in an additive game. What is left of the odd part is taken for a question of numbers.
    """
    n, alone = pool.n_players, pool.sizes == 1
    if n < 3 or pool.missing[1] > 0.0:
        return ()
    slopes = (pool.signs[alone] > 0).T @ pool.odd[alone]
    slopes += 2 * pool.odd[0] / n - slopes.mean()
    straight = pool.signs @ slopes / 2
    fitted, held_out = means_of_sizes(pool, pool.odd - straight)
    return (Surrogate(slopes, straight + fitted, straight + held_out, guarded=True),)


def means_of_sizes(pool: Pool, odd: FloatVector) -> tuple[FloatVector, FloatVector]:
    """Return the mean of an odd function at the sizes of all pairs, with and without the pair.

    The mean of a size is borrowed from its neighbours, as much as a pair is near: e^{-|s-t|}. That
    of size n/2 is 0, since a coalition and its complement are of the same size there.
    """
    n = pool.n_players
    s = np.arange(n // 2 + 1)
    near = np.exp(-np.abs(s[:, None] - s))
    inner = np.where(2 * s == n, 0.0, 1.0)
    smaller = np.where(2 * pool.members > n, -odd, odd)  # u of the smaller of the two
    sums = np.bincount(pool.sizes, smaller, minlength=len(s))
    weighted, weight = (near @ sums)[pool.sizes], (near @ pool.taken)[pool.sizes]
    sign = np.where(2 * pool.members > n, -1.0, 1.0) * inner[pool.sizes]
    fitted = sign * weighted / weight
    held_out = sign * (weighted - smaller) / np.maximum(1e-9, weight - 1)
    held_out[0] = fitted[0] = odd[0]
    return fitted, held_out
