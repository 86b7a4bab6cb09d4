from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from coalitions import CoalitionStructure, InputWarning, InvalidInputError, SynergyGraph
from coalitions.graph import weight_sum
from solvers import solve, what_if
from tests.strategies import label_vectors, synergy_graphs

THREE = [[0.0, 2.0, -1.0], [2.0, 0.0, 0.5], [-1.0, 0.5, 0.0]]


def test_value_counts_each_pair_inside_a_coalition_once():
    graph = SynergyGraph(THREE)
    assert graph.value(CoalitionStructure([[0, 1, 2]])) == 1.5
    assert graph.value(CoalitionStructure([[0, 1], [2]])) == 2.0
    assert graph.value(CoalitionStructure([[0], [1], [2]])) == 0.0


@given(st.data())
def test_value_is_the_same_stored_as_matrix_or_edges(data):
    graph = data.draw(synergy_graphs())
    structure = CoalitionStructure.from_labels(data.draw(label_vectors(graph.n_players)))
    as_edges = SynergyGraph.from_edges(graph.n_players, *graph.edges)
    as_sparse = SynergyGraph(sparse.csr_array(graph.matrix))
    assert graph.value(structure) == as_edges.value(structure) == as_sparse.value(structure)
    assert np.array_equal(as_edges.matrix, graph.matrix)
    assert np.array_equal(as_sparse.matrix, graph.matrix)


@given(st.data())
def test_value_does_not_depend_on_the_order_of_players(data):
    graph = data.draw(synergy_graphs())
    labels = data.draw(label_vectors(graph.n_players))
    order = np.array(data.draw(st.permutations(range(graph.n_players))))
    moved = SynergyGraph(graph.matrix[np.ix_(order, order)])
    assert moved.value(CoalitionStructure.from_labels(labels[order])) == graph.value(
        CoalitionStructure.from_labels(labels)
    )


def test_a_graph_cannot_be_changed():
    matrix = np.array(THREE)
    graph = SynergyGraph(matrix)
    matrix[0, 1] = 99
    assert graph.matrix[0, 1] == 2.0
    with pytest.raises(ValueError, match="read-only"):
        graph.matrix[0, 1] = 5
    with pytest.raises(ValueError, match="read-only"):
        graph.edges.weight[0] = 5


def test_a_data_frame_gives_its_labels():
    frame = pd.DataFrame(THREE, index=list("abc"), columns=list("abc"))
    assert SynergyGraph(frame).labels == ("a", "b", "c")
    with pytest.raises(InvalidInputError, match="different orders"):
        SynergyGraph(frame[["b", "a", "c"]])
    with pytest.raises(InvalidInputError, match="row 3 of the table is 'c', but column 3 is 'd'"):
        SynergyGraph(frame.rename(columns={"c": "d"}))


