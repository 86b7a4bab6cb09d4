"""Boosted trees that ask who is in a coalition."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from coalitions.surrogates.polynomial import largest_terms, n_terms, polynomial_fit
from coalitions.surrogates.pool import FOLDS, Pool
from coalitions.surrogates.surrogate import Surrogate

N_TREES = 100
DEPTH = 6
RATE = 0.3
RIDGE = 1.0
"""As in XGBoost by default: so many trees, of this depth, each added with this factor."""

LEAST_PAIRS = 20
"""Fewer pairs than this are not worth a tree."""


def trees(pool: Pool) -> tuple[Surrogate, ...]:
    r"""Return gradient-boosted trees and the polynomial of their largest terms.

    The trees [Friedman2001]_ are fitted to v(S) and v(N∖S). A leaf that is reached if k players are
    in and l others are out is a game of its own, with the Shapley value
    :math:`\frac{(k-1)!\,l!}{(k+l)!}` for each of the k and :math:`-\frac{k!\,(l-1)!}{(k+l)!}` for
    each of the l; the trees' values are sums of these. The polynomial is fitted anew, with
    the terms of the same trees: it is exact if the game has no more terms than these.
    """
    if len(pool.odd) < LEAST_PAIRS:
        return ()
    inside = (pool.signs > 0).astype(np.uint8)
    n, count = pool.n_players, n_terms(pool)
    rows = np.concatenate([inside, 1 - inside])
    values = np.concatenate([pool.inside, pool.outside]) - pool.outside[0]
    held_out = np.empty((2, len(inside)))
    # With no fold left out, all pairs are seen; that fit comes last.
    for fold in [*range(FOLDS), FOLDS]:
        seen, here = pool.folds != fold, pool.folds == fold
        both = np.concatenate([seen, seen])
        features, leaves = _boosted(rows[both], values[both], N_TREES, DEPTH, RATE, RIDGE)
        held_out[0, here] = _odd(features, leaves, inside[here])
        if count > n:
            terms = largest_terms(features, leaves, n, count)
            smooth, smooth_values = polynomial_fit(pool, terms, seen)
            held_out[1, here] = smooth[here]
    fitted = _odd(features, leaves, inside)
    held_out[:, 0] = pool.odd[0]  # all fits see (N, ∅)
    grown = Surrogate(_shares(features, leaves, n, DEPTH), fitted, held_out[0])
    return (grown, Surrogate(smooth_values, smooth, held_out[1])) if count > n else (grown,)


def _odd(features: Any, leaves: Any, inside: Any) -> Any:  # noqa: ANN401
    """Return the odd part of the trees at some coalitions."""
    there, elsewhere = (_predicted(features, leaves, rows) for rows in (inside, 1 - inside))
    return (there - elsewhere) / 2


@njit(cache=True)
def _boosted(
    rows: Any,  # noqa: ANN401
    values: Any,  # noqa: ANN401
    n_trees: int,
    depth: int,
    rate: float,
    ridge: float,
) -> Any:  # noqa: ANN401
    """Return the player that each node asks for (−1 at leaves) and the nodes' values.

    Nodes of a tree are numbered as in a heap: the children of a are 2a+1 (out) and 2a+2 (in).
    The mean of the values is not part of the trees: a constant is nobody's merit.
    """
    m, n = rows.shape
    features = np.full((n_trees, (2 << depth) - 1), -1, np.int64)
    leaves = np.zeros((n_trees, (2 << depth) - 1))
    residual = values - values.mean()
    node = np.zeros(m, np.int64)
    sums, counts = np.zeros((1 << depth, n)), np.zeros((1 << depth, n))
    whole, number = np.zeros(1 << depth), np.zeros(1 << depth)
    for t in range(n_trees):
        node[:] = 0
        for level in range(depth + 1):
            first = (1 << level) - 1
            whole[:] = 0.0
            number[:] = 0.0
            sums[:] = 0.0
            counts[:] = 0.0
            for k in range(m):
                q = node[k] - first
                if q >= 0:
                    whole[q] += residual[k]
                    number[q] += 1
                    if level < depth:
                        for i in range(n):
                            if rows[k, i]:
                                sums[q, i] += residual[k]
                                counts[q, i] += 1
            for q in range(1 << level):
                if number[q] == 0:
                    continue
                leaves[t, first + q] = rate * whole[q] / (number[q] + ridge)
                if level == depth:
                    continue
                least = whole[q] ** 2 / (number[q] + ridge)
                best = least * (1 + 1e-9) + 1e-14
                for i in range(n):
                    other = number[q] - counts[q, i]
                    if counts[q, i] == 0 or other == 0:
                        continue
                    gain = sums[q, i] ** 2 / (counts[q, i] + ridge)
                    gain += (whole[q] - sums[q, i]) ** 2 / (other + ridge)
                    # Ties go to the first player, also if rounding tells them apart.
                    if gain > best * (1 + 1e-9):
                        best = gain
                        features[t, first + q] = i
            if level < depth:
                for k in range(m):
                    if node[k] >= first:
                        player = features[t, node[k]]
                        if player >= 0:
                            node[k] = 2 * node[k] + 1 + rows[k, player]
        for k in range(m):
            residual[k] -= leaves[t, node[k]]
    return features, leaves


@njit(cache=True)
def _predicted(features: Any, leaves: Any, rows: Any) -> Any:  # noqa: ANN401
    """Return the sum of the trees at some coalitions."""
    total = np.zeros(len(rows))
    for t in range(len(features)):
        for k in range(len(rows)):
            node = 0
            while features[t, node] >= 0:
                node = 2 * node + 1 + rows[k, features[t, node]]
            total[k] += leaves[t, node]
    return total


@njit(cache=True)
def _shares(features: Any, leaves: Any, n: int, depth: int) -> Any:  # noqa: ANN401
    """Return the Shapley values of the trees."""
    values = np.zeros(n)
    factorial = np.ones(depth + 1)
    for k in range(1, depth + 1):
        factorial[k] = factorial[k - 1] * k
    player, inside = np.zeros(depth, np.int64), np.zeros(depth, np.int64)
    for t in range(len(features)):
        for leaf in range(features.shape[1]):
            if features[t, leaf] >= 0 or leaves[t, leaf] == 0.0:
                continue
            above, length, n_in = leaf, 0, 0
            while above > 0:
                parent = (above - 1) // 2
                player[length] = features[t, parent]
                inside[length] = above - 2 * parent - 1
                n_in += inside[length]
                above, length = parent, length + 1
            n_out = length - n_in
            for k in range(length):
                if inside[k]:
                    share = factorial[n_in - 1] * factorial[n_out]
                else:
                    share = -factorial[n_in] * factorial[n_out - 1]
                values[player[k]] += leaves[t, leaf] * share / factorial[length]
    return values
