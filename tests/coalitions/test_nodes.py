"""Graphs of other libraries keep their nodes: demands name them, and answers give them back."""

from __future__ import annotations

import copy
import pickle
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from coalitions import CoalitionStructure, InputWarning, InvalidInputError, SynergyGraph
from solvers import explain, fragile, solve, solve_overlapping, verify, what_if

GRID = [(0, 0), (0, 1), (1, 0), (1, 1)]


def network(nodes, weights=(5, -9, -9, -9, -9, 5)):
    """Return the complete graph of four nodes whose first two, and last two, gain together."""
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    pairs = [(a, b) for k, a in enumerate(nodes) for b in nodes[k + 1 :]]
    graph.add_weighted_edges_from((*pair, w) for pair, w in zip(pairs, weights, strict=True))
    return graph


@pytest.fixture
def grid():
    return network(GRID)


@pytest.fixture
def apart():
    """Return a graph of tens in which nobody gains: every demand shows."""
    return network([10, 20, 30, 40], (-1, -2, -3, -4, -5, -6))


def test_a_demand_names_nodes_and_not_positions():
    graph = network([1, 2, 3, 4], (-1, -2, -3, -4, -5, -6))
    with pytest.warns(InputWarning, match="is taken as the node"):
        solution = solve(graph, must_link=[(1, 2)])
    assert solution.communities() == [{1, 2}, {3}, {4}]
    assert solution.structure.coalitions == ((0, 1), (2,), (3,))
    assert solution.named == (("1", "2"), ("3",), ("4",))
    with pytest.warns(InputWarning):
        assert solve(graph, must_link=[(3, 4)]).communities() == [{1}, {2}, {3, 4}]


def test_that_a_number_is_a_node_is_said_once_and_at_the_line_of_the_user():
    graph = SynergyGraph(network([1, 2, 3, 4], (-1, -2, -3, -4, -5, -6)))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        solve(graph, must_link=[(1, 2), (2, 3)], at_least_one_of=[[1, 4]], n_best=3)
        solve(graph, must_link=[(1, 2)], canonical=True)
    (one,) = heard
    assert issubclass(one.category, InputWarning)
    assert one.filename == __file__


def test_nothing_is_said_where_nodes_are_positions_or_far_from_them(apart):
    assert solve(apart, must_link=[(10, 40)]).communities() == [{10, 40}, {20}, {30}]
    numbered = network([0, 1, 2, 3], (-1, -2, -3, -4, -5, -6))
    assert solve(numbered, must_link=[(1, 2)]).communities() == [{0}, {1, 2}, {3}]
    assert solve(numbered, must_link=[(np.int64(1), 2)]).communities() == [{0}, {1, 2}, {3}]


@pytest.mark.filterwarnings("ignore:.*is taken as the node")
@pytest.mark.parametrize(
    ("nodes", "who", "hint"),
    [
        ([1, 2, 3, 4], 0, "did you mean 1, which is at position 0"),
        ([10, 20, 30, 40], 3, "did you mean 40, which is at position 3"),
        ([10, 20, 30, 40], 7, "its nodes are 10, 20, 30, 40"),
        (["ann", "bob", "cleo", "dan"], 0, "did you mean 'ann', which is at position 0"),
        (["ann", "bob", "cleo", "dan"], "anne", "did you mean 'ann'"),
        (GRID, (5, 5), r"its nodes are \(0, 0\), \(0, 1\), "),
        (GRID, [0, 0], r"its nodes are \(0, 0\), \(0, 1\), "),
        (GRID, 2.5, "its nodes are"),
        ([1, 2, 3, 4], True, "its nodes are"),
    ],
)
def test_who_is_no_node_is_refused(nodes, who, hint):
    graph = SynergyGraph(network(nodes))
    last = nodes[-1]
    for call in (
        lambda: solve(graph, must_link=[(who, last)]),
        lambda: solve(graph, cannot_link=[(last, who)]),
        lambda: solve(graph, at_least_one_of=[[who]]),
        lambda: verify(graph, CoalitionStructure.grand(4), must_link=[(who, last)]),
        lambda: what_if(graph, together=[(who, last)]),
        lambda: explain(graph, CoalitionStructure.grand(4), who),
        lambda: fragile(graph, CoalitionStructure.grand(4), who),
        lambda: graph.value([nodes[:3], [who]]),
        lambda: solve(graph, warm_start=[nodes[:3], [who]]),
    ):
        with pytest.raises(InvalidInputError, match=f"no node of the graph; .*{hint}"):
            call()
    if isinstance(who, list):
        return  # cannot be a key
    with pytest.raises(InvalidInputError, match=r"weights names .* no node of the graph"):
        solve(graph, weights={**dict.fromkeys(nodes[1:], 1), who: 1}, max_weight=2)