@pytest.mark.parametrize(
    ("matrix", "labels", "sentence"),
    [
        ([[0, 1], [2, 0]], None, "not symmetric: '0'–'1' is 1 but '1'–'0' is 2"),
        ([[0, 1, 2], [1, 0, 2]], None, "must be square, but it is 2 × 3"),
        ([[0, np.nan], [np.nan, 0]], ["a", "b"], r"'a' and 'b' \(row 1, column 2\) is nan"),
        ([[0, np.inf], [np.inf, 0]], None, "every cell must be a finite number"),
        ([[0, 1], [1, 0]], ["a", "a"], "the label 'a' is used twice"),
        ([[0, 1], [1, 0]], ["a"], "1 labels for 2 players"),
        ([["x"]], None, "not numeric"),
        ([], None, "must be square"),
        (np.zeros((0, 0)), None, "at least one player"),
    ],
)
def test_a_bad_matrix_is_refused_in_a_sentence(matrix, labels, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        SynergyGraph(matrix, labels)


@pytest.mark.parametrize(
    ("edges", "sentence"),
    [
        (([0], [3], [1.0]), "edge 1 names player 3; players are the whole numbers 0 … 2"),
        (([0.5], [1], [1.0]), "edge 1 names player 0.5"),
        (([0, 1], [1, 0], [1.0, 1.0]), "the pair '0'–'1' is listed twice"),
        (([0], [1], [np.nan]), "every weight must be a finite number"),
        (([0], [1, 2], [1.0]), "as many i as j as weights"),
    ],
)
def test_bad_edges_are_refused_in_a_sentence(edges, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        SynergyGraph.from_edges(3, *edges)


@pytest.mark.parametrize(
    ("how", "expected"), [("mean", 1.5), ("sum", 3.0), ("min", 1.0), ("max", 2.0)]
)
@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_symmetrise_takes_mean_sum_min_or_max(how, expected, kind):
    graph = SynergyGraph(kind(np.array([[0.0, 1.0], [2.0, 0.0]])), symmetrise=how)
    assert graph.matrix[0, 1] == expected


def test_the_mean_of_any_matrix_is_symmetric_to_the_last_bit(rng):
    matrix = rng.normal(size=(40, 40))
    np.fill_diagonal(matrix, 0)
    assert SynergyGraph(matrix, symmetrise="mean").n_players == 40
    large = np.array([[0, 1.5e308], [-1.5e308, 0]])
    assert SynergyGraph(large, symmetrise="mean").matrix[0, 1] == 0
    assert SynergyGraph(np.abs(large), symmetrise="mean").matrix[0, 1] == 1.5e308


def test_a_sum_that_no_float_can_hold_is_refused():
    for kind in (np.array, sparse.csr_array):
        with pytest.raises(InvalidInputError, match="more than a float can be"):
            SynergyGraph(kind(np.array([[0, 1.5e308], [1.5e308, 0]])), symmetrise="sum")


@pytest.mark.parametrize("how", ["mean", "sum", "min", "max"])
def test_arrows_are_treated_alike_in_every_kind_of_graph(how, rng):
    matrix = np.where(rng.random((7, 7)) < 0.5, rng.integers(-5, 6, (7, 7)), 0).astype(float)
    np.fill_diagonal(matrix, 0.0)
    arrows = nx.from_numpy_array(matrix, create_using=nx.DiGraph)
    a, b = np.nonzero(matrix)
    pairs = pd.DataFrame({"from": a, "to": b, "weight": matrix[a, b]})
    dense = SynergyGraph(matrix, symmetrise=how)
    for kind in (sparse.csr_array(matrix), arrows, pd.DataFrame(matrix)):
        assert SynergyGraph(kind, symmetrise=how).matrix.tolist() == dense.matrix.tolist()
    listed = SynergyGraph(pairs, symmetrise=how)
    order = list(listed.nodes)
    assert listed.matrix.tolist() == dense.matrix[np.ix_(order, order)].tolist()


def test_a_threshold_is_subtracted_from_every_pair():
    matrix = np.array([[0, 0.75, 0.25], [0.75, 0, 0.5], [0.25, 0.5, 0]])
    for threshold in (0.5, np.float32(0.5), "mean"):
        graph = SynergyGraph(matrix, threshold=threshold)
        assert graph.matrix.tolist() == [[0, 0.25, -0.25], [0.25, 0, 0], [-0.25, 0, 0]]
    arrows = SynergyGraph([[0, 4, 1], [2, 0, 0], [0, 3, 0]], symmetrise="sum", threshold="mean")
    assert arrows.matrix.tolist() == [
        [0, 6 - 10 / 3, 1 - 10 / 3],
        [6 - 10 / 3, 0, 3 - 10 / 3],
        [1 - 10 / 3, 3 - 10 / 3, 0],
    ]
    gap = SynergyGraph([[0, math.nan], [math.nan, 0]], missing=3, threshold=1)
    assert gap.matrix[0, 1] == 2
    assert SynergyGraph([[0.0]], threshold="mean").n_players == 1
    again = SynergyGraph(SynergyGraph(matrix, labels="abc"), threshold=0.25)
    assert (again.labels, again.matrix[0, 2]) == (("a", "b", "c"), 0)


@pytest.mark.parametrize("threshold", ["median", math.nan, math.inf, None, [1], True])
def test_odd_thresholds_are_refused(threshold):
    if threshold is None:
        assert SynergyGraph(THREE, threshold=threshold).value([[0, 1, 2]]) is not None
        return
    with pytest.raises(InvalidInputError, match="must be a finite number, or 'mean'"):
        SynergyGraph(THREE, threshold=threshold)


def test_a_threshold_needs_every_pair():
    matrix = np.array([[0, 0.75, 0], [0.75, 0, 0.5], [0, 0.5, 0]])
    whole = nx.from_numpy_array(matrix)
    whole.add_edge(0, 2, weight=0.0)
    frame = pd.DataFrame(whole.edges(data="weight"), columns=["from", "to", "weight"])
    edges = ([0, 0, 1], [1, 2, 2], [0.75, 0.0, 0.5])
    expected = SynergyGraph(matrix, threshold=0.25).matrix.tolist()
    for graph in (
        SynergyGraph(whole, threshold=0.25),
        SynergyGraph.from_networkx(whole, threshold=0.25),
        SynergyGraph(frame, threshold=0.25),
        SynergyGraph.from_frame(frame, threshold=0.25),
        SynergyGraph.from_edges(3, *edges, threshold=0.25),
        SynergyGraph(sparse.csr_array(matrix + 1 - np.eye(3)), threshold=1.25),
    ):
        assert graph.matrix.tolist() == expected
    whole.remove_edge(0, 2)
    for few in (whole, frame[frame["weight"] > 0], SynergyGraph(whole), sparse.csr_array(matrix)):
        with pytest.raises(InvalidInputError, match="only 2 of 3 pairs are listed"):
            SynergyGraph(few, threshold=0.25)


def test_correlations_hear_of_the_threshold_at_the_line_of_the_user():
    matrix = np.array([[1, 0.5, -0.25], [0.5, 1, 0.25], [-0.25, 0.25, 1]])
    for call in (lambda: SynergyGraph(pd.DataFrame(matrix)), lambda: solve(matrix)):
        with pytest.warns(InputWarning, match=r"correlations .*threshold=mean") as heard:
            call()
        assert [warning.filename for warning in heard] == [__file__]
    assert SynergyGraph(matrix, threshold="mean").value([[0, 1, 2]]) == pytest.approx(0, abs=1e-12)
    with pytest.warns(InputWarning) as heard:
        SynergyGraph(4 * matrix)
    assert "correlations" not in str(heard[0].message)


def test_a_thousand_matrices_of_decimals_are_made_symmetric():
    rng = np.random.default_rng(16)
    for trial in range(1000):
        matrix = np.round(rng.normal(0, 30, (12, 12)), trial % 4)
        if trial % 5 == 0:
            matrix = rng.normal(size=(12, 12)) * 10.0 ** rng.integers(-300, 300, (12, 12))
        np.fill_diagonal(matrix, 0)
        for kind in (np.asarray, sparse.csr_array) if trial % 10 == 0 else (np.asarray,):
            for how in ("mean", "min", "max"):
                made = SynergyGraph(kind(matrix), symmetrise=how).matrix
                assert (made == made.T).all()
        mean = SynergyGraph(matrix, symmetrise="mean").matrix
        np.testing.assert_allclose(mean, matrix / 2 + matrix.T / 2, rtol=1e-15)


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_what_rounding_leaves_is_not_called_asymmetric(kind):
    below = np.nextafter(0.3, 0)
    graph = SynergyGraph(kind(np.array([[0, 0.1 + 0.2], [below, 0]])))
    assert graph.matrix[0, 1] == graph.matrix[1, 0]
    assert graph.matrix[0, 1] == pytest.approx(0.3, rel=1e-15)
    with pytest.raises(InvalidInputError, match=r"'0'–'1' is 0\.3 but '1'–'0' is 0\.3000000001;"):
        SynergyGraph(kind(np.array([[0, 0.3], [0.3000000001, 0]])))


def test_a_correlation_matrix_is_taken_as_it_is(rng):
    correlation = np.corrcoef(rng.normal(size=(30, 50)))
    assert (correlation != correlation.T).any()  # NumPy divides twice
    with pytest.warns(InputWarning, match="the diagonal is ignored: '0' has 1 with itself"):
        graph = SynergyGraph(correlation)
    np.testing.assert_allclose(graph.matrix + np.eye(30), correlation, rtol=1e-14)
    with pytest.warns(InputWarning, match="diagonal is ignored"):
        graph = SynergyGraph.from_edges(2, [0, 0], [0, 1], [5.0, 1.0])
    assert graph.matrix.tolist() == [[0, 1], [1, 0]]


def test_what_is_not_known_is_refused_or_filled_in():
    nan = np.nan
    matrix = [[nan, 1, nan], [1, nan, 2], [nan, nan, nan]]
    with pytest.raises(InvalidInputError, match=r"'0' and '2' .* is nan; .* missing=0\.0"):
        SynergyGraph(matrix)
    graph = SynergyGraph(matrix, missing=-0.5)
    assert graph.matrix.tolist() == [[0, 1, -0.5], [1, 0, 2], [-0.5, 2, 0]]
    with pytest.raises(InvalidInputError, match="missing is nan; it must be a finite number"):
        SynergyGraph(matrix, missing=nan)


def test_complex_numbers_are_refused_not_halved(tmp_path):
    matrix = np.array([[0, 1 + 2j], [1 + 2j, 0]])
    np.save(tmp_path / "c.npy", matrix)
    with pytest.raises(InvalidInputError, match="not numeric: of type complex128"):
        SynergyGraph.read(tmp_path / "c.npy")
    for odd in (matrix, matrix.tolist(), matrix.astype(object), pd.DataFrame(matrix)):
        with pytest.raises(InvalidInputError, match="not numeric"):
            SynergyGraph(odd)


def test_labels_may_come_from_a_generator():
    assert SynergyGraph(THREE, labels=(name for name in "abc")).labels == ("a", "b", "c")
    matrix = sparse.csr_array(np.array(THREE))
    assert SynergyGraph(matrix, labels=(name for name in "abc")).labels == ("a", "b", "c")


def test_a_matrix_of_too_many_players_is_refused_before_it_is_copied():
    with pytest.raises(InvalidInputError, match=r"above 8000 players give the pairs"):
        SynergyGraph(np.broadcast_to(0.0, (20_000, 20_000)))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((10**9, [0], [1], [1.0]), "1000000000 players without names are too many"),
        ((2.5, [0], [1], [1.0]), "n_players is 2.5"),
        ((3, ["a"], [1], [1.0]), "ends of edges must be numbers of players"),
        ((3, [np.nan], [1], [1.0]), "edge 1 names player nan"),
        ((3, [0], [1], ["x"]), "weights of the edges are not numeric"),
        ((3, [0], [1], np.array([1j])), "weights of the edges are not numeric"),
        ((3, [0], [1], [10**400]), "weights of the edges are not numeric"),
    ],
)
def test_odd_edges_are_refused_in_a_sentence(arguments, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        SynergyGraph.from_edges(*arguments)


def test_symmetrise_refuses_other_words():
    with pytest.raises(InvalidInputError, match="one of mean, sum, min, max"):
        SynergyGraph(THREE, symmetrise="median")


def test_the_matrix_of_a_large_graph_of_edges_is_refused():
    graph = SynergyGraph.from_edges(6000, [0], [5999], [1.0])
    with pytest.raises(InvalidInputError, match=r"above 5000 players use \.edges"):
        _ = graph.matrix
    assert graph.value(CoalitionStructure.grand(6000)) == 1.0


@given(synergy_graphs())
def test_networkx_there_and_back(graph):
    back = SynergyGraph.from_networkx(graph.to_networkx())
    assert np.array_equal(back.matrix, graph.matrix)
    assert back.labels == graph.labels


def test_a_networkx_edge_without_weight_counts_one_and_a_directed_graph_needs_a_rule():
    assert SynergyGraph.from_networkx(nx.path_graph(3)).value(CoalitionStructure.grand(3)) == 2.0
    arrow = nx.DiGraph()
    arrow.add_edge("a", "b", weight=2.0)
    with pytest.raises(InvalidInputError, match="not symmetric"):
        SynergyGraph.from_networkx(arrow)
    assert SynergyGraph.from_networkx(arrow, symmetrise="mean").matrix[0, 1] == 1.0


@given(st.data())
def test_a_subgraph_keeps_synergies_and_names(data):
    graph = data.draw(synergy_graphs(min_players=2))
    players = data.draw(st.permutations(range(graph.n_players)))[: graph.n_players - 1]
    for whole in (graph, SynergyGraph.from_edges(graph.n_players, *graph.edges)):
        part = whole.subgraph(players)
        assert np.array_equal(part.matrix, graph.matrix[np.ix_(players, players)])
        assert part.labels == tuple(graph.labels[p] for p in players)


@given(st.data())
def test_what_coalitions_are_worth_adds_up_to_the_value(data):
    graph = data.draw(synergy_graphs())
    structure = CoalitionStructure.from_labels(data.draw(label_vectors(graph.n_players)))
    inside = graph.inside(structure)
    assert inside.shape == (len(structure),)
    slack = 1e-12 * np.abs(graph.matrix).sum()
    for block, worth in zip(structure, inside, strict=True):
        assert abs(worth - graph.matrix[np.ix_(block, block)].sum() / 2) <= slack
    assert abs(inside.sum() - graph.value(structure)) <= slack


def test_what_coalitions_are_worth_needs_the_same_players():
    with pytest.raises(InvalidInputError, match="the structure has 3 players, the graph 2"):
        SynergyGraph([[0, 1], [1, 0]]).inside(CoalitionStructure.grand(3))


@pytest.mark.parametrize("spread", [0, 30, 1000])
def test_the_sum_of_many_weights_is_rounded_once(rng, spread):
    weights = rng.normal(0, 1, 50_000) * np.exp2(rng.uniform(-spread, 0, 50_000))
    weights = np.concatenate((weights, -weights[:20_000], [5e-324, 1e30, -1e30]))
    assert weight_sum(weights) == math.fsum(weights.tolist())
    assert weight_sum(weights * 1e276) == math.fsum((weights * 1e276).tolist())


def test_a_warning_points_at_the_line_that_called():
    with_diagonal = [[1.0, 2.0], [2.0, 0.0]]
    frame = pd.DataFrame(with_diagonal, ["ann", "bob"], ["ann", "bob"])
    for call in (
        lambda: SynergyGraph(with_diagonal),
        lambda: SynergyGraph(frame),
        lambda: SynergyGraph.from_edges(2, [0, 0], [0, 1], [1.0, 2.0]),
        lambda: solve(with_diagonal),
        lambda: what_if(frame, together=[("ann", "bob")]),
    ):
        with pytest.warns(InputWarning, match="diagonal is ignored") as caught:
            call()
        assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("how", ["Sum", "average", ["mean"], 1])
def test_another_way_to_symmetrise_is_refused_wherever_pairs_are_one_way(how):
    one_way = np.array([[0.0, 1.0], [0.0, 0.0]])
    for thing in (one_way, sparse.coo_array(one_way), nx.DiGraph([(1, 2)]), nx.Graph([(1, 2)])):
        with pytest.raises(InvalidInputError, match="it must be one of mean, sum, min, max"):
            SynergyGraph(thing, symmetrise=how)
