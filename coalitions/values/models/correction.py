"""The error of models on pairs that they have not seen, and the index of that error."""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np

from coalitions.game import FloatMatrix, FloatVector
from coalitions.values.designs import Pool
from coalitions.values.index import blocks_of_weights, coalitions_of_size, coefficients

PRIOR_PAIRS = 2.0
"""How many pairs the variance of all sizes counts for in that of a single one."""


CENTRED_FROM = 4
"""Pairs of a size from which its mean residual is taken out first."""


class Correction(NamedTuple):
    """An unbiased guess of the index of what is left over outside the pool, and its variance."""

    values: FloatVector
    variance: FloatVector


def importance_of(masses: dict[int, FloatVector], n: int) -> FloatVector:
    """Return how much the pairs of each size 0 … n/2 count together, squared.

    It is the mean over coalitions U of the square of U's weight, times the number of U: to draw in
    proportion to its root makes the variance of a sum over strata least. All orders count alike.
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
    size, n = table.shape[0] - 1, table.shape[1] - 1
    chance = np.zeros_like(table)
    for inside in range(size + 1):
        for u in range(inside, n - size + inside + 1):
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
    rows = pool.signs[1:] > 0
    members, pair = pool.members[1:], pool.sizes[1:]
    residual = np.array([inside[1:], outside[1:]])
    seen = [s for s in range(1, n // 2 + 1) if pool.taken[s] and pool.missing[s] > 0]
    usual = _usual(pool, residual)
    everybody, doubt = 0.0, 0.0
    factor = np.zeros(len(pair))
    centred = residual.copy()
    for s in range(1, n // 2 + 1):
        half = 0.5 if 2 * s == n else 1.0
        prior = half**2 * (squares[s] + squares[n - s]) * usual
        if pool.missing[s] == 0.0:
            continue
        if not pool.taken[s]:  # no guess, and all the doubt that a single pair would leave
            doubt += prior
            continue
        here, m = pair == s, int(pool.taken[s])
        factor[here] = pool.missing[s] * half
        if m >= CENTRED_FROM:
            # What all coalitions of a size have in common is a game of numbers, known as such.
            if 2 * s == n:
                common = np.full(2, residual[:, here].mean())
            else:
                large = members[here] > s
                both = np.where(large, residual[::-1, here], residual[:, here]).mean(axis=1)
                common = both
            for side, u in enumerate((s, n - s)):
                everybody += pool.missing[s] * half * common[side] * means[u]
            of = np.where(members[here] > s, 1, 0) if 2 * s != n else np.zeros(m, np.int64)
            centred[0, here] -= common[of]
            centred[1, here] -= common[1 - of]
            factor[here] *= m / (m - 1)
    count = comb(n, size)
    values, variance = np.full(count, everybody), np.full(count, doubt)
    starts = np.searchsorted(pair, seen)
    known = np.isin(pair, seen)
    taken = pool.taken[seen].astype(float)[:, None]
    missing = pool.missing[seen][:, None]
    priors = np.array(
        [(0.25 if 2 * s == n else 1.0) * (squares[s] + squares[n - s]) * usual for s in seen]
    )[:, None]
    if not seen:
        return Correction(values, variance)
    coalitions = coalitions_of_size(n, size)
    there = blocks_of_weights(table, coalitions, rows)
    elsewhere = blocks_of_weights(table, coalitions, ~rows)
    for (part, one), (_, other) in zip(there, elsewhere, strict=True):
        each = (one * centred[0][:, None] + other * centred[1][:, None]) * factor[:, None]
        each[~known] = 0.0
        sums = np.add.reduceat(each, starts, axis=0)
        values[part] += (sums / taken).sum(axis=0)
        power = np.add.reduceat(each**2, starts, axis=0) / missing**2
        spread = (power + PRIOR_PAIRS * priors) / (taken + PRIOR_PAIRS)
        variance[part] += (missing * spread / taken).sum(axis=0)
    return Correction(values, variance)


def _usual(pool: Pool, residual: FloatMatrix) -> float:
    """Return the mean square of the residuals at pairs of which some are missing."""
    partly = pool.missing[pool.sizes[1:]] > 0
    return float((residual[:, partly] ** 2).mean()) if partly.any() else 0.0
