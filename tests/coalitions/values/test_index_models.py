"""The models of the portfolio for any index, and the correction of what they get wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from coalitions import (
    INDICES,
    INTERACTION_ESTIMATORS,
    FunctionGame,
    InvalidInputError,
    TableGame,
    interactions,
)
from coalitions.values.budget import Evaluator
from coalitions.values.designs import Pool, random_pairs
from coalitions.values.estimators.portfolio import INDEX_FITS, sampled_index
from coalitions.values.exact import indices_of_table
from coalitions.values.interaction_indices import coalitions_of_size, weighted_sums
from coalitions.values.models.correction import correction, importance_of
from coalitions.values.models.index_models import (
    IndexModel,
    IndexQuestion,
    all_terms,
    indices_of_terms,
    sign_products,
    symmetric_parts,
)
from tests.coalitions.table_games import Asked, tables

N = 6
NAMES = sorted(INDICES)


def smooth_table(n, rng):
    members = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
    return np.tanh(members @ rng.normal(size=n)) + 0.3 * members[:, 0] * members[:, 1]


def question(name, order, n_pairs, table, seed=1):
    n = len(table).bit_length() - 1
    index = INDICES[name](order)
    masses = index.masses(n)
    importance = importance_of(masses, n)
    rows = random_pairs(n, n_pairs, seed)
    game = TableGame(table)
    both = np.concatenate([rows, ~rows])
    pool = Pool.of(rows, game(both), (float(table[0]), float(table[-1])), seed)
    return IndexQuestion(index, masses, pool, np.maximum(importance, 1e-4 * importance.max()))


@pytest.mark.parametrize("fit", INDEX_FITS)
@pytest.mark.parametrize("name", ["Co-Moebius", "FBII", "FSII", "STII", "k-SII"])
def test_the_indices_of_a_model_are_those_of_its_values(fit, name, rng):
    asked = question(name, 3, 1 << N, smooth_table(N, rng))  # the pool holds all pairs
    masks = 1 << np.arange(N)
    codes = (asked.pool.signs > 0) @ masks
    for parity, models in enumerate(fit(asked)):
        assert models
        for model in models:
            table = np.empty(1 << N)
            table[codes] = model.fitted
            table[(1 << N) - 1 - codes] = model.fitted * (-1.0 if parity else 1.0)
            truth = indices_of_table(table, asked.index)
            for size, values in model.indices.items():
                np.testing.assert_allclose(values, truth[size], atol=1e-7)


def wrong(asked):
    """Models that are wrong on purpose: large random coefficients that never saw a value."""
    n = asked.pool.n_players
    rng = np.random.default_rng(5)
    models = []
    for degrees in ((0, 2), (1,)):  # even, odd
        terms = all_terms(n, degrees)
        beta = rng.normal(size=len(terms))
        guess = sign_products(asked.pool.signs, terms) @ beta
        models.append([IndexModel(indices_of_terms(terms, beta, asked.masses, n), guess, guess)])
    return models[0], models[1]


@pytest.mark.parametrize("name", ["Moebius", "FBII", "SII", "STII"])
def test_a_wrong_model_costs_evaluations_and_not_correctness(name, rng):
    table = smooth_table(11, rng)
    truth = interactions(TableGame(table), name, 2).values
    index = INDICES[name](2)

    def error(budget):
        found = [
            sampled_index(Evaluator(TableGame(table), budget), index, seed, (wrong,)).values
            for seed in range(4)
        ]
        return np.sqrt(np.mean((found - truth) ** 2))

    errors = [error(budget) for budget in (80, 320, 1280)]
    assert errors[0] > 1.4 * errors[1]
    assert errors[2] < max(errors[1] / 1.8, 1e-12)  # by then Möbius has all it depends on
    assert error(1 << 11) < 1e-10


@pytest.mark.parametrize("name", ["FBII"])
def test_the_correction_is_unbiased(name, rng):
    table = rng.normal(size=1 << 6)
    index = INDICES[name](2)
    truth = indices_of_table(table, index)
    for size in index.sizes():
        draws = []
        for seed in range(250):
            asked = question(name, 2, 14, table, seed)
            pool = asked.pool
            rows = np.concatenate([pool.signs > 0, pool.signs < 0])
            known = np.concatenate([pool.inside, pool.outside])
            mass = asked.masses[size]
            seen = weighted_sums(mass, coalitions_of_size(6, size), rows, known)
            draws.append(seen + correction(pool, mass, size, pool.inside, pool.outside).values)
        stderr = np.std(draws, axis=0) / np.sqrt(len(draws))
        assert (np.abs(np.mean(draws, axis=0) - truth[size]) <= 4.5 * stderr + 1e-9).all()


@pytest.mark.parametrize("name", NAMES)
def test_with_all_pairs_the_indices_are_exact(name, rng):
    table = rng.normal(size=1 << 5)
    found = interactions(Asked(table), name, 2, method="portfolio", budget=1 << 5)
    truth = interactions(TableGame(table), name, 2)
    np.testing.assert_allclose(found.values, truth.values, atol=1e-8)


@pytest.mark.parametrize("name", [name for name in NAMES if INDICES[name].efficient])
@settings(max_examples=8)
@given(table=tables(min_players=4, max_players=5))
def test_sampled_indices_are_efficient_where_the_index_is(name, table):
    found = interactions(Asked(table), name, 2, method="portfolio", budget=12)
    assert found.values.sum() == pytest.approx(table[-1] - table[0], abs=1e-6)
    assert np.isfinite(found.stderr).all()


def test_a_smooth_game_is_found_with_few_evaluations_and_honest_errors(rng):
    table = smooth_table(12, rng)
    truth = interactions(TableGame(table), "k-SII", 2)
    covered, errors = [], []
    for seed in range(2):
        found = interactions(Asked(table), "k-SII", 2, budget=400, seed=seed)
        assert (found.method, found.evaluations) == ("portfolio", 400)
        low, high = found.interval(0.95)
        covered.append(((low <= truth.values) & (truth.values <= high)).mean())
        errors.append(((found.values - truth.values) ** 2).mean())
    assert np.mean(covered) >= 0.9
    assert np.sqrt(np.mean(errors)) < 0.1 * truth.values.std()


def test_the_same_seed_gives_the_same_numbers_and_budgets_are_kept(rng):
    table = smooth_table(9, rng)
    game = Asked(table)
    one = interactions(game, "SII", 3, budget=100, seed=3)
    assert game.rows == one.evaluations == 100
    two = interactions(Asked(table), "SII", 3, budget=100, seed=3, batch_size=7)
    np.testing.assert_array_equal(one.values, two.values)
    assert (one.values != interactions(Asked(table), "SII", 3, budget=100, seed=4).values).any()


def test_a_target_error_stops_early(rng):
    weights = rng.normal(size=20)
    game = FunctionGame(lambda rows: rows @ weights + 0.01 * np.sin(rows.sum(axis=1)), 20)
    found = interactions(game, "SII", 2, budget=2000, target_error=0.05)
    assert found.evaluations < 2000
    assert found.stderr.max() <= 0.05


@pytest.mark.parametrize("name", sorted(INTERACTION_ESTIMATORS))
def test_constant_and_tiny_games_break_nothing(name):
    for n in (1, 2, 3):
        found = interactions(Asked(np.full(1 << n, 2.5)), "k-SII", min(2, n), method=name)
        np.testing.assert_allclose(found.values, 0.0, atol=1e-12)
        assert np.isfinite(found.stderr).all()


def test_a_portfolio_without_models_is_refused():
    with pytest.raises(InvalidInputError, match="at least one model"):
        INTERACTION_ESTIMATORS["portfolio"](INDICES["SII"](1), ())


def test_many_players_are_no_matter(rng):
    weights = rng.normal(size=1100)  # C(1100, 550) is no float
    game = FunctionGame(lambda rows: rows @ weights, 1100)
    found = sampled_index(Evaluator(game, 12), INDICES["BII"](1), 0, (symmetric_parts,))
    assert np.isfinite(found.values).all()
    assert np.isfinite(found.stderr).all()
