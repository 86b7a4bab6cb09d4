from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalitions import InputWarning, InvalidInputError, SynergyGraph
from tests.strategies import synergy_graphs

FORMATS = ["csv", "tsv", "npy", "npz", "json", "graphml", "edges"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("graphs")


@pytest.mark.parametrize("ending", FORMATS)
@given(graph=synergy_graphs(), edges=st.booleans())
def test_what_is_written_is_read_back(folder, ending, graph, edges):
    names = [f"player {k}" if ending != "edges" else f"p{k}" for k in range(graph.n_players)]
    if edges:
        named = SynergyGraph.from_edges(graph.n_players, *graph.edges, labels=names)
    else:
        named = SynergyGraph(graph.matrix, names)
    path = folder / f"graph.{ending}"
    named.write(path)
    back = SynergyGraph.read(path)
    assert np.array_equal(back.matrix, graph.matrix)
    assert ending == "npy" or back.labels == tuple(names)
    assert [p for p in folder.iterdir() if p.name.startswith(".")] == []  # nothing half-written


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("empty.csv", "", "is empty"),
        ("blank.csv", "\n\n", "is empty"),
        ("ragged.csv", "0,1\n1,0,2\n", "must be square, but line 2 has 3 numbers"),
        ("word.csv", "0,1,2\n1,0,x\n2,3,0", "line 2, column 3: 'x' is not a number"),
        ("word.csv", ",a,b\na,0,x\nb,1,0", "line 2, column 3: 'x' is not a number"),
        ("gap.csv", "0,,1\n,0,2\n1,2,0", r"of '0' and '1' \(line 1, column 2 is blank\); fill in"),
        ("order.csv", ",a,b\nb,0,1\na,1,0", "line 2 is named 'b', but column 2 is 'a'"),
        ("header.csv", "a,b\n0,1\n1,0\n2,3", "the header names 1 players and there are 3 rows"),
        ("twice.csv", ",a,a\na,0,1\na,1,0", "the label 'a' is used twice"),
        ("nan.csv", ",a,b\na,0,nan\nb,nan,0", "nothing is known of 'a' and 'b' .* missing=0"),
        ("skew.csv", ",a,b\na,0,1\nb,2,0", "not symmetric: 'a'–'b' is 1 but 'b'–'a' is 2"),
        ("what.xyz", "1", "the format 'xyz' is unknown; a graph is one of .csv"),
        ("nothing", "1", "the file's name has no ending"),
        ("short.edges", "a b 1\nc d\n", "line 2: expected `a b weight`"),
        ("twice.edges", "a b 1\na b 1\n", "the pair 'a'–'b' is listed twice"),
        ("both.edges", "a b 1\nb a 2\n", "'a'–'b' is 1 and, the other way round, 2; choose sym"),
        ("comma.edges", "ann,bob,3\nbob,cleo,-1\n", r"has commas .* name the file \.csv"),
        ("comma.edges", "ann, bob, 3\n", r"line 1: 'ann, bob, 3' has commas"),
        ("semicolon.edges", "ann;bob;3\n", "has commas or semicolons where `a b weight` has"),
        ("broken.json", '{"matrix": [', "line 1, column 13: not valid JSON"),
        ("other.json", "[1]", 'expected an object with "matrix" or "edges"'),
        ("edge.json", '{"edges": [["a", "b"]]}', r"edge 1 must be \[player, player, weight\]"),
        ("who.json", '{"labels": ["a"], "edges": [["a", "z", 1]]}', "'z', who is not in labels"),
        ("bad.npy", "no numpy", "not a NumPy file of plain numbers"),
        ("bad.graphml", "<graphml", "is not GraphML"),
        ("bomb.graphml", '<!DOCTYPE x [<!ENTITY a "b">]><graphml/>', "XML entities"),
    ],
)
def test_a_bad_file_is_refused_in_a_sentence(tmp_path, name, text, sentence):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=sentence) as caught:
        SynergyGraph.read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_said_to_be(tmp_path):
    with pytest.raises(InvalidInputError, match="there is no such file"):
        SynergyGraph.read(tmp_path / "none.csv")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        SynergyGraph.read(tmp_path)
    with pytest.raises(InvalidInputError, match="cannot be written"):
        SynergyGraph([[0]]).write(tmp_path / "none" / "graph.csv")


def test_a_pickle_is_never_loaded(tmp_path):
    path = tmp_path / "objects.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidInputError, match="objects are never loaded"):
        SynergyGraph.read(path)
    with path.with_suffix(".npz").open("wb") as file:
        np.savez(file, S=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidInputError, match="never loaded"):
        SynergyGraph.read(path.with_suffix(".npz"))


def test_numeric_labels_in_an_npz_are_a_clustering_not_names(tmp_path):
    path = tmp_path / "instance.npz"
    np.savez(path, S=np.array([[0, 1], [1, 0]], np.int32), labels=np.array([0, 0]))
    assert SynergyGraph.read(path).labels == ("0", "1")
    np.savez(path, matrix=np.array([[0, 1], [1, 0]]), labels=np.array(["ann", "bob"]))
    assert SynergyGraph.read(path).labels == ("ann", "bob")
    np.savez(path, other=np.zeros(3))
    with pytest.raises(InvalidInputError, match="has the arrays other; expected the matrix as S"):
        SynergyGraph.read(path)


