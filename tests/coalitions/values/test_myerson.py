from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalitions import (
    AirportGame,
    GraphRestrictedGame,
    InvalidInputError,
    SynergyGraph,
    TableGame,
    myerson,
    shapley,
)
from coalitions.values.owen_myerson import _connected, _neighbours
from tests.coalitions.table_games import Asked, links, mask, relabelled, subsets, tables


@st.composite
def games_with_links(draw, max_players=6):
    table = draw(tables(max_players=max_players))
    return table, draw(links(len(table).bit_length() - 1))


def components(players, pairs):
    left, found = set(players), []
    while left:
        part = {left.pop()}
        while True:
            more = {k for i, j in pairs for k in (i, j) if {i, j} & part} & left
            if not more:
                break
            part |= more
            left -= more
        found.append(part)
    return found


def restricted_table(table, pairs):
    n = len(table).bit_length() - 1
    return np.array(
        [
            sum(
                table[mask(part)] - table[0]
                for part in components([k for k in range(n) if code >> k & 1], pairs)
            )
            for code in range(1 << n)
        ]
    )


@given(games_with_links())
def test_myerson_value_is_the_shapley_value_of_the_restricted_game(case):
    table, pairs = case
    truth = shapley(TableGame(restricted_table(table, pairs))).values
    np.testing.assert_allclose(myerson(TableGame(table), pairs), truth, atol=1e-9)
    np.testing.assert_allclose(myerson(Asked(table), pairs), truth, atol=1e-9)
    restricted = GraphRestrictedGame(TableGame(table), pairs)
    np.testing.assert_allclose(shapley(restricted).values, truth, atol=1e-9)


@given(games_with_links())
def test_components_get_what_they_are_worth(case):
    """Myerson 1977, component efficiency."""
    table, pairs = case
    found = myerson(TableGame(table), pairs)
    for part in components(range(len(found)), pairs):
        assert found[list(part)].sum() == pytest.approx(table[mask(part)] - table[0], abs=1e-9)


@given(games_with_links())
def test_a_link_is_worth_the_same_to_both_ends(case):
    """Myerson 1977, fairness: taking a link away changes both ends alike."""
    table, pairs = case
    game = TableGame(table)
    whole = myerson(game, pairs)
    for link in pairs:
        without = myerson(game, [pair for pair in pairs if pair != link])
        i, j = link
        assert whole[i] - without[i] == pytest.approx(whole[j] - without[j], abs=1e-9)


@given(games_with_links(max_players=5), st.integers(0, 5))
def test_relabelled_game_gives_relabelled_values(case, seed):
    table, pairs = case
    n = len(table).bit_length() - 1
    order = np.random.default_rng(seed).permutation(n)
    place = np.argsort(order)
    moved = [(int(place[i]), int(place[j])) for i, j in pairs]
    np.testing.assert_allclose(
        myerson(TableGame(relabelled(table, order.tolist())), moved),
        myerson(TableGame(table), pairs).values[order],
        atol=1e-9,
    )


def test_majority_on_a_path():
    """Everybody has one vote of three, but only the middle can talk to both ends."""
    majority = TableGame([0, 0, 0, 1, 0, 1, 1, 1])
    np.testing.assert_allclose(
        myerson(majority, [(0, 1), (1, 2)]), [1 / 6, 4 / 6, 1 / 6], atol=1e-12
    )


@given(tables(max_players=6))
def test_complete_graph_gives_shapley_and_empty_graph_own_worth(table):
    game = TableGame(table)
    n = game.n_players
    everybody = [(i, j) for j in range(n) for i in range(j)]
    np.testing.assert_allclose(myerson(game, everybody), shapley(game).values, atol=1e-9)
    alone = table[1 << np.arange(n)] - table[0]
    np.testing.assert_allclose(myerson(game, []), alone, atol=1e-12)


@given(st.integers(1, 7), st.data())
def test_every_connected_coalition_comes_up_once_with_its_border(n, data):
    pairs = data.draw(links(n))
    chunk = data.draw(st.integers(1, 5))  # stops and starts again in the middle of everything
    listed = list(_connected(_neighbours(pairs, AirportGame([1.0] * n)), chunk))
    assert all(len(coalitions) == chunk for coalitions, _ in listed[:-1])
    coalitions, borders = (np.concatenate(part).tolist() for part in zip(*listed, strict=True))
    found = dict(zip(coalitions, borders, strict=True))
    assert len(found) == len(coalitions)
    truth = {}
    for part in subsets(range(n)):
        if part and len(components(part, [p for p in pairs if set(p) <= set(part)])) == 1:
            near = {k for i, j in pairs for k in (i, j) if {i, j} & set(part)}
            truth[mask(part)] = mask(near - set(part))
    assert found == truth


def test_long_path_needs_few_evaluations(rng):
    n = 40
    weights = rng.random(n)

    class Squared:
        n_players = n
        rows = 0

        def __call__(self, coalitions):
            self.rows += len(coalitions)
            return (coalitions @ weights) ** 2

    game = Squared()
    path = SynergyGraph.from_edges(n, np.arange(n - 1), np.arange(1, n), np.ones(n - 1))
    found = myerson(game, path)
    assert game.rows == n * (n + 1) // 2 + 1
    assert found.values.sum() == pytest.approx(weights.sum() ** 2)


def test_bad_links_and_dense_graphs_are_refused(monkeypatch):
    game = TableGame([0, 1, 1, 2])
    for link in [(0, 2), (1, 1), (-1, 0)]:
        with pytest.raises(InvalidInputError, match="a link"):
            myerson(game, [link])
    with pytest.raises(InvalidInputError, match="the graph has 3 players"):
        myerson(game, SynergyGraph(np.zeros((3, 3))))
    monkeypatch.setattr("coalitions.values.owen_myerson.MOST_CONNECTED", 2)
    with pytest.raises(InvalidInputError, match="more than 2 connected coalitions"):
        myerson(Asked(game.table), [(0, 1)])


def test_agrees_with_coopgame(rng):
    coopgame = pytest.importorskip("coopgame")
    n = 11
    table = rng.random(1 << n)
    table[0] = 0
    pairs = [(i, j) for j in range(n) for i in range(j) if rng.random() < 0.3]
    truth = coopgame.myerson(coopgame.Game(table[1:].tolist()), pairs)
    np.testing.assert_allclose(myerson(TableGame(table), pairs), truth, atol=1e-10)
