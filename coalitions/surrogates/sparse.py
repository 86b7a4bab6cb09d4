"""A search for the few terms of a game that is a sparse polynomial, as that of a forest is."""

from __future__ import annotations

from math import comb

import numpy as np

from coalitions.game import BoolVector, FloatMatrix, FloatVector, IntVector
from coalitions.surrogates.polynomial import (
    CLEAR,
    MOST_PRODUCTS,
    Polynomial,
    Terms,
    coefficients,
    products,
    regression_weights,
    signs_of_terms,
    solution,
    values_of_terms,
    with_ridge,
)
from coalitions.surrogates.pool import ROUNDING, Pool
from coalitions.surrogates.surrogate import Surrogate

HOPE = 0.1
"""The search begins if a first polynomial leaves no more than this of the game's deviation."""

STEADY = 0.8
"""It goes on while two rounds leave no more than this of what was left before."""

RARE = 1e-2
"""Pairs whose weight is less than this part of the largest take no part in the search."""

MOST_ROUNDS = 10
"""Most rounds of the search."""

NEW_TERMS = 100
"""Terms that a round adds, or an eighth of the pairs if that is less."""

PAIRS_PER_TERM = 2
"""Pairs for each term, without which it proves nothing that all pairs fit."""

LARGER = 5
"""Terms of five players that each known one of three may add."""

REFINEMENTS = 4
"""Corrections of the coefficients, which take the ridge back."""

NEARLY = 1e-7
"""All pairs fit up to the ridge: deviation left over, relative to the largest value."""


