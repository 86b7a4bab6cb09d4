"""Each family of games against its definition, written out once more."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalitions import (
    AirportGame,
    FunctionGame,
    GraphRestrictedGame,
    InvalidInputError,
    Kernel,
    SynergyGraph,
    TableGame,
    UnanimityGame,
    VotingGame,
    all_coalitions,
    shapley,
    value_table,
)
from coalitions.values.exact import shapley_of_kernel, shapley_of_table
from tests.coalitions.table_games import links, subsets, tables
from tests.strategies import synergy_graphs

SMALL = st.integers(1, 8)


@st.composite
def families(draw):
    """Draw a game of each family that has a closed form and a kernel."""
    n = draw(st.integers(1, 8))
    kind = draw(st.sampled_from(["voting", "airport", "unanimity", "graph"]))
    if kind == "voting":
        weights = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
        return VotingGame(weights, draw(st.integers(-1, 40)))
    if kind == "airport":
        return AirportGame(draw(st.lists(st.floats(0, 10, width=32), min_size=n, max_size=n)))
    if kind == "unanimity":
        groups = draw(st.lists(st.lists(st.integers(0, n - 1), max_size=4), max_size=8))
        size = len(groups)
        dividends = draw(st.lists(st.integers(-5, 5), min_size=size, max_size=size))
        return UnanimityGame(n, groups, dividends)
    return draw(synergy_graphs(max_players=7, scales=(1.0,))).game()


@settings(max_examples=80)
@given(families())
def test_closed_form_table_and_kernel_agree(game):
    table = value_table(game)
    scale = 1 + np.abs(table).max()
    closed = game.shapley_values()
    np.testing.assert_allclose(closed, shapley_of_table(table), atol=1e-12 * scale)
    np.testing.assert_allclose(
        closed, shapley_of_kernel(game.kernel, game.n_players), atol=1e-12 * scale
    )


@given(families(), st.randoms(use_true_random=False))
def test_the_kernel_walks_the_same_values(game, random):
    order = list(range(game.n_players))
    random.shuffle(order)
    kernel = game.kernel
    state, members = kernel.start.copy(), np.zeros(game.n_players, bool)
    assert kernel.empty == game(members)[0]
    for player in order:
        members[player] = True
        value = kernel.add(state, player, kernel.parameters)
        assert value == pytest.approx(game(members)[0], abs=1e-9)


@given(synergy_graphs(max_players=6))
def test_induced_subgraph_is_the_sum_of_its_pairs(graph):
    game = graph.game()
    for row in all_coalitions(graph.n_players):
        members = np.flatnonzero(row)
        pairs = itertools.combinations(members, 2)
        expected = sum(graph.matrix[i, j] for i, j in pairs)
        scale = np.abs(graph.matrix).sum()
        assert game(row)[0] == pytest.approx(expected, abs=1e-12 * scale)


def test_induced_subgraph_of_a_sparse_graph(rng):
    n, m = 600, 2000
    ends = np.array(sorted({tuple(sorted(pair)) for pair in rng.integers(0, n, (m, 2))}))
    ends = ends[ends[:, 0] != ends[:, 1]]
    weight = rng.normal(size=len(ends))
    graph = SynergyGraph.from_edges(n, *ends.T, weight)
    rows = rng.random((50, n)) < 0.5
    inside = rows[:, ends[:, 0]] & rows[:, ends[:, 1]]
    np.testing.assert_allclose(graph.game()(rows), inside @ weight, atol=1e-9)


@settings(max_examples=25)
@given(tables(min_players=2, max_players=4), st.data())
def test_graph_restricted_game_adds_up_components(table, data):
    import networkx as nx

    n = len(table).bit_length() - 1
    pairs = data.draw(links(n))
    graph = nx.Graph(pairs)
    graph.add_nodes_from(range(n))
    game = GraphRestrictedGame(TableGame(table), pairs)
    for row in all_coalitions(n):
        parts = nx.connected_components(graph.subgraph(np.flatnonzero(row)))
        masks = [sum(1 << int(p) for p in part) for part in parts]
        expected = table[0] + sum(table[mask] - table[0] for mask in masks)
        assert game(row)[0] == pytest.approx(expected, abs=1e-9)
    whole = game(all_coalitions(n))
    np.testing.assert_array_equal(whole, [game(row)[0] for row in all_coalitions(n)])


def test_graph_restricted_game_in_chunks(monkeypatch, rng):
    import coalitions.games.myerson as module

    game = VotingGame([3, 2, 2, 1, 1], 5)
    pairs = [(0, 1), (1, 2), (3, 4)]
    rows = rng.random((37, 5)) < 0.5
    whole = GraphRestrictedGame(game, pairs)(rows)
    monkeypatch.setattr(module, "NODES_PER_CHUNK", 20)
    np.testing.assert_array_equal(GraphRestrictedGame(game, pairs)(rows), whole)
    assert GraphRestrictedGame(game, pairs)(rows[:0]).shape == (0,)


@given(tables(max_players=5))
def test_table_game_looks_up_bit_i_for_player_i(table):
    game = TableGame(table)
    for members in subsets(range(game.n_players)):
        row = np.isin(np.arange(game.n_players), members)
        assert game(row)[0] == table[sum(1 << p for p in members)]


@pytest.mark.parametrize("takes", ["matrix", "row", "members"])
def test_function_game(takes):
    functions = {
        "matrix": lambda rows: rows.sum(axis=1) ** 2,
        "row": lambda row: row.sum() ** 2,
        "members": lambda members: len(members) ** 2,
    }
    game = FunctionGame(functions[takes], 3, takes=takes)
    np.testing.assert_array_equal(game([[0, 0, 0], [1, 0, 1], [1, 1, 1]]), [0, 4, 9])
    np.testing.assert_allclose(shapley(game).values, [3, 3, 3])


def test_games_take_one_coalition_and_zeros_and_ones():
    game = VotingGame([2, 1, 1], 3)
    assert game(np.array([1, 1, 0])).tolist() == [1.0]
    assert game([True, False, False]).tolist() == [0.0]
    with pytest.raises(InvalidInputError, match="expected"):
        game([1, 0])
    with pytest.raises(InvalidInputError, match="0 and 1"):
        game([2, 0, 0])


def test_voting_without_whole_votes_has_no_closed_form():
    game = VotingGame([0.5, 1.25, 2.0], 2.1)
    assert game.shapley_values is None
    result = shapley(game)
    assert result.method == "exact"
    assert result.evaluations == 8
    np.testing.assert_allclose(result.values, shapley_of_table(value_table(game)))


def test_voting_with_many_players_stays_accurate():
    """300 equal voters share equally; a deconvolution in floats would have lost all digits."""
    values = VotingGame(np.ones(300), 151).shapley_values()
    np.testing.assert_allclose(values, 1 / 300, rtol=1e-12)


def test_a_kernel_from_a_value_function():
    from numba import njit

    @njit
    def largest(members, parameters):
        best = 0.0
        for i in range(len(members)):
            if members[i] == 1.0:
                best = max(best, parameters[i])
        return best

    costs = np.array([8.0, 11.0, 13.0, 18.0])
    kernel = Kernel.of_value(largest, costs, 4)
    np.testing.assert_allclose(shapley_of_kernel(kernel, 4), [2, 3, 4, 9])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TableGame([1, 2, 3]), "2\\^n coalitions"),
        (lambda: TableGame([1]), "2\\^n coalitions"),
        (lambda: TableGame([0, float("nan")]), "value 1 of the table is nan"),
        (lambda: TableGame(["a", "b"]), "not numeric"),
        (lambda: TableGame([0, 10**400]), "not numeric"),
        (lambda: TableGame([0, 1], labels=["a", "b"]), "different labels"),
        (lambda: TableGame.from_document([1, 2], "x.json"), "x.json: expected"),
        (lambda: TableGame.from_document({"values": [0, 1], "labels": "a"}), "list of names"),
        (lambda: TableGame.read("/nowhere/x.json"), "there is no such file"),
        (lambda: VotingGame([1, -1], 1), "at least 0"),
        (lambda: VotingGame([1, 1], float("inf")), "finite"),
        (lambda: AirportGame([]), "at least 0"),
        (lambda: UnanimityGame(2, [[2]], [1.0]), "not among 0 … 1"),
        (lambda: UnanimityGame(2, [[1]], [1.0, 2.0]), "one finite dividend"),
        (lambda: UnanimityGame(0, [], []), "at least one"),
        (lambda: FunctionGame(3, 2), "can be called"),
        (lambda: FunctionGame(len, 0), "at least one"),
        (lambda: FunctionGame(len, 2, takes="set"), "takes is 'set'"),
        (
            lambda: GraphRestrictedGame(AirportGame([1, 2]), [(0, 2)]),
            "a link names player 2; players are 0 … 1",
        ),
        (
            lambda: GraphRestrictedGame(AirportGame([1, 2]), SynergyGraph(np.zeros((3, 3)))),
            "the graph has 3 players",
        ),
    ],
)
def test_bad_input_gets_one_sentence(build, message):
    with pytest.raises(InvalidInputError, match=message):
        build()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda rows: np.zeros(3), "asked for 2 coalitions"),
        (lambda rows: ["a", "b"], "not numbers"),
        (lambda rows: np.where(rows.any(axis=1), np.nan, 0.0), r"value of coalition \[0\] is nan"),
    ],
)
def test_a_game_that_answers_wrongly_is_told(answer, message):
    with pytest.raises(InvalidInputError, match=message):
        FunctionGame(answer, 2)([[0, 0], [1, 0]])