def test_tuples_are_nodes_wherever_a_player_is_asked_for(grid):
    graph = SynergyGraph.from_networkx(grid)
    assert graph.nodes == tuple(GRID)
    assert graph.labels == ("(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)")
    links = {"must_link": [(GRID[0], GRID[2])], "cannot_link": [(GRID[0], GRID[1])]}
    solution = solve(grid, **links)
    assert solution.communities() == [{GRID[0], GRID[2]}, {GRID[1]}, {GRID[3]}]
    checked = verify(graph, solution.communities(), solution.certificate, **links)
    assert (checked.value, checked.optimal) == (-9, True)
    assert graph.value([GRID[:2], GRID[2:]]) == 10
    assert graph.structure([GRID[:2], GRID[2:]]).coalitions == ((0, 1), (2, 3))
    assert solve(grid, warm_start=[GRID[:2], GRID[2:]]).value == 10
    wish = what_if(grid, together=[(GRID[0], GRID[3])])
    assert wish.cost == 10 + 9
    assert {GRID[0], GRID[3]} in wish.solution.communities()
    why = explain(grid, solve(grid), GRID[2])
    assert (why.player, why.coalition) == (2, (2, 3))
    assert all(2 in pair.pair for pair in fragile(grid, solve(grid), GRID[2]))
    weights = {node: 2 + sum(node) for node in GRID}
    heavy = solve(grid, weights=weights, max_weight=7)
    assert heavy.communities() == [set(GRID[:2]), set(GRID[2:])]
    assert solve(grid, weights=weights, max_weight=6).value == 5
    roles = {"at_least_one_of": [[GRID[0], GRID[2]]]}
    assert solve(grid, **roles).communities() == [set(GRID[:2]), set(GRID[2:])]
    assert verify(grid, heavy, weights=weights, max_weight=7).value == 10
    best, second, third = (lambda s: (s, *s.others))(solve(grid, n_best=3, **roles))
    assert best.communities() == [set(GRID[:2]), set(GRID[2:])]
    assert second.value == third.value == -13
    overlapping = solve_overlapping(grid)
    assert overlapping.communities() == [set(GRID[:2]), set(GRID[2:])]
    assert overlapping.of(GRID[3]) == ((2, 3),)


def test_a_certificate_of_nodes_is_one_of_positions(grid):
    demands = {"must_link": [(GRID[0], GRID[2])], "at_least_one_of": [[GRID[0], GRID[3]]]}
    solution = solve(grid, certificate=True, **demands)
    document = solution.certificate.to_json()
    proof = type(solution.certificate).from_json(document)
    checked = verify(grid, solution, proof, **demands)
    assert (checked.optimal, checked.must_link) == (True, ((0, 2),))
    with pytest.raises(InvalidInputError, match="which is not demanded"):
        verify(grid, solution, proof, must_link=demands["must_link"])


def test_what_we_give_can_be_passed_in_again():
    nodes = [3, 2, 1, 0]  # every number is the node of another
    graph = SynergyGraph(network(nodes, (-1, -2, -3, -4, -5, -6)))
    with pytest.warns(InputWarning):
        solution = solve(graph, must_link=[(3, 1)], cannot_link=[(0, 2)], max_size=3)
    assert solution.communities() == [{3, 1}, {2}, {0}]
    links = {"must_link": solution.must_link, "cannot_link": solution.cannot_link}
    again = solve(graph, **links, **solution.sizes)
    assert again.structure == solution.structure
    assert verify(graph, solution, **links, **solution.sizes).value == -2
    assert explain(graph, solution, "3").player == 0
    for pair in fragile(graph, solution):
        wish = what_if(graph, together=[pair.pair]).solution
        a, b = pair.pair
        assert wish.structure.labels[a] == wish.structure.labels[b]


def test_solutions_and_lists_are_taken_where_structures_are(grid):
    graph = SynergyGraph(grid)
    solution = solve(graph)
    for given in (solution, solution.structure, solution.named, solution.communities()):
        assert graph.value(given) == verify(grid, given).value == 10
        assert graph.inside(given).tolist() == [5, 5]
        assert solve(graph, warm_start=given).value == 10
        assert explain(graph, given, GRID[0]).coalition == (0, 1)
        assert len(fragile(graph, given, GRID[0])) == 3
    assert verify([[0, 1], [1, 0]], [[0, 1]]).value == 1
    turned = SynergyGraph(network(GRID[::-1]))
    with pytest.raises(InvalidInputError, match="in another order; give its named"):
        turned.value(solution)
    assert turned.value(solution.named) == 10


def test_one_and_the_text_1_are_two_nodes(tmp_path):
    nodes = [1, "1", 2, "x"]
    graph = SynergyGraph(network(nodes))
    assert graph.nodes == (1, "1", 2, "x")
    assert graph.labels == ("1 (int)", "1", "2", "x")
    assert solve(graph).communities() == [{1, "1"}, {2, "x"}]
    assert solve(graph, cannot_link=[("1", "1 (int)")]).value == 5
    assert solve(graph, must_link=[("1", "x")]).communities()[0] != {1, "1"}
    for ending in ("csv", "json", "graphml", "npz"):
        graph.write(tmp_path / f"g.{ending}")
        back = SynergyGraph.read(tmp_path / f"g.{ending}")
        assert (back.labels, back.value([[0, 1], [2, 3]])) == (graph.labels, 10)
    odd = SynergyGraph(network([1, "1", "1 (int)", 1.5]))
    assert odd.labels == ("1 (int2)", "1", "1 (int)", "1.5")


