"""What a fitted model of a game tells, how several are mixed, and what they leave over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from coalitions.game import BoolVector, FloatMatrix, FloatVector
from coalitions.surrogates.pool import Pool

PRIOR_PAIRS = 2.0
"""How many pairs the variance of all sizes counts for in that of a single one."""

HEAD_START = 10.0
"""How many pairs the doubt in a comparison of models counts for, see `coalitions.joint`."""

DOUBT = 20.0
"""The same, in effective pairs, where a surrogate fits more freely than another."""


LUCK = 5.0
"""Effective pairs that a surrogate which fits freely may explain by luck."""


class Surrogate(NamedTuple):
    """A model of the odd part of a game, fitted to a pool.

    Attributes
    ----------
    values
        The Shapley values of the model [n].
    fitted
        The model at the coalitions of the pool [m].
    held_out
        The same, each by a fit that has not seen its pair [m].
    guarded
        Whether the fit is on its guard against few pairs: by a prior, or since it fits so little.
    """

    values: FloatVector
    fitted: FloatVector
    held_out: FloatVector
    guarded: bool = False


Fit = Callable[[Pool], tuple[Surrogate, ...]]
"""Fits one or several surrogates; none if the pool is too small for them."""


def mixed(pool: Pool, surrogates: Sequence[Surrogate]) -> Surrogate:
    """Return the mean of some surrogates, weighted so that the held-out error is smallest.

    Errors count as they do in the Shapley value: by the size of the coalition, and by how many of
    the size are not in the pool. Few pairs rank surrogates badly, so those that are guarded have a
    head start, see `_handicap`.
    """
    n, s = pool.n_players, pool.sizes
    importance = pool.missing[s] / np.maximum(1, s * (n - s)) / pool.taken[s] ** 2.0
    if importance.sum() == 0.0:  # nothing is missing, so any mixture is exact
        importance = np.ones(len(s))
    residuals = np.array([pool.odd - one.held_out for one in surrogates])
    free = np.array([not one.guarded for one in surrogates])
    weights = mixing_weights(residuals, importance, free * _handicap(residuals, importance, free))
    values, fitted, held_out, _ = zip(*surrogates, strict=True)
    return Surrogate(sum_of(weights, values), sum_of(weights, fitted), sum_of(weights, held_out))


def mixing_weights(
    residuals: FloatMatrix, importance: FloatVector, handicaps: FloatVector
) -> FloatVector:
    """Return the weights with the least sum of squares of mixed residuals; sum 1, none below 0.

    The handicaps are added to the sums of squares, as if they were independent of each other.
    """
    products = (residuals * importance) @ residuals.T
    products[np.diag_indices(len(products))] += handicaps
    return _convex(products)


def _handicap(residuals: FloatMatrix, importance: FloatVector, free: BoolVector) -> float:
    """Return what is added to the errors of surrogates that fit freely.

    Where pairs count differently they are effectively fewer: (Σe)² / Σe² by their shares e of an
    error. The least of all errors is in doubt by these. And that of the best guarded surrogate says
    how many pairs speak against it: a tree that explains a single one may do so by luck.
    """
    errors = residuals**2 * importance
    best = errors[errors.sum(axis=1).argmin()]
    doubt = float(best.sum()) * DOUBT / _effective(best)
    if not free.all():
        guarded = errors[~free]
        best = guarded[guarded.sum(axis=1).argmin()]
        doubt += float(best.sum()) * (LUCK / _effective(best)) ** 2
    return doubt


def _effective(errors: FloatVector) -> float:
    squares = float(errors @ errors)
    return max(1.0, float(errors.sum()) ** 2 / squares) if squares > 0.0 else 1.0


def sum_of(weights: FloatVector, parts: Sequence[FloatVector]) -> FloatVector:
    """Return the weighted sum of some vectors."""
    total: FloatVector = np.einsum("k,kj->j", weights, np.array(parts))
    return total


def _convex(products: FloatVector) -> FloatVector:
    """Return the weights w ≥ 0 of sum 1 with the least w·products·w; there are few of them."""
    p = len(products)
    best, weights = np.inf, np.full(p, 1 / p)
    ridge = 1e-12 * np.trace(products) + 1e-300
    for count in range(1, p + 1):
        for chosen in combinations(range(p), count):
            part = products[np.ix_(chosen, chosen)] + ridge * np.eye(count)
            some = np.linalg.lstsq(part, np.ones(count), rcond=None)[0]
            if some.sum() <= 0 or (some < 0).any():
                continue
            some = some / some.sum()
            loss = float(some @ part @ some)
            if loss < best:
                best, weights = loss, np.zeros(p)
                weights[list(chosen)] = some
    return weights


def left_over(pool: Pool, residual: FloatVector) -> tuple[FloatVector, FloatVector]:
    """Return the Shapley values of the residual outside the pool, and their variances.

    The pairs of one size are a random sample: what a surrogate misses on held-out pairs with
    player i, less that on pairs without i, is an unbiased guess of what it misses on pairs that
    were never evaluated. The sum over the players is none of the guess: efficiency settles it.
    Where a simple game tells all pairs, that nothing is left over proves little.
    """
    n = pool.n_players
    total, variance = np.zeros(n), np.zeros(n)
    centred = residual.copy()
    for s in range(1, n // 2 + 1):
        if 2 * s < n and pool.taken[s]:
            centred[pool.sizes == s] -= residual[pool.sizes == s].mean()
    # Variances are about 0, not about the mean of a size: that of a single pair would be nothing.
    squares = np.bincount(pool.sizes, residual**2, minlength=n // 2 + 1)
    partly = pool.missing > 0
    usual = squares[partly].sum() / max(1, pool.taken[partly].sum())
    # Laplace's rule of succession: the next pair may be the first that is not so simple.
    least = pool.untold(residual) / (len(pool.odd) + 1)
    usual = max(usual, least, pool.unheard)
    for s in range(1, n // 2 + 1):
        if pool.missing[s] == 0.0:
            continue
        if pool.taken[s] == 0:  # no guess, and all the doubt that a single pair would leave
            variance += usual * (1.0 if 2 * s == n else n * n / (s * (n - s)))
            continue
        here = pool.sizes == s
        signs, rest, square = pool.signs[here], centred[here], residual[here] ** 2
        m = len(rest)
        spread = max(least, (squares[s] + PRIOR_PAIRS * usual) / (m + PRIOR_PAIRS))
        if 2 * s == n:
            guess = (signs * rest[:, None]).mean(axis=0)
            noise = np.full(n, spread / m)
        else:
            inside = np.where(signs > 0, 1.0, 0.0)
            count = np.array([m - inside.sum(axis=0), inside.sum(axis=0)])
            part = rest @ inside
            both = count.min(axis=0) > 0
            guess = np.where(both, part / np.maximum(1, count).prod(axis=0) * m, 0.0)
            power = np.array([square @ (1 - inside), square @ inside])
            each = np.maximum(least, (power + PRIOR_PAIRS * spread) / (count + PRIOR_PAIRS))
            noise = (each / np.maximum(1, count)).sum(axis=0)
        total += pool.missing[s] * guess
        variance += pool.missing[s] * noise
    total *= 2 / n
    return total - total.mean(), variance * (2 / n) ** 2
