from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from coalitions import (
    SYNERGIES,
    BudgetError,
    TableGame,
    UnknownNameError,
    estimate_synergy,
)
from tests.coalitions.table_games import Asked, index_of_all, tables
from tests.strategies import synergy_graphs


@pytest.mark.parametrize("method", SYNERGIES)
@given(graph=synergy_graphs(max_players=6, scales=(1.0,)))
def test_every_method_gives_a_graph_back_from_its_game(method, graph):
    game = Asked(TableGame.of(graph.game()).table)
    found = estimate_synergy(game, method)
    np.testing.assert_allclose(found.matrix, graph.matrix, atol=1e-9)


@pytest.mark.parametrize("method", ["shapley", "banzhaf"])
@given(table=tables(min_players=2, max_players=5))
def test_exact_synergy_is_the_interaction_index(method, table):
    found = estimate_synergy(TableGame(table), method)
    truth = index_of_all(TableGame(table), method)
    for i in range(found.n_players):
        for j in range(i):
            assert found.matrix[i, j] == pytest.approx(truth[1 << i | 1 << j], abs=1e-9)


@pytest.mark.parametrize("method", ["shapley", "banzhaf"])
def test_sampled_synergy_keeps_the_budget_and_the_seed(method, rng):
    table = rng.random(1 << 7)
    game = Asked(table)
    one = estimate_synergy(game, method, budget=100 if method == "banzhaf" else 100 + 70, seed=1)
    assert game.rows <= 170
    two = estimate_synergy(Asked(table), method, budget=100 if method == "banzhaf" else 170, seed=1)
    assert (one.matrix == two.matrix).all()


def test_pairs_ask_for_pairs_only():
    game = Asked([1, 2, 3, 7, 4, 4, 4, 100])
    found = estimate_synergy(game, "pairs")
    assert game.rows == 7
    assert found.matrix.tolist() == [[0, 3, -1], [3, 0, -2], [-1, -2, 0]]
    with pytest.raises(BudgetError, match="need 7 evaluations"):
        estimate_synergy(game, "pairs", budget=6)


def test_names_come_from_the_game_or_the_caller():
    game = TableGame([0, 0, 0, 1], labels=["ann", "bob"])
    assert estimate_synergy(game).labels == ("ann", "bob")
    assert estimate_synergy(game, names=["a", "b"]).labels == ("a", "b")
    assert estimate_synergy(Asked([0, 0, 0, 1])).labels == ("0", "1")


def test_unknown_methods_get_a_sentence():
    with pytest.raises(UnknownNameError, match="there are: banzhaf, pairs, shapley"):
        estimate_synergy(TableGame([0, 1]), "guess")