def test_what_is_read_from_a_file_has_labels_and_positions(tmp_path, grid):
    for ending in ("csv", "json", "graphml", "npz"):
        SynergyGraph(network([7, 8, 9, 0])).write(tmp_path / f"g.{ending}")
        read = SynergyGraph.read(tmp_path / f"g.{ending}")
        assert read.nodes == read.labels == ("7", "8", "9", "0")
        assert solve(read, must_link=[(0, "9")]).must_link == ((0, 2),)
    (tmp_path / "g.json").write_text('{"labels": [3, 4], "matrix": [[0, 1], [1, 0]]}')
    assert solve(SynergyGraph.read(tmp_path / "g.json")).communities() == [{"3", "4"}]


def test_matrices_have_positions_and_give_what_they_were_given():
    matrix = [[0, 2, -1], [2, 0, -1], [-1, -1, 0]]
    assert solve(matrix).communities() == [{0, 1}, {2}]
    assert SynergyGraph(matrix).nodes == (0, 1, 2)
    named = SynergyGraph(matrix, ["ann", "bob", "cleo"])
    assert solve(named, cannot_link=[(0, "bob")]).communities() == [{"ann"}, {"bob"}, {"cleo"}]
    numbers = SynergyGraph(np.array(matrix), np.array([3, 2, 1]))
    assert solve(numbers, cannot_link=[(0, 1)]).communities() == [{3}, {2}, {1}]
    part = SynergyGraph(network([4, 5, 6, 7])).subgraph([2, 0])
    assert part.nodes == (6, 4)
    assert solve(part, cannot_link=[(6, 4)]).value == 0


def test_frames_keep_their_index():
    matrix = np.array([[0.0, 2, -1], [2, 0, -1], [-1, -1, 0]])
    plain = pd.DataFrame(matrix)
    assert solve(plain, cannot_link=[(0, 1)]).communities() == [{0}, {1}, {2}]
    years = pd.DataFrame(matrix, [2001, 2002, 2003], [2001, 2002, 2003])
    assert solve(years).communities() == [{2001, 2002}, {2003}]
    assert solve(years, cannot_link=[(2001, 2002)]).value == 0
    with pytest.raises(InvalidInputError, match="did you mean 2001, which is at position 0"):
        solve(years, cannot_link=[(0, 1)])
    days = pd.date_range("2026-01-01", periods=3)
    dated = SynergyGraph(pd.DataFrame(matrix, days, days))
    assert dated.nodes == tuple(days)
    assert solve(dated, cannot_link=[(days[0], days[1])]).value == 0
    read = years.rename(columns=str)  # as read_csv(..., index_col=0) gives it
    assert SynergyGraph(read).nodes == (2001, 2002, 2003)
    assert SynergyGraph(plain.set_axis(list("abc"), axis=1)).nodes == ("a", "b", "c")


def test_frames_of_pairs_keep_their_names():
    pairs = pd.DataFrame({"from": [7, 7], "to": [9, 8], "weight": [2.0, -1]})
    graph = SynergyGraph(pairs)
    assert graph.nodes == (7, 9, 8)
    assert solve(graph, cannot_link=[(7, 9)]).communities() == [{7}, {9}, {8}]
    gap = SynergyGraph(pairs.astype({"from": float}))
    assert gap.nodes == (7, 9, 8)
    text = SynergyGraph(pairs.astype({"to": object}).assign(to=["9", "7"], weight=[2.0, 0.0]))
    assert text.nodes == (7, "9")  # a column has one type: 7 and "7" are the same player


def test_igraph_keeps_names_and_numbers():
    igraph = pytest.importorskip("igraph", reason="igraph is not installed: pip install igraph")
    graph = igraph.Graph(n=3, edges=[(0, 1), (2, 0)])
    assert solve(graph, cannot_link=[(0, 2)]).communities() == [{0, 1}, {2}]
    graph.vs["name"] = ["ann", "bob", "cleo"]
    assert solve(graph, cannot_link=[("ann", "cleo")]).communities() == [{"ann", "bob"}, {"cleo"}]
    with pytest.raises(InvalidInputError, match="no node of the graph; did you mean 'ann'"):
        solve(graph, cannot_link=[(0, 2)])
    graph.vs["name"] = [[0, 0], [0, 1], [1, 0]]
    with pytest.raises(InvalidInputError, match=r"the vertex name \[0, 0\] can change"):
        solve(graph)


def test_nodes_come_back_from_networkx_copies_and_pickles(grid):
    graph = SynergyGraph(grid)
    assert nx.utils.graphs_equal(graph.to_networkx(), grid)
    assert set(SynergyGraph([[0, 1], [1, 0]]).to_networkx()) == {0, 1}
    for other in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph), copy.copy(graph)):
        assert other.nodes == graph.nodes
        assert solve(other, must_link=[GRID[1:3]]).must_link == ((1, 2),)
    solution = solve(graph)
    assert copy.copy(solution).communities() == solution.communities()
