"""Models for interaction indices: symmetric games, polynomials and trees, for both parts of a game.

A game is the sum of its odd part ½[v(S) − v(N∖S)] and its even part ½[v(S) + v(N∖S)]. A pair of
complements gives one value of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from coalitions.game import BoolVector, FloatMatrix, FloatVector, IntMatrix
from coalitions.values.designs import FOLDS, Pool
from coalitions.values.interaction_indices import Index, Parts, rank_of
from coalitions.values.models.polynomials import (
    DEPTH,
    LEAST_PAIRS,
    RIDGE,
    grown_trees,
    n_terms,
    parts_of_trees,
    terms_of_trees,
)


class IndexModel(NamedTuple):
    """A model of one part of a game, fitted to a pool.

    Attributes
    ----------
    indices
        The model's own interaction indices.
    fitted
        The model at the coalitions of the pool [m].
    held_out
        The same, each by a fit that has not seen its pair [m].
    """

    indices: Parts
    fitted: FloatVector
    held_out: FloatVector


@dataclass(frozen=True, eq=False)
class IndexQuestion:
    """An index that is asked of a pool.

    Attributes
    ----------
    index, masses
        The index, and its weights by the number of others.
    pool
        The evaluated pairs.
    importance
        How much an error at a pair of each size 0 … n/2 counts, squared.
    """

    index: Index
    masses: dict[int, FloatVector]
    pool: Pool
    importance: FloatVector

    def target(self, parity: int) -> FloatVector:
        """Return the odd (1) or the even part (0) at the coalitions of the pool."""
        pool = self.pool
        return pool.odd if parity else (pool.inside + pool.outside) / 2

    @property
    def pair_weights(self) -> FloatVector:
        """The weight of each pair of the pool in a fit by least squares."""
        pool = self.pool
        return self.importance[pool.sizes] / pool.taken[pool.sizes]


IndexFit = Callable[[IndexQuestion], tuple[list[IndexModel], list[IndexModel]]]
"""Fits models of the even and of the odd part; none if the pool is too small for them."""


def indices_of_terms(
    terms: IntMatrix, beta: FloatVector, masses: dict[int, FloatVector], n: int
) -> Parts:
    r"""Return the indices of :math:`\sum_T \beta_T \prod_{i \in T} z_i`, with signs z.

    The joint contribution of S ⊆ T is :math:`2^{|S|}` times the product of the other signs, whose
    mean over all R of a size is known. Terms are rows of players, filled up with n.
    """
    degree = (terms < n).sum(axis=1)
    parts = {}
    for size, mass in masses.items():
        total = np.zeros(comb(n, size))
        for d in range(size, terms.shape[1] + 1):
            of_degree = degree == d
            if not of_degree.any():
                continue
            players = np.sort(terms[of_degree], axis=1)[:, :d]  # n stands last
            each = beta[of_degree] * 2.0**size * (mean_of_signs(d - size, n - size) @ mass)
            for places in combinations(range(d), size):
                ranks = rank_of(players[:, list(places)], n)
                total += np.bincount(ranks, each, minlength=len(total))
        parts[size] = total
    return parts


def mean_of_signs(count: int, n_others: int) -> FloatVector:
    """Return the mean product of some signs over all R of r others, r = 0 … n_others.

    All zero if there are not so many others.
    """
    means = np.zeros(n_others + 1)
    if count > n_others:
        return means
    for r in range(n_others + 1):
        ways = sum(
            (-1) ** (count - inside) * comb(count, inside) * comb(n_others - count, r - inside)
            for inside in range(max(0, r - n_others + count), min(count, r) + 1)
        )
        means[r] = ways / comb(n_others, r)
    return means


def indices_of_sizes(
    by_size: FloatMatrix, masses: dict[int, FloatVector]
) -> dict[int, FloatMatrix]:
    """Return the index that all coalitions of a size have in games of numbers alone.

    `by_size` [n + 1, …] has the value of each number of players, for one game a column.
    """
    return {
        size: np.einsum("r,r...->...", mass, np.diff(by_size, size, axis=0))
        for size, mass in masses.items()
    }


# ----------------------------------------------------------------------------------------
# Symmetric games: a value for each number of players


def symmetric_parts(asked: IndexQuestion) -> tuple[list[IndexModel], list[IndexModel]]:
    """Return the games of the mean even and the mean odd part of each size.

    A size borrows from its neighbours as `coalitions.values.models.polynomials` has it.
    """
    return [_model(asked, 0)], [_model(asked, 1)]


def _model(asked: IndexQuestion, parity: int) -> IndexModel:
    pool = asked.pool
    n = pool.n_players
    s = np.arange(n // 2 + 1)
    near = np.exp(-np.abs(s[:, None] - s))
    # The odd part of the smaller of the two is minus that of the larger; for n/2 they are one size.
    flip = np.where(2 * pool.members > n, -1.0, 1.0) if parity else np.ones(len(pool.sizes))
    has_part = np.where(2 * s == n, 0.0, 1.0) if parity else np.ones(len(s))
    target = asked.target(parity)
    smaller = target * flip
    sums = np.bincount(pool.sizes, smaller, minlength=len(s))
    weighted, weight = near @ sums, near @ pool.taken
    level = has_part * weighted / weight
    level[0] = smaller[0]
    sign = flip * has_part[pool.sizes]
    fitted = flip * level[pool.sizes]
    held_out = sign * (weighted[pool.sizes] - smaller) / np.maximum(1e-9, weight[pool.sizes] - 1)
    held_out[0] = fitted[0] = target[0]
    other = level[: (n + 1) // 2][::-1] * (-1.0 if parity else 1.0)
    same = indices_of_sizes(np.concatenate([level, other]), asked.masses)
    parts = {size: np.full(comb(n, size), float(value)) for size, value in same.items()}
    return IndexModel(parts, fitted, held_out)


# ----------------------------------------------------------------------------------------
# Polynomials of signs, and boosted trees, which are polynomials as well

SPARE_PAIRS = 4
"""Pairs over the number of coefficients without which a fit says nothing."""

MOST_TERMS = 2000
"""Most coefficients of a dense fit."""


def low_degree_parts(asked: IndexQuestion) -> tuple[list[IndexModel], list[IndexModel]]:
    """Return the best games of single players (odd), and of pairs (even).

    What a pair's own value adds to a fit is known, so leaving it out takes no second fit.
    """
    return _dense(asked, 0), _dense(asked, 1)


def _dense(asked: IndexQuestion, parity: int) -> list[IndexModel]:
    pool, n = asked.pool, asked.pool.n_players
    degrees = (1,) if parity else (0, 2)
    count = sum(comb(n, degree) for degree in degrees)
    if count > MOST_TERMS or len(pool.sizes) < count + SPARE_PAIRS:
        return []
    terms = all_terms(n, degrees)
    design, target = sign_products(pool.signs, terms), asked.target(parity)
    scaled = design.T * asked.pair_weights
    inverse = np.linalg.pinv(scaled @ design, rcond=1e-10, hermitian=True)
    beta = inverse @ (scaled @ target)
    fitted = design @ beta
    leverage = np.einsum("ij,ij->i", scaled.T @ inverse, design)
    if leverage[1:].max() > 1 - 1e-6:  # a pair that alone settles a value has no held-out guess
        return []
    held_out = target - (target - fitted) / np.maximum(1e-6, 1 - leverage)
    held_out[0] = fitted[0]
    return [IndexModel(indices_of_terms(terms, beta, asked.masses, n), fitted, held_out)]


def tree_parts(asked: IndexQuestion) -> tuple[list[IndexModel], list[IndexModel]]:
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
        seen, in_fold = pool.folds != fold, pool.folds == fold
        both = np.concatenate([seen, seen])
        features, leaves = grown_trees(rows[both], values[both])
        middle = float(values[both].mean() + pool.outside[0])  # which is no part of the trees
        grown = parts_of_trees(features, leaves, inside)
        grown[0] += middle
        held_out[:, 0, in_fold] = grown[:, in_fold]
        fits = [
            _sparse(asked, features, leaves, parity, seen) if with_terms[parity] else None
            for parity in (0, 1)
        ]
        for parity, fit in enumerate(fits):
            if fit is not None:
                held_out[parity, 1, in_fold] = fit[2][in_fold]
    answer: tuple[list[IndexModel], list[IndexModel]] = ([], [])
    for parity in (0, 1):
        held_out[parity, :, 0] = asked.target(parity)[0]  # all fits see (N, ∅)
        terms, beta = terms_of_trees(features, leaves, n, parity, 0)
        if not parity:
            terms, beta = (
                np.concatenate([all_terms(n, (0,), DEPTH), terms]),
                np.append(middle, beta),
            )
        parts = indices_of_terms(terms, beta, asked.masses, n)
        answer[parity].append(IndexModel(parts, grown[parity], held_out[parity, 0]))
        fit = fits[parity]
        if fit is not None:
            parts = indices_of_terms(fit[0], fit[1], asked.masses, n)
            answer[parity].append(IndexModel(parts, fit[2], held_out[parity, 1]))
    return answer


def _sparse(
    asked: IndexQuestion,
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
    design = sign_products(pool.signs, terms)
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


def sign_products(signs: FloatMatrix, terms: IntMatrix) -> FloatMatrix:
    """Return the product of signs of each term [m, terms]."""
    filled = np.concatenate([signs, np.ones((len(signs), 1))], axis=1)
    design = np.ones((len(signs), len(terms)))
    for place in range(terms.shape[1]):
        design *= filled[:, terms[:, place]]
    return design
