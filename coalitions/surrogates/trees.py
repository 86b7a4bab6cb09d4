"""Boosted trees that ask who is in a coalition."""

from __future__ import annotations

from typing import Any

import numpy as np

from coalitions.game import BoolVector, FloatMatrix
from coalitions.surrogates.polynomial import Polynomial, largest_terms, n_terms, polynomial_fits
from coalitions.surrogates.pool import FOLDS, Pool
from coalitions.surrogates.sparse import exact_polynomial
from coalitions.surrogates.surrogate import Surrogate

N_TREES = 200
DEPTH = 6
RATE = 0.1
RIDGE = 1.0
"""So many trees, of this depth, each added with this factor. Slow learners tell the terms of a game
from noise: with 100 trees and a factor of 0.3 the polynomial misses some of a forest's."""

PAIRS_PER_TERM = 2.5
"""Pairs for each term of the polynomial, once there are enough for one at all: with 5 it misses
some of a forest's, with less than 2 it fits noise."""

LEAST_PAIRS = 20
"""Fewer pairs than this are not worth a tree."""


def trees(pool: Pool) -> tuple[Surrogate, ...]:
    r"""Return gradient-boosted trees and two polynomials of their largest terms.

    The trees [Friedman2001]_ are fitted to v(S) and v(N∖S). A leaf that is reached if k players are
    in and l others are out is a game of its own, with the Shapley value
    :math:`\frac{(k-1)!\,l!}{(k+l)!}` for each of the k and :math:`-\frac{k!\,(l-1)!}{(k+l)!}` for
    each of the l; the trees' values are sums of these. The polynomials are fitted anew, with
    the terms of the same trees: they are exact if the game has no more terms than these. Where a
    search for further terms comes to a polynomial that fits all pairs, nothing else is returned.
    """
    if len(pool.odd) < LEAST_PAIRS:
        return ()
    from coalitions.surrogates._kernels import tree_values

    n, inside = pool.n_players, (pool.signs > 0).astype(np.uint8)
    rows = np.concatenate([inside, 1 - inside])
    values = np.concatenate([pool.inside, pool.outside]) - pool.outside[0]
    count = n_terms(pool, PAIRS_PER_TERM) if n_terms(pool) > n else 0

    def fit(seen: BoolVector) -> tuple[Any, Any, list[Polynomial]]:
        both = np.concatenate([seen, seen])
        features, leaves = grown_trees(rows[both], values[both])
        if not count:
            return features, leaves, []
        return (
            features,
            leaves,
            polynomial_fits(pool, largest_terms(features, leaves, n, count), seen),
        )

    features, leaves, smooth = fit(pool.folds < FOLDS)
    exact = exact_polynomial(pool, smooth[1]) if smooth else None
    if exact is not None:
        return (exact,)
    held_out = np.empty((1 + len(smooth), len(inside)))
    for fold in range(FOLDS):
        here = pool.folds == fold
        asked, answers, parts = fit(~here)
        held_out[0, here] = parts_of_trees(asked, answers, inside[here])[1]
        for guess, part in zip(held_out[1:], parts, strict=True):
            guess[here] = part.fitted[here]
    held_out[:, 0] = pool.odd[0]  # all fits see (N, ∅)
    fitted = parts_of_trees(features, leaves, inside)[1]
    return Surrogate(tree_values(features, leaves, n, DEPTH), fitted, held_out[0]), *(
        Surrogate(one.values, one.fitted, guess)
        for one, guess in zip(smooth, held_out[1:], strict=True)
    )


def grown_trees(rows: Any, values: Any) -> Any:  # noqa: ANN401
    """Return the boosted trees for the values of some coalitions, without their mean.

    Splits have a least gain. So the values are divided by a power of two that is about the largest.
    """
    from coalitions.surrogates._kernels import boosted

    centred = values - values.mean()
    exponent = np.frexp(np.abs(centred).max())[1]
    features, leaves = boosted(rows, np.ldexp(centred, -exponent), N_TREES, DEPTH, RATE, RIDGE)
    return features, np.ldexp(leaves, exponent)


def parts_of_trees(features: Any, leaves: Any, inside: Any) -> FloatMatrix:  # noqa: ANN401
    """Return the even and the odd part of the trees at some coalitions [2, m]."""
    from coalitions.surrogates._kernels import predicted

    there, elsewhere = (predicted(features, leaves, rows) for rows in (inside, 1 - inside))
    return np.array([(there + elsewhere) / 2, (there - elsewhere) / 2])
