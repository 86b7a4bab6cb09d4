"""Shapley values printed in papers and textbooks."""

from __future__ import annotations

import numpy as np

from coalitions import AirportGame, FunctionGame, TableGame, UnanimityGame, VotingGame, shapley


def test_un_security_council_shapley_shubik_1954():
    """Five permanent members with a veto, ten others, nine votes: 0.1963 and 0.001865."""
    game = VotingGame([7] * 5 + [1] * 10, quota=39)
    values = shapley(game).values
    np.testing.assert_allclose(values[:5], 0.1963, atol=5e-5)
    np.testing.assert_allclose(values[5:], 0.001865, atol=5e-7)
    sampled = shapley(game, "permutation", 20_000, seed=1)
    low, high = sampled.interval(0.9999)
    assert ((low <= values) & (values <= high)).all()


def test_glove_market_of_one_left_and_two_right_gloves():
    """Wikipedia, "Shapley value": 4/6 for the only left glove, 1/6 for each right one."""
    values = shapley(TableGame([0, 0, 0, 1, 0, 1, 0, 1])).values
    np.testing.assert_allclose(values, [4 / 6, 1 / 6, 1 / 6], rtol=1e-14)


def test_airport_problem_of_wikipedia():
    """Costs 8, 11, 13 and 18 are shared 2, 3, 4 and 9 (Wikipedia, "Airport problem")."""
    np.testing.assert_allclose(shapley(AirportGame([8, 11, 13, 18])).values, [2, 3, 4, 9])


def test_owner_and_workers_of_osborne_and_rubinstein():
    """Wikipedia's business game: an owner gets m·p/2 and each of m workers p/2."""
    m, p = 6, 3.0
    game = FunctionGame(lambda rows: rows[:, 0] * p * rows[:, 1:].sum(axis=1), m + 1)
    np.testing.assert_allclose(shapley(game).values, [m * p / 2] + [p / 2] * m)


def test_unanimity_game_is_shared_equally_shapley_1953():
    values = shapley(UnanimityGame(5, [[1, 2, 4]], [6.0])).values
    np.testing.assert_allclose(values, [0, 2, 2, 0, 2])


def test_simple_majority_with_one_strong_player():
    """In [3; 2, 1, 1] the strong player is pivotal in 4 of 6 orders."""
    game = VotingGame([2, 1, 1], quota=3)
    np.testing.assert_allclose(shapley(game).values, [4 / 6, 1 / 6, 1 / 6])
    equal = shapley(VotingGame(np.ones(11), quota=6)).values
    assert np.allclose(equal, 1 / 11)
