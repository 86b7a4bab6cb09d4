"""A sparse polynomial of odd degree, whose terms are those of fitted trees."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coalitions.game import BoolVector, FloatMatrix, FloatVector, IntVector
from coalitions.surrogates.pool import Pool

PAIRS_PER_TERM = 5.0
"""Pairs that are needed for each term."""

MOST_PRODUCTS = 4e9
"""Most multiplications of a fit, which end the number of terms of large pools."""

RIDGE = 1e-10
"""Smallest ridge, relative to the mean of the diagonal: keeps the Cholesky factor well defined."""

CLEAR = 3.0
"""Standard errors by which a term of several players stands out."""

Terms = NDArray[np.int64]
"""The players of each term [k, depth], filled up with n."""


class Polynomial(NamedTuple):
    """Some terms, the polynomial at all pairs of a pool [m], and its Shapley values [n]."""

    terms: Terms
    fitted: FloatVector
    values: FloatVector


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


def polynomial_fits(pool: Pool, terms: Terms, seen: BoolVector) -> list[Polynomial]:
    r"""Return two polynomials: one with all terms, and one with those only that stand out.

    The coefficients β fit the pairs that are seen, weighed as in the regression whose solution
    the Shapley value is. :math:`\phi_i = 2 \sum_{T \ni i} \beta_T / |T|`. A term stands out by
    `CLEAR` standard errors; where a game has few terms, the others are noise in all values.
    """
    n = pool.n_players
    design, weights = signs_of_terms(pool, terms), regression_weights(pool, seen)
    scaled = design.T * weights
    gram = with_ridge(scaled @ design)
    target = scaled @ pool.odd

    def fit(some: IntVector) -> tuple[FloatVector, FloatVector, Polynomial]:
        """Return coefficients, their variances if pairs had a variance of 1, and the polynomial."""
        beta, variances = coefficients(gram[np.ix_(some, some)], target[some])
        values = values_of_terms(terms[some], beta, n)
        return beta, variances, Polynomial(terms[some], design[:, some] @ beta, values)

    beta, variances, whole = fit(np.arange(len(terms)))
    squares = float(weights[1:] @ (pool.odd - whole.fitted)[1:] ** 2)
    noise = squares / max(1, int(seen.sum()) - 1 - len(terms))
    clear = beta**2 > CLEAR**2 * noise * variances
    return [whole, fit(np.flatnonzero(clear | (terms[:, 1] == n)))[2]]


def signs_of_terms(pool: Pool, terms: Terms) -> FloatMatrix:
    """Return the products of the signs of each term's players at all pairs [m, k]."""
    signs = np.concatenate([pool.signs, np.ones((len(pool.odd), 1))], axis=1)
    design = np.ones((len(pool.odd), len(terms)))
    for place in range(terms.shape[1]):
        design *= signs[:, terms[:, place]]
    return design


def regression_weights(pool: Pool, seen: BoolVector) -> FloatVector:
    """Return the weights of pairs in the regression whose solution the Shapley value is."""
    n, s = pool.n_players, pool.sizes
    halves = np.where(2 * s == n, 0.5, 1.0)
    weights: FloatVector = halves / np.maximum(1, s * (n - s)) / pool.taken[s] * seen
    weights[0] = 10 * weights.sum()  # (N, ∅) has no error: the values' sum
    return weights


def with_ridge(gram: FloatMatrix) -> FloatMatrix:
    """Return a matrix of products with the smallest ridge."""
    ridge: FloatMatrix = np.eye(len(gram)) * (RIDGE * np.trace(gram) / len(gram))
    return gram + ridge


def coefficients(gram: FloatMatrix, target: FloatVector) -> tuple[FloatVector, FloatVector]:
    """Return the solution, and the variances of its entries if pairs had a variance of 1."""
    from scipy.linalg import cho_factor, cho_solve

    factor = cho_factor(gram)
    beta: FloatVector = cho_solve(factor, target)
    return beta, cho_solve(factor, np.eye(len(gram)), overwrite_b=True).diagonal()


def values_of_terms(terms: Terms, beta: FloatVector, n: int) -> FloatVector:
    """Return the Shapley values of a polynomial: the players of a term share it."""
    values = np.zeros(n + 1)
    np.add.at(values, terms, (2 * beta / (terms < n).sum(axis=1))[:, None])
    return values[:n]
