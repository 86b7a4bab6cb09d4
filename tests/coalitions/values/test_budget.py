"""What is the same for Shapley values, semivalues and interactions: budget, method, seed."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from coalitions import (
    ESTIMATORS,
    PAIR_ESTIMATORS,
    SEMIVALUE_ESTIMATORS,
    FunctionGame,
    InvalidInputError,
    Kernel,
    SynergyGraph,
    banzhaf,
    beta_shapley,
    shapley,
)
from tests.coalitions.table_games import pairs_of

WEIGHTS = np.arange(1.0, 21.0)


@njit
def _add(state, player, parameters):
    state[0] += parameters[player]
    return state[0]


class Compiled:
    n_players = 20
    kernel = Kernel(_add, WEIGHTS, np.zeros(1))

    def __call__(self, coalitions):
        return coalitions @ WEIGHTS


class KnowsItself:
    """A game that is never asked: it offers every closed form by name."""

    n_players = 40

    def __call__(self, coalitions):
        raise AssertionError("nobody needs to ask")

    def semivalues(self, sizes):
        return np.full(40, sizes.sum())

    def pair_interactions(self, index):
        return np.full((40, 40), float(len(index)))


def test_a_compiled_game_of_20_players_is_exact_without_being_asked():
    result = shapley(Compiled())
    assert result.method == "exact"
    np.testing.assert_allclose(result.values, WEIGHTS)
    assert shapley(FunctionGame(Compiled(), 20)).method == "portfolio"


def test_games_offer_closed_forms_by_name():
    assert banzhaf(KnowsItself()).evaluations == 0
    np.testing.assert_allclose(beta_shapley(KnowsItself(), 2, 1).values, 1.0)
    assert pairs_of(KnowsItself(), "banzhaf")[0, 1] == 7.0


def test_intervals_of_pairs_hold_the_interactions(rng):
    weights = np.triu(rng.normal(size=(20, 20)), 1)
    graph = SynergyGraph(weights + weights.T)
    asked = FunctionGame(graph.game(), 20)
    for index in ("shapley", "banzhaf"):
        low, high = pairs_of(asked, index, budget=1000).interval()
        slack, truth = 1e-9, graph.matrix[np.triu_indices(20, 1)]
        assert (low - slack <= truth).all()
        assert (truth <= high + slack).all()


@pytest.mark.parametrize("method", ["msr", "regression", "star"])
def test_progress_and_batches_reach_every_sampler(method):
    calls, seen = [], []
    game = FunctionGame(lambda rows: calls.append(len(rows)) or rows @ WEIGHTS, 20)
    banzhaf(game, method=method, budget=500, batch_size=64, progress=seen.append)
    assert max(calls) <= 64
    assert seen[-1].total == 500
    assert len(seen) == len(calls)


def test_whoever_cannot_stop_early_says_so():
    game = FunctionGame(lambda rows: rows @ WEIGHTS, 20)
    with pytest.raises(InvalidInputError, match="star cannot stop early"):
        banzhaf(game, method="star", budget=500, target_error=0.1)


def test_every_estimator_can_work_with_its_least_budget(rng):
    table = rng.random(1 << 6)
    masks = 1 << np.arange(6)
    game = FunctionGame(lambda rows: table[rows @ masks], 6)
    for name in SEMIVALUE_ESTIMATORS:
        least = SEMIVALUE_ESTIMATORS[name](np.full(6, 1 / 6)).minimum_budget(6)
        if name != "regression":  # whose samples may happen not to tell coefficients apart
            assert banzhaf(game, method=name, budget=least).method == name
    for name in PAIR_ESTIMATORS:
        for index in PAIR_ESTIMATORS[name].indices:
            least = PAIR_ESTIMATORS[name](index).minimum_budget(6)
            if name != "regression":
                found = pairs_of(game, index, method=name, budget=least)
                assert np.isfinite(found.values).all()


@pytest.mark.parametrize("method", sorted(ESTIMATORS))
def test_a_lone_player_gets_everything_by_any_method(method):
    alone = FunctionGame(lambda rows: 3.0 + 2.0 * rows[:, 0], 1)
    assert shapley(alone, method).values == [2.0]
    assert banzhaf(alone, method="star").values == [2.0]
    assert len(pairs_of(alone, method="chains")) == 0