def exact_polynomial(pool: Pool, first: Polynomial) -> Surrogate | None:
    """Return the polynomial that fits all pairs, up to rounding, with few terms; None if not found.

    Each round adds the terms that what is left over looks like, fits anew, and keeps those that
    stand out. A polynomial with half as many terms as there are pairs fits them all by no accident:
    it would have said the same of a pair that was left out. A search that does not end so is of no
    use, since its terms were chosen by all pairs.
    """
    n, m = pool.n_players, len(pool.odd)
    scale, terms = float(np.abs(pool.odd).max()), first.terms
    count = min(NEW_TERMS, m // 8)
    if n < 5 or n**3 * m > MOST_PRODUCTS or count < LARGER:
        return None
    weights = regression_weights(pool, np.ones(m, np.bool_))
    uniform = _uniform(pool)
    some = uniform > RARE * uniform.max()
    residual = pool.odd - first.fitted
    left = [_deviation(weights, pool.odd)]
    if _deviation(weights, residual) > max(HOPE * left[0], NEARLY * scale):
        return None
    design, gram = signs_of_terms(pool, terms), products(pool, terms, weights)
    for _ in range(MOST_ROUNDS):
        left.append(_deviation(weights, residual))
        if left[-1] <= NEARLY * scale:
            return _settled(pool, terms, design, weights)
        slow = len(left) > 3 and left[-1] > STEADY * left[-3]
        full = len(terms) + count > m / PAIRS_PER_TERM
        if left[-1] > HOPE * left[0] or slow or full:
            return None
        new = _likely(pool.signs[some], terms, (uniform * residual)[some], count)
        terms = np.concatenate([terms, new])
        design, gram = signs_of_terms(pool, terms), products(pool, terms, weights)
        keep = _clear(pool, terms, design, gram, weights)
        terms, design, gram = terms[keep], design[:, keep], gram[np.ix_(keep, keep)]
        beta = solution(with_ridge(gram), design.T @ (weights * pool.odd))
        residual = pool.odd - design @ beta
    return None


def _deviation(weights: FloatVector, residual: FloatVector) -> float:
    """Return the weighted deviation of some residuals; that at (N, ∅) is none."""
    return float(np.sqrt(weights[1:] @ residual[1:] ** 2 / weights[1:].sum()))


def _uniform(pool: Pool) -> FloatVector:
    """Return weights with which pairs are like uniform ones; terms are uncorrelated in these."""
    n = pool.n_players
    there = np.array([comb(n, s) / 2.0**n for s in range(n // 2 + 1)])
    there[0] = 0.0
    if n % 2 == 0:
        there[-1] /= 2
    weights: FloatVector = (there / np.maximum(1, pool.taken))[pool.sizes]
    return weights


def _likely(signs: FloatMatrix, terms: Terms, target: FloatVector, count: int) -> Terms:
    """Return the new terms of three and of five players whose products with the target are largest.

    Terms of five are known ones of three with two players more: where five meet in a tree, three
    of them do as well.
    """
    n = signs.shape[1]
    threes = np.zeros((n, n, n))
    for i in range(n - 2):
        others = signs[:, i + 1 :]
        threes[i, i + 1 :, i + 1 :] = np.triu((others.T * (target * signs[:, i])) @ others, 1)
    degree = (terms < n).sum(axis=1)
    known = np.sort(terms[degree == 3][:, :3], axis=1)
    threes[tuple(known.T)] = 0.0
    size = np.abs(threes).ravel()
    found: dict[tuple[int, ...], float] = {
        (int(place) // n**2, int(place) // n % n, int(place) % n): float(size[place])
        for place in _largest(size, count)
    }
    old = {tuple(term) for term in np.sort(terms[degree == 5][:, :5], axis=1).tolist()}
    for three in known if terms.shape[1] >= 5 else []:
        size = np.abs(np.triu((signs.T * (target * signs[:, three].prod(axis=1))) @ signs, 1))
        size[three] = size[:, three] = 0.0
        for place in _largest(size.ravel(), LARGER):
            five = tuple(sorted((*three.tolist(), *divmod(int(place), n))))
            if five not in old:
                found[five] = float(size.flat[place])
    chosen = sorted(found, key=lambda term: -found[term])[:count]
    likely: Terms = np.full((len(chosen), terms.shape[1]), n, np.int64)
    for row, term in zip(likely, chosen, strict=True):
        row[: len(term)] = term
    return likely


def _largest(sizes: FloatVector, count: int) -> IntVector:
    """Return the places of the largest sizes, as far as they are above 0."""
    above: IntVector = np.flatnonzero(sizes > 0.0)
    if len(above) > count:
        above = above[np.argpartition(sizes[above], -count)[-count:]]
    return above


def _settled(
    pool: Pool, terms: Terms, design: FloatMatrix, weights: FloatVector
) -> Surrogate | None:
    """Return the polynomial without what is mere rounding, if it still fits and no pair is needed.

    A pair without which a coefficient would be unknown cannot be told by the others.
    """
    from scipy.linalg import cho_factor, cho_solve, solve_triangular

    scale = float(np.abs(pool.odd).max())
    gram = products(pool, terms, weights)
    beta = solution(with_ridge(gram), design.T @ (weights * pool.odd))
    some = np.abs(beta) > NEARLY * scale
    terms, design = terms[some], design[:, some]
    factor = cho_factor(with_ridge(gram[np.ix_(some, some)]), lower=True)
    beta = np.zeros(len(terms))
    for _ in range(REFINEMENTS):
        beta += cho_solve(factor, design.T @ (weights * (pool.odd - design @ beta)))
    fitted = design @ beta
    white = solve_triangular(factor[0], design.T, lower=True)
    needed = weights * np.einsum("ij,ij->j", white, white)
    if np.abs(pool.odd - fitted).max() > ROUNDING * scale or needed[1:].max() > 1 - 1e-6:
        return None
    return Surrogate(values_of_terms(terms, beta, pool.n_players), fitted, fitted, guarded=True)


def _clear(
    pool: Pool, terms: Terms, design: FloatMatrix, gram: FloatMatrix, weights: FloatVector
) -> BoolVector:
    """Tell which terms stand out, and which are of single players."""
    beta, variances = coefficients(with_ridge(gram), design.T @ (weights * pool.odd))
    squares = float(weights[1:] @ (pool.odd - design @ beta)[1:] ** 2)
    noise = squares / max(1, len(weights) - 1 - len(terms))
    degree = (terms < pool.n_players).sum(axis=1)
    clear: BoolVector = (beta**2 > CLEAR**2 * noise * variances) | (degree == 1)
    return clear