def test_json_edges_may_use_names_or_numbers(tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(json.dumps({"labels": ["a", "b", "c"], "edges": [["a", "b", 1], [1, 2, -2]]}))
    graph = SynergyGraph.read(path)
    assert graph.matrix[0, 1] == 1
    assert graph.matrix[1, 2] == -2


def test_players_without_edges_survive_an_edge_list(tmp_path):
    graph = SynergyGraph.from_edges(3, [0], [2], [1.5], labels=["x", "alone", "y"])
    graph.write(tmp_path / "graph.edges")
    assert SynergyGraph.read(tmp_path / "graph.edges").labels == ("x", "alone", "y")
    with pytest.raises(InvalidInputError, match=r"which \.edges cannot hold; use \.json"):
        SynergyGraph([[0]], ["two words"]).write(tmp_path / "graph.edges")


def test_a_spreadsheets_byte_order_mark_is_no_part_of_a_name(tmp_path):
    path = tmp_path / "excel.csv"
    path.write_bytes(",a,b\na,0,1\nb,1,0\n".encode("utf-8-sig"))
    assert SynergyGraph.read(path).labels == ("a", "b")
    path.write_bytes(",ä,b\nä,0,1\nb,1,0\n".encode("latin-1"))
    with pytest.warns(InputWarning, match=r"excel\.csv: read as Windows text \(cp1252, not UTF-8"):
        assert SynergyGraph.read(path).labels == ("ä", "b")
    path.write_bytes(b",\x81,b\n\x81,0,1\nb,1,0\n")  # no character of cp1252
    with pytest.raises(InvalidInputError, match=r"is not UTF-8 text \(0x81\); save it as UTF-8"):
        SynergyGraph.read(path)


@pytest.mark.parametrize(
    ("how", "expected"), [("mean", 1.5), ("sum", 3.0), ("min", 1.0), ("max", 2.0)]
)
@pytest.mark.parametrize("text", ["a b 1\nb a 2\n"])
def test_directed_edge_lists_are_made_symmetric_on_request(tmp_path, how, expected, text):
    path = tmp_path / "graph.edges"
    path.write_text(text)
    assert SynergyGraph.read(path, symmetrise=how).matrix[0, 1] == expected


WISHES = {
    "w.csv": "from,to,points\na,b,3\nb,a,1\na,c,2\n",
    "w.edges": "a b 3\nb a 1\na c 2\n",
    "w.json": '{"labels": ["a", "b", "c"], "edges": [["a","b",3], ["b","a",1], ["a","c",2]]}',
    "m.csv": ",a,b,c\na,0,3,2\nb,1,0,0\nc,0,0,0\n",
    "m.json": '{"matrix": [[0, 3, 2], [1, 0, 0], [0, 0, 0]]}',
}


@pytest.mark.parametrize("name", WISHES)
@pytest.mark.parametrize(
    ("how", "value", "said"),
    [("sum", 6, "in full"), ("mean", 3, "half"), ("min", 1, "smaller"), ("max", 5, "larger")],
)
def test_pairs_of_one_direction_are_told_of(tmp_path, name, how, value, said):
    path, told = tmp_path / name, []
    path.write_text(WISHES[name])
    graph = SynergyGraph.read(path, symmetrise=how, tell=told.append)
    assert graph.value([[0, 1, 2]]) == value
    assert told[-1].startswith(f"{path}: 1 of 2 pairs are one-way")
    assert said in told[-1]


def test_without_a_word_a_pair_in_one_direction_counts_in_full_and_that_is_told(tmp_path):
    path, told = tmp_path / "w.csv", []
    path.write_text("from,to,points\na,b,3\nb,a,3\na,c,2\n")
    assert SynergyGraph.read(path, tell=told.append).value([[0, 1, 2]]) == 5
    assert "1 of 2 pairs are one-way" in told[-1]
    assert "each counts in full" in told[-1]
    path.write_text("from,to,points\na,b,3\na,c,2\n")
    SynergyGraph.read(path, tell=told.append)
    assert "every pair in one direction, which counts in full" in told[-1]
    plain = tmp_path / "plain.edges"  # a list of edges is just that
    plain.write_text("a b 3\na c 2\n")
    told.clear()
    SynergyGraph.read(plain, tell=told.append)
    assert told == []


@pytest.mark.parametrize("ending", ["csv", "tsv", "npy", "npz", "json", "xlsx"])
def test_every_matrix_file_takes_a_threshold(tmp_path, ending):
    matrix = np.array([[0, 0.75, 0.25], [0.75, 0, 0.5], [0.25, 0.5, 0]])
    path, told = tmp_path / f"m.{ending}", []
    if ending == "xlsx":
        pd.DataFrame(matrix, list("abc"), list("abc")).to_excel(path)
    else:
        SynergyGraph(matrix, "abc").write(path)
    graph = SynergyGraph.read(path, threshold="mean", tell=told.append)
    assert graph.matrix[0].tolist() == [0, 0.25, -0.25]
    assert told == [f"{path}: the mean of all pairs, 0.5, was subtracted from every one of 3 pairs"]
    path = tmp_path / "few.edges"
    path.write_text("a b 1\nb c 2\n")
    with pytest.raises(InvalidInputError, match=r"few\.edges: .*only 2 of 3 pairs are listed"):
        SynergyGraph.read(path, threshold=1)


def test_standard_input_needs_a_format(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"0,1\n1,0\n")

    monkeypatch.setattr("sys.stdin", Stdin)
    with pytest.raises(InvalidInputError, match="standard input needs a format"):
        SynergyGraph.read("-")
    assert SynergyGraph.read("-", format="csv").n_players == 2
