"""A sparse polynomial of odd degree, whose terms are those of fitted trees."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coalitions.game import BoolVector, FloatMatrix, FloatVector
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
    distinct, same = np.unique(keys, return_inverse=True)
    leaf = np.empty(len(distinct), np.intp)
    leaf[same] = np.arange(len(keys))  # any leaf of a term has its players
    coefficients: FloatVector = np.bincount(same, sizes, minlength=len(distinct)).astype(float)
    return players[leaf], coefficients


def largest_terms(features: Any, leaves: Any, n: int, count: int) -> Terms:  # noqa: ANN401
    r"""Return all single players, and the largest terms of odd degree of some trees.

    With signs z, a leaf that is reached if k players are in and l others are out is the product of
    all :math:`\tfrac12 (1 \pm z_i)`: each subset T of them has the coefficient
    :math:`\pm 2^{-k-l}` of :math:`\prod_{i \in T} z_i`. Only odd degrees matter for the Shapley
    value [Fumagalli2026]_.
    """
    found, size = terms_of_trees(features, leaves, n, 1, 3)
    weight, count = np.abs(size), min(len(size), max(0, count - n))
    # Only the last one that is wanted, its equals and those above are sorted.
    least = np.partition(weight, -count)[-count] if count else np.inf
    likely = np.flatnonzero(weight >= least)
    order = likely[np.argsort(-weight[likely], kind="stable")[:count]]
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
    gram = with_ridge(products(pool, terms, weights))
    target = design.T @ (weights * pool.odd)
    beta, variances = coefficients(gram, target)
    whole = Polynomial(terms, design @ beta, values_of_terms(terms, beta, n))
    squares = float(weights[1:] @ (pool.odd - whole.fitted)[1:] ** 2)
    noise = squares / max(1, int(seen.sum()) - 1 - len(terms))
    clear = (beta**2 > CLEAR**2 * noise * variances) | (terms[:, 1] == n)
    some = np.zeros(len(terms))  # without a copy of the columns that are clear
    some[clear] = solution(gram[np.ix_(clear, clear)], target[clear])
    values = values_of_terms(terms[clear], some[clear], n)
    return [whole, Polynomial(terms[clear], design @ some, values)]


def signs_of_terms(pool: Pool, terms: Terms) -> FloatMatrix:
    """Return the products of the signs of each term's players at all pairs [m, k]."""
    signs = np.ones((pool.n_players + 1, len(pool.odd)), np.int8)
    signs[:-1] = pool.signs.T
    design = signs[terms[:, 0]]
    for place in range(1, terms.shape[1]):
        design *= signs[terms[:, place]]
    columns: FloatMatrix = design.astype(float).T
    return columns


def products(pool: Pool, terms: Terms, weights: FloatVector) -> FloatMatrix:
    """Return the weighted sums of the products of any two terms [k, k].

    Terms are ±1, and few weights are different: bits are counted, 64 pairs of one weight at a time.
    """
    from coalitions.surrogates._kernels import sums_of_products

    seen = np.flatnonzero(weights)
    each, group, count = np.unique(weights[seen], return_inverse=True, return_counts=True)
    n_words = -(-count // 64)
    order = np.argsort(group, kind="stable")
    first = np.cumsum(64 * n_words) - 64 * n_words - (np.cumsum(count) - count)
    negative = np.zeros((pool.n_players + 1, 64 * n_words.sum()), np.bool_)
    negative[:-1, np.arange(len(seen)) + first[group[order]]] = pool.signs[seen[order]].T < 0
    bits = np.packbits(negative, axis=1).view(np.uint64)
    of_terms = np.bitwise_xor.reduce(bits[terms], axis=1)
    gram: FloatMatrix = sums_of_products(
        np.ascontiguousarray(of_terms.T), np.repeat(each, n_words), float(each @ count)
    )
    return gram


def regression_weights(pool: Pool, seen: BoolVector) -> FloatVector:
    """Return the weights of pairs in the regression whose solution the Shapley value is."""
    n, s = pool.n_players, pool.sizes
    halves = np.where(2 * s == n, 0.5, 1.0)
    weights: FloatVector = halves / np.maximum(1, s * (n - s)) / pool.taken[s] * seen
    weights[0] = 10 * weights.sum()  # (N, ∅) has no error: the values' sum
    return weights


def with_ridge(gram: FloatMatrix) -> FloatMatrix:
    """Return a matrix of products with the smallest ridge."""
    ridged = gram.copy()
    ridged.flat[:: len(gram) + 1] += RIDGE * np.trace(gram) / len(gram)
    return ridged


def coefficients(gram: FloatMatrix, target: FloatVector) -> tuple[FloatVector, FloatVector]:
    """Return the solution, and the variances of its entries if pairs had a variance of 1."""
    from scipy.linalg import cho_solve, cholesky, lapack

    factor = cholesky(gram, lower=True)
    beta: FloatVector = cho_solve((factor, True), target)
    inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    return beta, np.einsum("ij,ij->j", inverse, inverse)


def solution(gram: FloatMatrix, target: FloatVector) -> FloatVector:
    """Return the solution alone, in a third of the time."""
    from scipy.linalg import cho_factor, cho_solve

    beta: FloatVector = cho_solve(cho_factor(gram), target)
    return beta


def values_of_terms(terms: Terms, beta: FloatVector, n: int) -> FloatVector:
    """Return the Shapley values of a polynomial: the players of a term share it."""
    values = np.zeros(n + 1)
    np.add.at(values, terms, (2 * beta / (terms < n).sum(axis=1))[:, None])
    return values[:n]
