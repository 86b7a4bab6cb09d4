"""Sparse polynomials of signs, and boosted trees, which are polynomials as well."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from coalitions.game import BoolVector, FloatMatrix, FloatVector, IntMatrix
from coalitions.joint.model import Model, Question, indices_of_terms
from coalitions.surrogates.polynomial import RIDGE, n_terms, terms_of_trees
from coalitions.surrogates.pool import FOLDS
from coalitions.surrogates.trees import DEPTH, LEAST_PAIRS, grown_trees, parts_of_trees

SPARE_PAIRS = 4
"""Pairs over the number of coefficients without which a fit says nothing."""

MOST_TERMS = 2000
"""Most coefficients of a dense fit."""


def low_degree(asked: Question) -> tuple[list[Model], list[Model]]:
    """Return the best games of single players (odd), and of pairs (even).

    What a pair's own value adds to a fit is known, so leaving it out takes no second fit.
    """
    return _dense(asked, 0), _dense(asked, 1)


def _dense(asked: Question, parity: int) -> list[Model]:
    pool, n = asked.pool, asked.pool.n_players
    degrees = (1,) if parity else (0, 2)
    count = sum(comb(n, degree) for degree in degrees)
    if count > MOST_TERMS or len(pool.sizes) < count + SPARE_PAIRS:
        return []
    terms = all_terms(n, degrees)
    design, target = products(pool.signs, terms), asked.target(parity)
    scaled = design.T * asked.pair_weights
    inverse = np.linalg.pinv(scaled @ design, rcond=1e-10, hermitian=True)
    beta = inverse @ (scaled @ target)
    fitted = design @ beta
    leverage = np.einsum("ij,ij->i", scaled.T @ inverse, design)
    if leverage[1:].max() > 1 - 1e-6:  # a pair that alone settles a value has no held-out guess
        return []
    held_out = target - (target - fitted) / np.maximum(1e-6, 1 - leverage)
    held_out[0] = fitted[0]
    return [Model(indices_of_terms(terms, beta, asked.masses, n), fitted, held_out)]


def trees(asked: Question) -> tuple[list[Model], list[Model]]:
    """Return boosted trees, and the polynomials of their largest terms, of both parities."""
    pool, n = asked.pool, asked.pool.n_players
    if len(pool.sizes) < LEAST_PAIRS:
        return [], []
    inside = (pool.signs > 0).astype(np.uint8)
    rows = np.concatenate([inside, 1 - inside])
    values = np.concatenate([pool.inside, pool.outside]) - pool.outside[0]
    held_out = np.zeros((2, 2, len(inside)))  # parity, then trees and polynomial
    with_terms = [n_terms(pool) > first for first in (1 + n, n)]
    # With no fold left out, all pairs are seen; that fit comes last.
    for fold in [*range(FOLDS), FOLDS]:
        seen, here = pool.folds != fold, pool.folds == fold
        both = np.concatenate([seen, seen])
        features, leaves = grown_trees(rows[both], values[both])
        middle = float(values[both].mean() + pool.outside[0])  # which is no part of the trees
        grown = parts_of_trees(features, leaves, inside)
        grown[0] += middle
        held_out[:, 0, here] = grown[:, here]
        fits = [
            _sparse(asked, features, leaves, parity, seen) if with_terms[parity] else None
            for parity in (0, 1)
        ]
        for parity, fit in enumerate(fits):
            if fit is not None:
                held_out[parity, 1, here] = fit[2][here]
    answer: tuple[list[Model], list[Model]] = ([], [])
    for parity in (0, 1):
        held_out[parity, :, 0] = asked.target(parity)[0]  # all fits see (N, ∅)
        terms, beta = terms_of_trees(features, leaves, n, parity, 0)
        if not parity:
            terms, beta = (
                np.concatenate([all_terms(n, (0,), DEPTH), terms]),
                np.append(middle, beta),
            )
        parts = indices_of_terms(terms, beta, asked.masses, n)
        answer[parity].append(Model(parts, grown[parity], held_out[parity, 0]))
        fit = fits[parity]
        if fit is not None:
            parts = indices_of_terms(fit[0], fit[1], asked.masses, n)
            answer[parity].append(Model(parts, fit[2], held_out[parity, 1]))
    return answer


def _sparse(
    asked: Question,
    features: Any,  # noqa: ANN401
    leaves: Any,  # noqa: ANN401
    parity: int,
    seen: BoolVector,
) -> tuple[IntMatrix, FloatVector, FloatVector]:
    """Return the largest terms of the trees, their coefficients by least squares, and the fit."""
    from scipy.linalg import cho_factor, cho_solve

    pool, n = asked.pool, asked.pool.n_players
    first = all_terms(n, (1,) if parity else (0,), DEPTH)
    found, size = terms_of_trees(features, leaves, n, parity, 3 if parity else 2)
    order = np.argsort(-np.abs(size), kind="stable")[: n_terms(pool) - len(first)]
    terms = np.concatenate([first, found[order]])
    design = products(pool.signs, terms)
    scaled = design.T * (asked.pair_weights * seen)
    gram = scaled @ design
    gram.flat[:: len(gram) + 1] += RIDGE * np.trace(gram) / len(gram)
    factor = cho_factor(gram, overwrite_a=True)
    beta = cho_solve(factor, scaled @ asked.target(parity))
    return terms, beta, design @ beta


def all_terms(n: int, degrees: tuple[int, ...], width: int = 0) -> IntMatrix:
    """Return all terms of some degrees, filled up with n."""
    width = max(width, *degrees)
    rows = [
        [*players, *[n] * (width - degree)]
        for degree in degrees
        for players in combinations(range(n), degree)
    ]
    return np.array(rows, np.int64)


def products(signs: FloatMatrix, terms: IntMatrix) -> FloatMatrix:
    """Return the product of signs of each term [m, terms]."""
    filled = np.concatenate([signs, np.ones((len(signs), 1))], axis=1)
    design = np.ones((len(signs), len(terms)))
    for place in range(terms.shape[1]):
        design *= filled[:, terms[:, place]]
    return design
