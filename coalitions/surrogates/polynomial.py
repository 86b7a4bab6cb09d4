"""A sparse polynomial of odd degree, whose terms are those of fitted trees."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalitions.game import BoolVector, FloatVector
from coalitions.surrogates.pool import Pool

PAIRS_PER_TERM = 5.0
"""Pairs that are needed for each term."""

MOST_PRODUCTS = 4e9
"""Most multiplications of a fit, which end the number of terms of large pools."""

RIDGE = 1e-10
"""Smallest ridge, relative to the mean of the diagonal: keeps the Cholesky factor well defined."""

Terms = NDArray[np.int64]
"""The players of each term [k, depth], filled up with n."""


def n_terms(pool: Pool, pairs_per_term: float = PAIRS_PER_TERM) -> int:
    """Return how many terms the pool carries."""
    pairs = len(pool.odd)
    return min(int(pairs / pairs_per_term), int(sqrt(MOST_PRODUCTS / pairs)))


def terms_of_trees(
    features: Any,  # noqa: ANN401
    leaves: Any,  # noqa: ANN401
    n: int,
    parity: int,
    least: int,
) -> tuple[Terms, FloatVector]:
    """Return all terms of some trees of odd (1) or even degree (0), and their coefficients."""
    from coalitions.surrogates._kernels import leaf_terms

    depth = (features.shape[1] + 1).bit_length() - 2
    words = np.random.default_rng(n).integers(0, 1 << 63, n, dtype=np.uint64)
    keys, sizes, players = leaf_terms(features, leaves, words, n, depth, parity, least)
    _, first, same = np.unique(keys, return_index=True, return_inverse=True)
    coefficients: FloatVector = np.bincount(same, sizes, minlength=len(first)).astype(float)
    return players[first], coefficients


def largest_terms(features: Any, leaves: Any, n: int, count: int) -> Terms:  # noqa: ANN401
    r"""Return all single players, and the largest terms of odd degree of some trees.

    With signs z, a leaf that is reached if k players are in and l others are out is the product of
    all :math:`\tfrac12 (1 \pm z_i)`: each subset T of them has the coefficient
    :math:`\pm 2^{-k-l}` of :math:`\prod_{i \in T} z_i`. Only odd degrees matter for the Shapley
    value [Fumagalli2026]_.
    """
    found, size = terms_of_trees(features, leaves, n, 1, 3)
    weight = np.abs(size)
    order = np.argsort(-weight, kind="stable")[: max(0, count - n)]
    singles = np.full((n, found.shape[1]), n, np.int64)
    singles[:, 0] = np.arange(n)
    terms: Terms = np.concatenate([singles, found[order]])
    return terms


def polynomial_fit(pool: Pool, terms: Terms, seen: BoolVector) -> tuple[FloatVector, FloatVector]:
    r"""Return the polynomial's values at all pairs of the pool, and its Shapley values.

    The coefficients β fit the pairs that are seen, weighed as in the regression whose solution
    the Shapley value is. :math:`\phi_i = 2 \sum_{T \ni i} \beta_T / |T|`.
    """
    from scipy.linalg import cho_factor, cho_solve

    n, s = pool.n_players, pool.sizes
    signs = np.concatenate([pool.signs, np.ones((len(s), 1))], axis=1)
    design = np.ones((len(s), len(terms)))
    for place in range(terms.shape[1]):
        design *= signs[:, terms[:, place]]
    halves = np.where(2 * s == n, 0.5, 1.0)
    weights = halves / np.maximum(1, s * (n - s)) / pool.taken[s] * seen
    weights[0] = 10 * weights.sum()  # (N, ∅) has no error: the values' sum
    scaled = design.T * weights
    gram = scaled @ design
    gram.flat[:: len(gram) + 1] += RIDGE * np.trace(gram) / len(gram)
    beta = cho_solve(cho_factor(gram, overwrite_a=True), scaled @ pool.odd)
    degree = (terms < n).sum(axis=1)
    values = np.zeros(n + 1)
    np.add.at(values, terms, (2 * beta / degree)[:, None])
    return design @ beta, values[:n]
