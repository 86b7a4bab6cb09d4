from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalitions import (
    NOTIONS,
    BudgetError,
    CoalitionStructure,
    InvalidInputError,
    SynergyGraph,
    TableGame,
    UnknownNameError,
    deviations,
    find_deviation,
    payoffs,
    restricted,
    shapley,
)
from tests.coalitions.table_games import mask, structures, subsets, tables
from tests.strategies import label_vectors, synergy_graphs

TOLERANCE = 1e-9
SINGLE = {
    # name: (those joined have a say, those left have a say)
    "nash": (False, False),
    "individual": (True, False),
    "contractual-nash": (False, True),
    "contractual-individual": (True, True),
}


def shares_in(game, coalition):
    """Return what each member gets: the Shapley value of the game among the coalition."""
    if not coalition:
        return {}
    values = shapley(restricted(game, sorted(coalition))).values
    return dict(zip(sorted(coalition), values.tolist(), strict=True))


def scale_of(game):
    values = game.table - game.table[0]
    return np.abs(values).max() or 1.0


def single_moves(game, structure, notion, tolerance):
    """Yield every allowed and profitable move of one player, from the definition."""
    welcome, released = SINGLE[notion]
    for block in structure:
        before = shares_in(game, block)
        for player in block:
            left = [k for k in block if k != player]
            after_leaving = shares_in(game, left)
            if released and any(after_leaving[k] < before[k] - tolerance for k in left):
                continue
            for target in [(), *(other for other in structure if other != block)]:
                there, now = shares_in(game, target), shares_in(game, (*target, player))
                if welcome and any(now[k] < there[k] - tolerance for k in target):
                    continue
                if now[player] > before[player] + tolerance:
                    yield player, tuple(sorted((*target, player)))


def blocking_coalitions(game, structure, notion, tolerance):
    now = payoffs(game, structure)
    for part in subsets(range(game.n_players)):
        if not part:
            continue
        if notion == "transferable-core":
            value = game.table[mask(part)] - game.table[0]
            if value > sum(now[i] for i in part) + tolerance:
                yield part
            continue
        gains = [share - now[i] for i, share in shares_in(game, part).items()]
        if notion == "core" and min(gains) > tolerance:
            yield part
        if notion == "strict-core" and min(gains) >= -tolerance and max(gains) > tolerance:
            yield part


def assert_breaks(game, structure, notion, move):
    """Check one answer against the definition: a real deviation, or really none."""
    tolerance = TOLERANCE * scale_of(game)
    if notion in SINGLE:
        truth = set(single_moves(game, structure, notion, tolerance))
        answer = None if move is None else (move.movers[0], move.coalition)
    else:
        truth = set(blocking_coalitions(game, structure, notion, tolerance))
        answer = None if move is None else move.movers
    if answer is None:
        assert not truth
    else:
        assert answer in truth
        now = payoffs(game, structure)
        np.testing.assert_allclose(move.before, now[list(move.movers)], atol=1e-8 * scale_of(game))


@pytest.mark.parametrize("notion", NOTIONS)
@settings(max_examples=40)
@given(data=st.data())
def test_deviations_of_games_are_those_of_the_definition(notion, data):
    table = data.draw(tables(max_players=4))
    game = TableGame(np.round(table, 3))  # away from the tolerance
    structure = data.draw(structures(game.n_players))
    assert_breaks(game, structure, notion, find_deviation(game, structure, notion))


@pytest.mark.parametrize("notion", NOTIONS)
@settings(max_examples=60)
@given(data=st.data())
def test_deviations_on_graphs_are_those_of_the_definition(notion, data):
    graph = data.draw(synergy_graphs(max_players=5))
    weights = graph.edges.weight
    largest = np.abs(weights).max(initial=0.0)
    if len(weights) and np.abs(weights).min() < 1e-6 * largest:
        graph = SynergyGraph(np.round(graph.matrix / largest, 3))
    structure = CoalitionStructure.from_labels(data.draw(label_vectors(graph.n_players)))
    game = TableGame.of(graph.game())
    move = find_deviation(graph, structure, notion)
    assert_breaks(game, structure, notion, move)
    assert (find_deviation(graph.game(), structure, notion) is None) == (move is None)


@pytest.mark.parametrize("notion", ["core", "strict-core", "transferable-core"])
@pytest.mark.parametrize("kind", ["floats", "integers", "sparse"])
def test_search_on_graphs_of_ten_players_agrees_with_all_coalitions(notion, kind):
    rng = np.random.default_rng(11)
    answers = set()
    for _ in range(40):
        n = int(rng.integers(6, 11))
        upper = rng.integers(-3, 4, (n, n)).astype(float)
        if kind == "floats":
            upper = rng.normal(size=(n, n))
        if kind == "sparse":
            upper *= rng.random((n, n)) < 0.3
        upper = np.triu(upper, 1)
        graph = SynergyGraph(upper + upper.T)
        structure = settled(graph, rng)
        here = find_deviation(graph, structure, notion)
        there = find_deviation(TableGame.of(graph.game()), structure, notion)
        assert (here is None) == (there is None)
        answers.add(here is None)
        if here is not None and notion == "core":
            assert all(a > b for a, b in zip(here.after, here.before, strict=True))
    assert answers == {True, False}  # both kinds were among the cases


