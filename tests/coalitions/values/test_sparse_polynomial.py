"""A game that is a polynomial of few terms is found out, and no other game is taken for one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from coalitions import FunctionGame, shapley
from coalitions.values.designs import FOLDS, Pool
from coalitions.values.models import polynomials as sparse
from coalitions.values.models.polynomials import (
    coefficients,
    polynomial_fits,
    products,
    regression_weights,
    signs_of_terms,
    solution,
    trees,
    with_ridge,
)
from tests.coalitions.values.test_portfolio import pool_of

N = 20


@pytest.fixture
def terms():
    """Return thirty triples of players and five fives, which share players with each other."""
    rng = np.random.default_rng(3)
    threes = {tuple(sorted(rng.choice(N, 3, replace=False).tolist())) for _ in range(30)}
    fives = {
        tuple(sorted({*first, *second}))
        for first, second in pairwise(sorted(threes))
        if len({*first, *second}) == 5
    }
    assert len(fives) >= 5
    return [*sorted(threes), *sorted(fives)[:5]]


@pytest.fixture
def game(terms):
    def value(rows):
        z = np.where(rows, 1.0, -1.0)
        odd = z @ np.arange(N) * 5
        for k, term in enumerate(terms):
            odd += (-1) ** k * (1 + k / 10) * z[:, term].prod(axis=1)
        return odd + z[:, 0] * z[:, 1]  # an even part is no part of the values

    return FunctionGame(value, N)


@pytest.fixture
def truth(terms):
    values = np.arange(N) * 10.0
    for k, term in enumerate(terms):
        values[list(term)] += 2 * (-1) ** k * (1 + k / 10) / len(term)
    return values


def singles_of(pool):
    """Return the best additive game, with room for terms of six players."""
    terms = np.full((N, 6), N, np.int64)
    terms[:, 0] = np.arange(N)
    return polynomial_fits(pool, terms, pool.folds < FOLDS)[0]


def test_all_terms_are_found_from_single_players_on(game, truth):
    pool = pool_of(game, N, 1000)
    found = sparse.exact_polynomial(pool, singles_of(pool))
    assert found is not None
    np.testing.assert_allclose(found.values, truth, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(found.held_out, pool.odd, atol=1e-9)


def test_bits_are_counted_as_signs_are_multiplied(game, terms):
    pool, players = pool_of(game, N, 300), np.full((len(terms), 6), N)
    for row, term in zip(players, terms, strict=True):
        row[: len(term)] = term
    design = signs_of_terms(pool, players)
    for seen in (pool.folds < FOLDS, pool.folds != 2):
        weights = regression_weights(pool, seen)
        gram = products(pool, players, weights)
        assert np.allclose(gram, (design.T * weights) @ design, rtol=0, atol=1e-12 * gram.max())


def test_variances_are_those_of_the_inverse(rng):
    design, target = rng.normal(size=(30, 8)), rng.normal(size=8)
    gram = with_ridge(design.T @ design)
    beta, variances = coefficients(gram, target)
    assert np.allclose(beta, np.linalg.solve(gram, target))
    assert np.allclose(variances, np.linalg.inv(gram).diagonal())
    assert np.allclose(solution(gram, target), beta)


def test_the_values_of_a_sparse_polynomial_are_exact_and_in_doubt(game, truth):
    answer = shapley(game, "portfolio", 2000)
    np.testing.assert_allclose(answer.values, truth, atol=1e-6)
    assert 0 < answer.stderr.max() < 2


def test_only_the_polynomial_is_left_of_the_trees(game):
    (found,) = trees(pool_of(game, N, 1000))
    assert found.guarded


def test_a_little_noise_is_no_polynomial(game):
    rng = np.random.default_rng(5)
    pool = pool_of(game, N, 1000)
    noisy = Pool(pool.signs, pool.inside + rng.normal(0, 1e-4, 1001), pool.outside, 0)
    assert sparse.exact_polynomial(noisy, singles_of(noisy)) is None
    assert len(trees(noisy)) == 3


def test_no_search_begins_without_hope(game, monkeypatch):
    pool = pool_of(game, N, 1000)
    far = singles_of(pool)._replace(fitted=pool.odd * 0.8)
    monkeypatch.setattr(sparse, "_likely", None)
    assert sparse.exact_polynomial(pool, far) is None


def test_a_pair_that_alone_tells_two_players_apart_is_no_proof():
    """Players 3 and 4 are together but for the last pair, which nobody could tell without it."""
    rng = np.random.default_rng(0)
    signs = np.concatenate([np.ones((1, 5)), rng.choice([-1.0, 1.0], (30, 5))])
    signs[:, 4] = signs[:, 3]
    signs[-1] = [1, -1, -1, 1, -1]
    for last, proof in ((slice(None), False), (slice(-1), True)):
        rows = signs[last]
        odd = rows @ np.array([1.0, 2, 3, 4, 0 if proof else 5])
        pool = Pool(rows, odd, -odd, 0)
        terms = np.full((4 if proof else 5, 6), 5, np.int64)
        terms[:, 0] = np.arange(len(terms))
        design = signs_of_terms(pool, terms)
        weights = regression_weights(pool, np.ones(len(rows), np.bool_))
        assert (sparse._settled(pool, terms, design, weights) is not None) == proof
