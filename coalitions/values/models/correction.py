r"""The error of models on pairs that they have not seen, and the index of that error.

Models are fitted to a pool of pairs (S, N∖S). Let e(U) be the error of a guess of v(U) by models
that have not seen U, and w(U) the weight of U in the index, times the number of coalitions of its
size. The pool has m_s pairs of the size s, a simple random sample, and the share M_s of them is
missing. The index of the missing errors is estimated without bias by

.. math:: \sum_s \frac{h_s M_s}{m_s} \sum_{(S, N \setminus S)} [w(S)\,e(S)
    + w(N \setminus S)\,e(N \setminus S)],

where h_s is 1/2 if s is n/2, as a pair holds both coalitions then, and 1 otherwise.

Adding it to the index of the models corrects their bias.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np

from coalitions.game import FloatMatrix, FloatVector
from coalitions.values.designs import Pool
from coalitions.values.interaction_indices import (
    blocks_of_weights,
    coalitions_of_size,
    coefficients,
)

PRIOR_PAIRS = 2.0
"""How many pairs the variance of all sizes counts for in that of a single one."""


CENTRED_FROM = 4
"""Pairs of a size from which its mean residual is taken out first."""


class Correction(NamedTuple):
    """An unbiased estimate of the index of the errors outside the pool, and its variance."""

    values: FloatVector
    variance: FloatVector


def importance_of(masses: dict[int, FloatVector], n: int) -> FloatVector:
    """Return the importance of the pairs of each size 0 … n/2.

    It is the mean over coalitions U of the square of U's weight, times the number of U: to draw in
    proportion to its root makes the variance of a sum over strata least. Each order is scaled to a
    largest importance of 1.
    """
    total = np.zeros(n + 1)
    for size, mass in masses.items():
        squares = mean_squares(coefficients(mass, size, n))
        total += squares / max(squares.max(), 1e-300)
    pairs: FloatVector = (total + total[::-1])[: n // 2 + 1]
    if n % 2 == 0:
        pairs[-1] /= 4  # a pair holds both coalitions of it, and there are half as many pairs
    return pairs


def mean_squares(table: FloatMatrix) -> FloatVector:
    """Return the mean square of the weights of all coalitions of each size [n + 1]."""
    return _means(table**2)


def _means(table: FloatMatrix) -> FloatVector:
    """Return the mean over all coalitions of each size of a table [members in S, size]."""
    size, n = table.shape[0] - 1, table.shape[1] - 1
    chance = np.zeros_like(table)
    for inside in range(size + 1):
        for u in range(inside, n - size + inside + 1):
            # hypergeometric: of a coalition of u players, so many are among the members of S
            chance[inside, u] = comb(size, inside) * comb(n - size, u - inside) / comb(n, u)
    means: FloatVector = (chance * table).sum(axis=0)
    return means


def correction(
    pool: Pool, mass: FloatVector, size: int, inside: FloatVector, outside: FloatVector
) -> Correction:
    """Return the index of the residual outside the pool, for all coalitions of a size.

    Parameters
    ----------
    pool
        The pairs; those of a size are a simple random sample, so each stands for as many as there
        are over how many were drawn.
    mass, size
        The weights of the index for coalitions of this size.
    inside, outside
        Residuals of held-out guesses at S and at N∖S, for all pairs of the pool.
    """
    n = pool.n_players
    table = coefficients(mass, size, n)
    squares, means = mean_squares(table), _means(table)
    rows = pool.signs[1:] > 0  # the pair of nobody and everybody comes first and has no error
    members, pair = pool.members[1:], pool.sizes[1:]
    residual = np.array([inside[1:], outside[1:]])  # e(S), e(N∖S)
    sampled = [s for s in range(1, n // 2 + 1) if pool.taken[s] and pool.missing[s] > 0]
    usual = _usual(pool, residual)

    # 1. The mean error of each size: it adds the same to all coalitions of the index.
    shared_value, shared_variance = 0.0, 0.0
    factor = np.zeros(len(pair))  # h_s M_s of each pair; divided by m_s in step 2
    centred = residual.copy()
    for s in range(1, n // 2 + 1):
        half = _half(s, n)
        prior = half**2 * (squares[s] + squares[n - s]) * usual
        if pool.missing[s] == 0.0:
            continue  # every pair of this size is in the pool
        if not pool.taken[s]:  # nothing is known: the variance that a single pair would leave
            shared_variance += prior
            continue
        of_size, m = pair == s, int(pool.taken[s])
        factor[of_size] = pool.missing[s] * half
        if m >= CENTRED_FROM:
            # The mean error of a size is a game of numbers. Its index needs no sample: it is the
            # mean times the mean weight. The rest varies less.
            if 2 * s == n:
                common = np.full(2, residual[:, of_size].mean())
                side_of_first = np.zeros(m, np.int64)
            else:
                # side 0 has s members, side 1 has n − s; S may be either
                large = members[of_size] > s
                swapped = residual[::-1, of_size]
                common = np.where(large, swapped, residual[:, of_size]).mean(axis=1)
                side_of_first = np.where(large, 1, 0)
            for side, u in enumerate((s, n - s)):
                shared_value += pool.missing[s] * half * common[side] * means[u]
            centred[0, of_size] -= common[side_of_first]
            centred[1, of_size] -= common[1 - side_of_first]
            factor[of_size] *= m / (m - 1)  # the sample's own mean was taken out

    count = comb(n, size)
    values, variance = np.full(count, shared_value), np.full(count, shared_variance)
    if not sampled:
        return Correction(values, variance)

    # 2. The sum over the sampled pairs, for some coalitions of the index at a time. The pool's
    # pairs are sorted by size, so those of a size are one slice.
    starts = np.searchsorted(pair, sampled)
    known = np.isin(pair, sampled)
    taken = pool.taken[sampled].astype(float)[:, None]  # m_s
    missing = pool.missing[sampled][:, None]  # M_s
    priors = np.array([_half(s, n) ** 2 * (squares[s] + squares[n - s]) * usual for s in sampled])[
        :, None
    ]
    coalitions = coalitions_of_size(n, size)
    weights_of_first = blocks_of_weights(table, coalitions, rows)
    weights_of_second = blocks_of_weights(table, coalitions, ~rows)
    for (part, first), (_, second) in zip(weights_of_first, weights_of_second, strict=True):
        each = (first * centred[0][:, None] + second * centred[1][:, None]) * factor[:, None]
        each[~known] = 0.0
        sums = np.add.reduceat(each, starts, axis=0)
        values[part] += (sums / taken).sum(axis=0)
        # M²/m times the mean square of a pair's share, shrunk towards the prior when m is small
        power = np.add.reduceat(each**2, starts, axis=0) / missing**2
        spread = (power + PRIOR_PAIRS * priors) / (taken + PRIOR_PAIRS)
        variance[part] += (missing * spread / taken).sum(axis=0)
    return Correction(values, variance)


def _half(s: int, n: int) -> float:
    """Return h_s: 1/2 if both coalitions of a pair have n/2 players, else 1."""
    return 0.5 if 2 * s == n else 1.0


def _usual(pool: Pool, residual: FloatMatrix) -> float:
    """Return the mean square of the residuals at pairs of which some are missing."""
    partly = pool.missing[pool.sizes[1:]] > 0
    return float((residual[:, partly] ** 2).mean()) if partly.any() else 0.0
