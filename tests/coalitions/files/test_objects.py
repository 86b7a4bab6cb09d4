"""Graphs of networkx and igraph, and tables of pandas, as people have them."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from coalitions import InputWarning, InvalidInputError, SynergyGraph
from solvers import solve

MATRIX = np.array([[0.0, 2, -1], [2, 0, 0], [-1, 0, 0]])
NAMES = ["ann", "bob", "cleo"]
PAIRS = pd.DataFrame({"from": ["ann", "ann"], "to": ["bob", "cleo"], "weight": [2, -1.0]})


def same(graph):
    assert graph.labels == tuple(NAMES)
    assert graph.matrix.tolist() == MATRIX.tolist()


def test_a_networkx_graph_is_taken_as_it_is():
    network = nx.Graph()
    network.add_weighted_edges_from([("ann", "bob", 2), ("ann", "cleo", -1)])
    same(SynergyGraph(network))
    same(SynergyGraph(SynergyGraph(network)))
    assert solve(network).value == 2
    assert solve(nx.karate_club_graph()).optimal
    network.add_edge("bob", "bob", weight=7)
    with pytest.warns(InputWarning, match="'bob' has 7 with itself"):
        same(SynergyGraph(network))
    network.remove_edge("bob", "bob")
    with pytest.raises(InvalidInputError, match="its own names; leave out labels"):
        SynergyGraph(network, NAMES)
    network["ann"]["bob"]["weight"] = "much"
    with pytest.raises(InvalidInputError, match="the weight of 'ann'–'bob' is 'much', not a num"):
        SynergyGraph(network)


def test_an_igraph_graph_is_taken_as_it_is():
    igraph = pytest.importorskip("igraph", reason="igraph is not installed: pip install igraph")
    network = igraph.Graph(n=3, edges=[(0, 1), (2, 0)])
    assert SynergyGraph(network).labels == ("0", "1", "2")
    assert SynergyGraph(network).edges.weight.tolist() == [1, 1]
    network.vs["name"] = NAMES
    network.es["weight"] = [2, -1]
    same(SynergyGraph(network))
    same(SynergyGraph.from_igraph(network))
    arrows = igraph.Graph(n=2, edges=[(0, 1)], directed=True)
    with pytest.raises(InvalidInputError, match="not symmetric"):
        SynergyGraph(arrows)
    assert SynergyGraph.from_igraph(arrows, symmetrise="mean").edges.weight.tolist() == [0.5]
    with pytest.raises(InvalidInputError, match="multigraph"):
        SynergyGraph(igraph.Graph(n=2, edges=[(0, 1), (0, 1)]))


class Vertices(dict):
    def __len__(self):
        return 3

    def attributes(self):
        return list(self)


class LikeIgraph:
    """The part of igraph's interface that is used, for where igraph is not installed."""

    def __init__(self, edges, vertices, weights):
        self.edges, self.vs, self.es = edges, Vertices(vertices), Vertices(weights)

    def get_edgelist(self):
        return self.edges

    def has_multiple(self):
        return False

    def is_directed(self):
        return False


def test_igraphs_interface_is_all_that_is_needed():
    network = LikeIgraph([(0, 1), (2, 0), (1, 2)], {"name": NAMES}, {"weight": [2, -1, 0]})
    same(SynergyGraph(network))


def test_a_frame_of_pairs_is_taken_as_it_is():
    same(SynergyGraph(PAIRS))
    same(SynergyGraph(PAIRS.set_axis(["x1", "x2", "x3"], axis=1)))
    same(SynergyGraph.from_frame(PAIRS[["weight", "to", "from"]], ["from", "to", "weight"]))
    noted = PAIRS.assign(note="-")[["note", "weight", "from", "to"]]
    same(SynergyGraph(noted))
    same(SynergyGraph.from_frame(noted))
    both = pd.concat([PAIRS, PAIRS.rename(columns={"from": "to", "to": "from"})])
    same(SynergyGraph(both))
    turned = PAIRS.rename(columns={"from": "to", "to": "from"})
    rounded = turned.assign(weight=np.nextafter(turned["weight"], 0))
    assert SynergyGraph(pd.concat([PAIRS, rounded])).n_players == 3
    melted = pd.DataFrame(MATRIX, NAMES, NAMES).stack().reset_index()
    same(SynergyGraph(melted))
    numbered = SynergyGraph(pd.DataFrame({"i": [1, 1], "j": [2, 3], "value": [2.0, -1]}))
    assert numbered.labels == ("1", "2", "3")


def test_a_frame_of_pairs_with_a_fault_gets_a_sentence():
    gap = PAIRS.assign(weight=[2, None])
    with pytest.raises(InvalidInputError, match=r"'ann'–'cleo' has no number.* missing=0"):
        SynergyGraph(gap)
    assert SynergyGraph(gap, missing=-1).matrix[0, 2] == -1
    for wrong, sentence in [
        (PAIRS.assign(weight=["2", "x"]), "row 2 of the table: 'x' is not a number"),
        (PAIRS.assign(to=["bob", None]), "row 2 of the table has no name"),
        (PAIRS.assign(to=["bob", "bob"]), "the pair 'ann'–'bob' is listed twice"),
    ]:
        with pytest.raises(InvalidInputError, match=sentence):
            SynergyGraph(wrong)
    with pytest.raises(InvalidInputError, match="there is no column 'who'"):
        SynergyGraph.from_frame(PAIRS, ["who", "to", "weight"])
    with pytest.raises(InvalidInputError, match=r"which of \['p', 'q', 'r', 's'\] are they"):
        SynergyGraph.from_frame(pd.DataFrame(np.zeros((2, 4)), columns=list("pqrs")))
    turned = pd.concat(
        [PAIRS, PAIRS.rename(columns={"from": "to", "to": "from"}).assign(weight=0.0)]
    )
    with pytest.raises(InvalidInputError, match="the other way round, 0; choose symmetrise=mean"):
        SynergyGraph(turned)
    assert SynergyGraph(turned, symmetrise="mean").edges.weight.tolist() == [1, -0.5]


def test_a_frame_that_is_a_matrix_has_its_names_where_pandas_puts_them(tmp_path):
    frame = pd.DataFrame(MATRIX, NAMES, NAMES)
    same(SynergyGraph(frame))
    same(SynergyGraph(frame.reset_index(drop=True)))
    same(SynergyGraph(frame.reset_index()))
    frame.to_csv(tmp_path / "m.csv")
    same(SynergyGraph(pd.read_csv(tmp_path / "m.csv")))
    frame.reset_index(drop=True).to_csv(tmp_path / "m.csv")
    same(SynergyGraph(pd.read_csv(tmp_path / "m.csv")))
    with pytest.warns(InputWarning, match="the diagonal is ignored"):
        correlation = SynergyGraph(pd.DataFrame(MATRIX + np.eye(3), NAMES, NAMES))
    same(correlation)
    upper = frame.where(np.triu(np.ones((3, 3)), 1) > 0)
    same(SynergyGraph(upper, missing=0.0))
