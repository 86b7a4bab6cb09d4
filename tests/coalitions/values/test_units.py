"""Shapley(c · game) = c · Shapley(game), whatever the unit of the values."""

from __future__ import annotations

import numpy as np
import pytest

from coalitions import (
    ESTIMATORS,
    AirportGame,
    FunctionGame,
    InvalidInputError,
    TableGame,
    UnanimityGame,
    VotingGame,
    banzhaf,
    beta_shapley,
    interactions,
    shapley,
)
from tests.coalitions.table_games import pairs_of

HUGE_AND_TINY = (1e160, 1e-160)

GAME = UnanimityGame.random(14, 60, seed=1)


def times(game, factor):
    return FunctionGame(lambda rows: factor * game(rows), game.n_players)


def assert_is_multiple(scaled, plain, factor, digits=1e-9):
    for found, known in ((scaled.values, plain.values), (scaled.stderr, plain.stderr)):
        known = np.asarray(known)
        np.testing.assert_allclose(found / factor, known, atol=digits * np.abs(known).max(), rtol=0)


@pytest.mark.parametrize("factor", HUGE_AND_TINY)
@pytest.mark.parametrize("method", [name for name in ESTIMATORS if name not in ("exact", "gtg")])
def test_every_estimate_is_multiplied_by_what_the_game_is(method, factor):
    budget = 300 if method == "portfolio" else 800
    one, other = (shapley(times(GAME, c), method, budget, seed=3) for c in (1.0, factor))
    assert one.stderr.max() > 0
    assert_is_multiple(other, one, factor)
    assert other.evaluations == one.evaluations
    assert other.base == factor * (one.base or 0.0)


@pytest.mark.parametrize("factor", [*HUGE_AND_TINY, 1e300, 1e-300, 1e-5])
def test_exact_values_are_multiplied_as_well(factor):
    game = UnanimityGame.random(9, 30, seed=2)
    assert_is_multiple(shapley(times(game, factor)), shapley(times(game, 1.0)), factor)


@pytest.mark.parametrize("factor", [*HUGE_AND_TINY, 1e300, 1e-300, 1e-5])
@pytest.mark.parametrize("budget", [50, 100])
def test_few_evaluations_of_rough_games_are_multiplied_too(factor, budget):
    rng = np.random.default_rng(1)
    vote = VotingGame(rng.integers(1, 20, 16), 80)
    noise = TableGame(rng.normal(size=1 << 12))
    for game in (vote, noise):
        one, other = (shapley(times(game, c), budget=budget, seed=4) for c in (1.0, factor))
        assert_is_multiple(other, one, factor, digits=1e-8)


@pytest.mark.parametrize("factor", HUGE_AND_TINY)
@pytest.mark.parametrize("method", ["permutation", "antithetic"])
def test_compiled_games_walk_the_same_paths(method, factor):
    costs = np.arange(1.0, 13.0)
    one, other = (
        shapley(AirportGame(c * costs), method, budget=3000, seed=1) for c in (1.0, factor)
    )
    assert_is_multiple(other, one, factor)
    assert other.evaluations == one.evaluations


@pytest.mark.parametrize("factor", HUGE_AND_TINY)
@pytest.mark.parametrize(
    "concept",
    [
        lambda game: banzhaf(game, budget=300, seed=3),
        lambda game: beta_shapley(game, 2, 3, budget=300, seed=3),
        lambda game: pairs_of(game, budget=300, seed=3),
        lambda game: interactions(game, order=2, budget=300, seed=3),
    ],
    ids=["banzhaf", "beta", "pairs", "interactions"],
)
def test_other_concepts_are_multiplied_too(concept, factor):
    assert_is_multiple(concept(times(GAME, factor)), concept(times(GAME, 1.0)), factor, digits=1e-7)


def test_ends_that_are_dust_do_not_set_the_unit():
    """v(N) is what rounding left of a sum of 1e160; the first two values say nothing of others."""

    def game(rows):
        size = rows.sum(axis=1)
        return np.where((size == 0) | (size == 12), 1e-150 * size, np.sin(rows @ np.arange(12.0)))

    plain = FunctionGame(game, 12)
    one, other = (shapley(times(plain, c), "portfolio", 300) for c in (1.0, 1e160))
    assert_is_multiple(other, one, 1e160)


@pytest.mark.parametrize("method", ["exact", "portfolio", "permutation"])
def test_values_whose_sums_are_no_floats_are_refused_in_a_sentence(method):
    game = FunctionGame(lambda rows: np.where(rows.any(axis=1), 1.7e308, -1.7e308), 5)
    with pytest.raises(InvalidInputError, match="beyond the largest float"):
        shapley(FunctionGame(lambda rows: game(rows) * np.where(rows[:, 0], 1, -1), 5), method, 32)


def test_thresholds_of_gtg_keep_the_unit_of_the_game():
    """Nothing that 1e-160 can change is worth a path, whatever the units inside."""
    result = shapley(times(GAME, 1e-160), "gtg", 100)
    assert not result.values.any()
    same = shapley(times(GAME, 1e160), "gtg", 100, between_rounds=1e157, within_round=1e157)
    assert_is_multiple(same, shapley(times(GAME, 1.0), "gtg", 100), 1e160)
