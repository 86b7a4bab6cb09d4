"""Games of costs, claims, markets and networks give the numbers of the literature."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

from coalitions import (
    CoalitionStructure,
    InvalidInputError,
    SynergyGraph,
    all_coalitions,
    assignment_game,
    bankruptcy_game,
    core_membership,
    cost_game,
    flow_game,
    minimum_cost_tree_game,
    nucleolus,
    shapley,
    synergy_game,
)
from coalitions.problems import flow


@pytest.mark.parametrize(
    ("estate", "shares"),
    [(100, [100 / 3] * 3), (200, [50, 75, 75]), (300, [50, 100, 150])],
)
def test_the_nucleolus_divides_as_the_talmud(estate, shares):
    """Ketubot 93a, the three widows; [Aumann1985], table 1."""
    game = bankruptcy_game([100, 200, 300], estate)
    np.testing.assert_allclose(nucleolus(game).payoff, shares, atol=1e-6)


def test_a_contested_garment():
    """Bava Metzia 2a: one claims all, the other half; he gets three quarters."""
    game = bankruptcy_game([1, 0.5], 1, names=["all", "half"])
    np.testing.assert_allclose(shapley(game).values, [0.75, 0.25])
    assert game.labels == ("all", "half")


def test_random_arrival_by_hand():
    # v(N) = 200, v({1, 2}) = 100, all other coalitions 0.
    values = shapley(bankruptcy_game([100, 200, 300], 200)).values
    np.testing.assert_allclose(values, [100 / 3, 250 / 3, 250 / 3])


def test_the_market_for_houses():
    """[Shapley1971], section 2: three sellers, three buyers; all together gain 16."""
    game = assignment_game(
        [[5, 8, 2], [7, 9, 6], [2, 3, 0]],
    )
    assert game(np.ones(6, bool)).tolist() == [16]
    assert game([[1, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 0], [1, 1, 0, 1, 1, 0]]).tolist() == [8, 0, 15]
    # The ends of the core, best for the sellers and for the buyers; and a price that is too high.
    assert core_membership(game, [5, 6, 1, 1, 3, 0]).member
    assert core_membership(game, [3, 5, 0, 2, 5, 1]).member
    assert core_membership(game, [6, 6, 1, 1, 2, 0]).blocking == (1, 4)


def test_nobody_has_to_trade():
    assert assignment_game([[-2, 1]])([[1, 1, 0], [1, 0, 1]]).tolist() == [0, 1]


def test_two_pairs_of_gloves():
    values = shapley(assignment_game(np.ones((2, 1)))).values
    np.testing.assert_allclose(values, [1 / 6, 1 / 6, 2 / 3])


LINKS = np.array([[0, 6, 5, 9], [6, 0, 2, 3], [5, 2, 0, 8], [9, 3, 8, 0]])


def test_trees_by_hand():
    game = minimum_cost_tree_game(LINKS)
    # 0; 6; 5; 5+2; 9; 6+3; 5+8; 5+2+3
    assert game(all_coalitions(3)).tolist() == [0, 6, 5, 7, 9, 9, 13, 10]


def test_bird_pays_for_the_tree_and_nobody_would_leave():
    game = minimum_cost_tree_game(LINKS)
    shares = game.bird_shares()
    assert shares.tolist() == [2, 5, 3]
    rows = all_coalitions(3)
    assert (rows @ shares <= game(rows)).all()


def test_trees_agree_with_scipy(rng):
    from scipy.sparse.csgraph import minimum_spanning_tree

    costs = rng.integers(1, 50, (8, 8)).astype(float)
    costs = np.triu(costs, 1) + np.triu(costs, 1).T
    rows = rng.random((40, 7)) < 0.5
    expected = []
    for row in rows:
        nodes = [0, *(1 + np.flatnonzero(row))]
        expected.append(minimum_spanning_tree(costs[np.ix_(nodes, nodes)]).sum())
    np.testing.assert_allclose(minimum_cost_tree_game(costs)(rows), expected)


def random_network(rng, nodes, arcs):
    ends = [rng.permutation(nodes)[:2] for _ in range(arcs)]
    owners = [None, *"abcde"]
    network = [(0, 2, 5, "a"), (2, 1, 4, None)]
    return network + [
        (int(i), int(j), float(rng.integers(1, 9)), owners[rng.integers(6)]) for i, j in ends
    ]


def test_smallest_cuts_and_largest_flows_agree(rng, monkeypatch):
    for _ in range(5):
        game = flow_game(random_network(rng, 6, 14), 0, 1)
        rows = all_coalitions(game.n_players)
        by_cuts = game(rows)
        monkeypatch.setattr(flow, "CUT_NODES", -1)
        np.testing.assert_allclose(game(rows), by_cuts)
        monkeypatch.undo()


def test_the_owners_of_a_smallest_cut_share_the_flow():
    """[Kalai1982]: giving each owner of a smallest cut its capacity is in the core."""
    arcs = [("s", "a", 4, "x"), ("a", "t", 3, "y"), ("s", "t", 2, "z"), ("s", "a", 1, None)]
    game = flow_game(arcs, "s", "t")
    assert game.labels == ("x", "y", "z")
    assert game([[0, 1, 0], [1, 1, 1], [1, 0, 0]]).tolist() == [1, 5, 0]
    assert core_membership(game, [0, 3, 2]).member


def test_three_towns_share_a_plant():
    """Costs of Young (1994), as a table; the shares are computed by hand."""
    costs = {"A": 11, "B": 7, "C": 8, ("A", "B"): 15, ("A", "C"): 14, ("C", "B"): 13,
             ("A", "B", "C"): 20}  # fmt: skip
    values = shapley(cost_game(costs)).values
    np.testing.assert_allclose(values, [50 / 6, 35 / 6, 35 / 6])
    saved = cost_game(costs, savings=True)
    assert saved(all_coalitions(3)).tolist() == [0, 0, 0, 3, 0, 5, 2, 6]
    np.testing.assert_allclose(shapley(saved).values, [11, 7, 8] - values)


def test_costs_by_a_function_and_an_order_of_players():
    game = cost_game(lambda members: 10 + len("".join(members)), names=["ann", "bo"])
    assert game(all_coalitions(2)).tolist() == [0, 13, 12, 15]
    assert cost_game({"a": 1, "b": 2, ("a", "b"): 2}, names="ba")([1, 0]).tolist() == [2]


def test_players_may_come_one_by_one():
    assert cost_game(len, (name for name in "abc")).labels == ("a", "b", "c")
    assert cost_game({(): 0, "a": 1, "b": 2}, (name for name in "ba")).labels == ("b", "a")


def test_synergies_of_all_kinds():
    graph = SynergyGraph([[0, 3], [3, 0]], labels=["ann", "bob"])
    assert synergy_game(graph).labels == ("ann", "bob")
    assert synergy_game([[0, 3], [3, 0]], names=["x", "y"]).labels == ("x", "y")
    assert synergy_game(graph)([1, 1]).tolist() == [graph.value(CoalitionStructure([[0, 1]]))]


@pytest.mark.parametrize(
    "game",
    [
        bankruptcy_game([1, 2], 2),
        assignment_game([[1, 2]]),
        minimum_cost_tree_game(LINKS),
        flow_game([(0, 1, 2, "a")], 0, 1),
        cost_game({"a": 1}),
    ],
    ids=lambda game: type(game).__name__,
)
def test_they_can_be_sent_to_workers_and_speak_in_batches(game):
    rows = all_coalitions(game.n_players)
    copy = pickle.loads(pickle.dumps(game))
    np.testing.assert_array_equal(copy(rows), [game(row)[0] for row in rows])
    assert game(rows[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (partial(bankruptcy_game, [1, 2], 4), "the estate is 4"),
        (partial(bankruptcy_game, [-1, 2], 1), "must not be negative"),
        (partial(bankruptcy_game, [1, 2], 1, ["a", "a"]), "each needs its own"),
        (partial(bankruptcy_game, ["x"], 1), "claims must be numbers"),
        (partial(assignment_game, [1, 2]), "gains must be a table with 2 dimensions"),
        (partial(minimum_cost_tree_game, [[0, 1, 2]]), r"expected \(n \+ 1, n \+ 1\)"),
        (partial(minimum_cost_tree_game, [[0, 1], [2, 0]]), "must be symmetric"),
        (partial(flow_game, [(0, 1, -1, "a")], 0, 1), "has capacity -1"),
        (partial(minimum_cost_tree_game, [[0, 1], [1, 5]]), "from node 1 to itself costs 5"),
        (partial(flow_game, [([0], 1, 1, "a")], 0, 1), r"the node \[0\] is a list; nodes are"),
        (partial(flow_game, [(0, 1, 1, "a")], 0, [1]), r"the node \[1\] is a list"),
        (partial(flow_game, [(0, 1)], 0, 1), "is no arc"),
        (partial(flow_game, [(0, 1, 1, "a")], 0, 2), "no arc touches the sink 2"),
        (partial(flow_game, [(0, 1, 1, "a")], 0, 0), "they must differ"),
        (partial(flow_game, [(0, 1, 1, None)], 0, 1), "there are no players"),
        (partial(cost_game, {}), "must be a mapping"),
        (partial(cost_game, {("a",): "dear"}), r"the cost of \('a',\) is 'dear'"),
        (partial(cost_game, {0: 3, 1: 5, (0, 1): 6}), "of 0, .* names of players are text"),
        (partial(cost_game, {(): 5, "a": 1}), r"the empty coalition, \(\), costs 5; it must be 0"),
        (partial(cost_game(lambda group: "dear", "ab"), [1, 1]), r"\('a', 'b'\) is 'dear'"),
        (partial(cost_game, {("a", "b"): 1, ("b", "a"): 2}), "has two costs"),
        (partial(cost_game, len), "give names"),
    ],
)
def test_wrong_input_is_said_in_a_sentence(make, said):
    with pytest.raises(InvalidInputError, match=said):
        make()


def test_a_cost_that_is_missing_is_named():
    with pytest.raises(InvalidInputError, match="what a, b pay on their own"):
        shapley(cost_game({"a": 1, "b": 2}))