def settled(graph, rng):
    """Let players move one by one until nobody wants to: a Nash stable structure."""
    structure = CoalitionStructure.from_labels(rng.integers(0, 4, graph.n_players))
    while move := find_deviation(graph, structure, "nash"):
        labels = structure.labels
        others = [k for k in move.coalition if k != move.movers[0]]
        labels[move.movers[0]] = labels[others[0]] if others else labels.max() + 1
        structure = CoalitionStructure.from_labels(labels)
    return structure


def test_moves_end_because_each_raises_the_value():
    """Bogomolnaia and Jackson 2002: symmetric synergies have Nash stable structures."""
    rng = np.random.default_rng(5)
    upper = np.triu(rng.normal(size=(60, 60)), 1)
    graph = SynergyGraph(upper + upper.T)
    structure = settled(graph, rng)
    found = {name: find_deviation(graph, structure, name) for name in SINGLE}
    assert all(move is None for move in found.values())


def test_notions_imply_each_other():
    rng = np.random.default_rng(6)
    for _ in range(100):
        table = rng.integers(-3, 4, 1 << 4).astype(float)
        structure = CoalitionStructure.from_labels(rng.integers(0, 4, 4))
        stable = {
            name: move is None for name, move in deviations(TableGame(table), structure).items()
        }
        weaker = {
            "nash": ["individual", "contractual-nash"],
            "individual": ["contractual-individual"],
            "contractual-nash": ["contractual-individual"],
            "transferable-core": ["strict-core"],
            "strict-core": ["core"],
        }
        for strong, weak in weaker.items():
            for name in weak:
                assert stable[name] or not stable[strong], (strong, name)


def test_three_friends_of_whom_two_are_closer():
    graph = SynergyGraph([[0, 4, 1], [4, 0, -6], [1, -6, 0]])
    grand = CoalitionStructure.grand(3)
    # 2 gets (1 − 6)/2 and leaves; 0 and 1 get 2 each on their own instead of 2.5 and −1.
    assert find_deviation(graph, grand, "nash").movers == (2,)
    pair = CoalitionStructure([[0, 1], [2]])
    assert find_deviation(graph, pair, "core") is None
    # 2 would gain nothing by joining: (1 − 6)/2 < 0.
    assert find_deviation(graph, pair, "nash") is None


def test_those_joined_and_those_left_have_their_say():
    # 1 and 2 like each other best, but 0 dislikes 2 and 3 dislikes 1.
    graph = SynergyGraph([[0, 2, -2, 0], [2, 0, 8, -2], [-2, 8, 0, 4], [0, -2, 4, 0]])
    structure = CoalitionStructure([[0, 1], [2, 3]])
    move = find_deviation(graph, structure, "nash")
    assert (move.movers, move.coalition) == ((1,), (1, 2, 3))
    assert (move.before, move.after) == ((1.0,), (3.0,))
    for notion in ("individual", "contractual-nash", "contractual-individual"):
        assert find_deviation(graph, structure, notion) is None
    assert find_deviation(graph, structure, "core").coalition == (1, 2)


def test_trivial_graphs_are_stable_in_every_sense():
    for n in (1, 3):
        graph = SynergyGraph(np.zeros((n, n)))
        for structure in (CoalitionStructure.grand(n), CoalitionStructure.singletons(n)):
            assert set(deviations(graph, structure).values()) == {None}
    assert set(deviations(TableGame([2, 5]), CoalitionStructure.grand(1)).values()) == {None}


def test_large_sparse_graph_is_no_matter_for_the_moves():
    n = 20_000
    graph = SynergyGraph.from_edges(n, np.arange(n - 1), np.arange(1, n), np.ones(n - 1))
    assert find_deviation(graph, CoalitionStructure.grand(n), "nash") is None
    assert find_deviation(graph, CoalitionStructure.singletons(n), "individual") is not None


def test_an_undecided_search_says_so(monkeypatch, rng):
    upper = np.triu(rng.normal(size=(12, 12)), 1)
    graph = SynergyGraph(upper + upper.T)
    monkeypatch.setattr("coalitions.structures.stability.MOST_NODES", 3)
    for notion in ("core", "strict-core", "transferable-core"):
        with pytest.raises(BudgetError, match="did not settle"):
            find_deviation(graph, settled(graph, rng), notion)


def test_bad_requests_get_a_sentence():
    graph = SynergyGraph(np.zeros((3, 3)))
    with pytest.raises(UnknownNameError, match="did you mean 'nash'"):
        find_deviation(graph, CoalitionStructure.grand(3), "nahs")
    with pytest.raises(InvalidInputError, match="2 players, the game 3"):
        find_deviation(graph, CoalitionStructure.grand(2))
