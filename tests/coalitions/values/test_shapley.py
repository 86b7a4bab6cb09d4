"""The front door: what it picks, what it refuses, and that exact means exact."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalitions import (
    ESTIMATORS,
    AirportGame,
    BudgetError,
    Estimate,
    FunctionGame,
    InvalidInputError,
    TableGame,
    UnanimityGame,
    UnknownNameError,
    VotingGame,
    shapley,
)
from coalitions.values.estimators.permutation import Truncated
from coalitions.values.exact import shapley_of_table
from coalitions.values.shapley import PORTFOLIO_BUDGET
from tests.coalitions.table_games import tables
from tests.contracts.test_estimators import by_definition


@given(tables(max_players=6))
def test_exact_is_the_definition(table):
    scale = max(np.abs(table - table[0]).max(), 1e-300)
    np.testing.assert_allclose(shapley_of_table(table), by_definition(table), atol=1e-12 * scale)


@pytest.mark.parametrize("n", [10, 12, 13, 14, 16])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_exact_agrees_with_a_correctly_rounded_sum(n, offset, rng):
    """Both folds (NumPy up to 12 players, compiled above), also far away from zero."""
    import math

    table = rng.normal(size=1 << n) + offset
    masks = np.arange(1 << n)
    size = np.array([int(m).bit_count() for m in masks])
    weight = np.array([1 / (n * math.comb(n - 1, s)) for s in range(n)])
    values = shapley_of_table(table)
    for player in (0, n // 2, n - 1):
        without = masks[(masks >> player & 1) == 0]
        terms = weight[size[without]] * (table[without | 1 << player] - table[without])
        assert values[player] == pytest.approx(math.fsum(terms), abs=1e-12 * (1 + offset * 1e-3))


@settings(max_examples=10)
@given(st.integers(13, 16), st.integers(0, 99))
def test_large_tables_are_efficient_and_symmetric(n, seed):
    sizes = np.array([k.bit_count() for k in range(1 << n)])
    table = np.random.default_rng(seed).normal(size=n + 1)[sizes]
    values = shapley_of_table(table)
    np.testing.assert_allclose(values, (table[-1] - table[0]) / n, atol=1e-12)


def asked(n):
    """Return a game without short cuts."""
    return FunctionGame(AirportGame(np.arange(1.0, n + 1)), n)


def test_auto_takes_the_closed_form_and_evaluates_nothing():
    result = shapley(VotingGame(np.ones(60), 31))
    assert (result.method, result.evaluations) == ("exact", 0)
    assert "closed form" in result.reason
    np.testing.assert_allclose(result.values, 1 / 60)


def test_auto_takes_the_table_whatever_the_budget():
    result = shapley(TableGame(np.arange(16.0)), budget=2)
    assert (result.method, result.evaluations) == ("exact", 16)
    assert "table" in result.reason


@pytest.mark.parametrize(
    ("n", "budget", "method"),
    [
        (5, None, "exact"),
        (16, None, "exact"),
        (17, None, "portfolio"),
        (5, 31, "portfolio"),
        (10, 1024, "exact"),
        (60, PORTFOLIO_BUDGET + 1, "leverage"),
    ],
)
def test_auto_by_players_and_budget(n, budget, method):
    result = shapley(asked(n), budget=budget)
    assert result.method == method
    assert result.reason
    assert result.evaluations <= (budget or 1 << 16)


def test_the_default_budget_is_100_for_each_player():
    result = shapley(asked(20), "permutation")
    assert 1900 < result.evaluations <= 2000


def test_a_default_budget_is_enough_for_every_method():
    for name in ESTIMATORS:
        assert shapley(asked(3), name).method == name


def test_an_estimator_with_its_options():
    game = FunctionGame(VotingGame(np.ones(12), 3), 12)
    loose = shapley(game, Truncated(tolerance=0.5), 200)
    same = shapley(game, "truncated", 200, tolerance=0.5)
    assert loose.method == "truncated"
    np.testing.assert_array_equal(loose.values, same.values)
    with pytest.raises(TypeError, match="tolerence"):
        shapley(game, "truncated", 200, tolerence=0.5)
    with pytest.raises(TypeError, match="an estimator with its options set"):
        shapley(game, Truncated(), 200, tolerance=0.5)


def test_a_generator_is_a_seed():
    one, same = (
        shapley(asked(20), "permutation", 100, seed=np.random.default_rng(3)) for _ in range(2)
    )
    np.testing.assert_array_equal(one.values, same.values)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"method": "permutatoin"}, UnknownNameError, "did you mean 'permutation'"),
        ({"budget": 0}, InvalidInputError, "the budget is 0"),
        ({"budget": 2.5}, InvalidInputError, "the budget is 2.5"),
        ({"method": "exact", "budget": 7}, BudgetError, "exact needs at least 8 evaluations"),
        ({"method": "permutation", "budget": 5}, BudgetError, "needs at least 6 evaluations"),
        ({"budget": 3}, BudgetError, "portfolio needs at least 4"),
        ({"batch_size": 0}, InvalidInputError, "the batch size is 0"),
        ({"target_error": -1.0}, InvalidInputError, "the target error is -1.0"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, error, message):
    with pytest.raises(error, match=message):
        shapley(asked(3), **arguments)


def test_not_a_game():
    with pytest.raises(InvalidInputError, match="FunctionGame"):
        shapley(lambda rows: rows.sum(axis=1))


def test_intervals_are_students():
    narrow = Estimate(np.zeros(1), np.ones(1), 9, "permutation")
    wide = Estimate(np.zeros(1), np.ones(1), 9, "permutation", degrees_of_freedom=1)
    assert narrow.interval()[1][0] == pytest.approx(1.959964, abs=1e-6)
    assert wide.interval()[1][0] == pytest.approx(12.706205, abs=1e-6)
    with pytest.raises(InvalidInputError, match="confidence"):
        narrow.interval(1.0)


@pytest.mark.parametrize("name", ["permutation", "antithetic"])
@pytest.mark.parametrize("n", [2, 3, 9, 40])
def test_compiled_sampling_is_as_good_as_its_errors(name, n):
    game = UnanimityGame.random(n, 4 * n, seed=n)
    truth = game.shapley_values()
    results = [shapley(game, name, 4000, seed=seed) for seed in range(30)]
    values = np.array([result.values for result in results])
    errors = np.array([result.stderr for result in results])
    for result in results:
        assert result.values.sum() == pytest.approx(truth.sum())
        assert result.evaluations <= 4000
    z = (values - truth) / np.maximum(errors, 1e-12)
    assert np.abs(z.mean(axis=0)).max() < 4.5 / np.sqrt(30)
    assert np.abs(z).max() < 6
    again = shapley(game, name, 4000, seed=7)
    np.testing.assert_array_equal(again.values, results[7].values)
    assert (results[0].values != results[1].values).any() or n == 2 or errors.max() < 1e-9


def test_compiled_sampling_counts_distinct_coalitions():
    """Two players have four coalitions, three have eight; 40 have no repeats in the middle."""
    for n, expected in ((2, 4), (3, 8)):
        game = AirportGame(np.arange(1.0, n + 1))
        assert shapley(game, "permutation", 1000).evaluations == expected
    result = shapley(AirportGame(np.ones(40)), "permutation", 2 + 39 * 20)
    # Twenty paths: only sizes 1, 2, 38 and 39 are small enough to meet again.
    assert 2 + 35 * 20 <= result.evaluations <= 2 + 39 * 20


def test_import_is_light():
    program = (
        "import sys, coalitions; coalitions.ESTIMATORS.names(); coalitions.TableGame;"
        "print([m for m in ('numba', 'scipy', 'networkx', 'torch') if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
