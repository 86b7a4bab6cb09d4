"""Boosted trees that ask who is in a coalition."""

from __future__ import annotations

from typing import Any

import numpy as np

from coalitions.game import FloatMatrix
from coalitions.surrogates.polynomial import largest_terms, n_terms, polynomial_fits
from coalitions.surrogates.pool import FOLDS, Pool
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
    the terms of the same trees: they are exact if the game has no more terms than these.
    """
    if len(pool.odd) < LEAST_PAIRS:
        return ()
    from coalitions.surrogates._kernels import tree_values

    inside = (pool.signs > 0).astype(np.uint8)
    n = pool.n_players
    smoothed, count = n_terms(pool) > n, n_terms(pool, PAIRS_PER_TERM)
    rows = np.concatenate([inside, 1 - inside])
    values = np.concatenate([pool.inside, pool.outside]) - pool.outside[0]
    held_out = np.empty((3, len(inside)))
    # With no fold left out, all pairs are seen; that fit comes last.
    for fold in [*range(FOLDS), FOLDS]:
        seen, here = pool.folds != fold, pool.folds == fold
        both = np.concatenate([seen, seen])
        features, leaves = grown_trees(rows[both], values[both])
        held_out[0, here] = parts_of_trees(features, leaves, inside[here])[1]
        if smoothed:
            terms = largest_terms(features, leaves, n, count)
            smooth = polynomial_fits(pool, terms, seen)
            held_out[1:, here] = [one.fitted[here] for one in smooth]
    fitted = parts_of_trees(features, leaves, inside)[1]
    held_out[:, 0] = pool.odd[0]  # all fits see (N, ∅)
    grown = Surrogate(tree_values(features, leaves, n, DEPTH), fitted, held_out[0])
    if not smoothed:
        return (grown,)
    return grown, *(
        Surrogate(one.values, one.fitted, left_out)
        for one, left_out in zip(smooth, held_out[1:], strict=True)
    )


def grown_trees(rows: Any, values: Any) -> Any:  # noqa: ANN401
    """Return the boosted trees for the values of some coalitions, without their mean."""
    from coalitions.surrogates._kernels import boosted

    return boosted(rows, values, N_TREES, DEPTH, RATE, RIDGE)


def parts_of_trees(features: Any, leaves: Any, inside: Any) -> FloatMatrix:  # noqa: ANN401
    """Return the even and the odd part of the trees at some coalitions [2, m]."""
    from coalitions.surrogates._kernels import predicted

    there, elsewhere = (predicted(features, leaves, rows) for rows in (inside, 1 - inside))
    return np.array([(there + elsewhere) / 2, (there - elsewhere) / 2])
