"""Players by name: wherever a number is taken, a name is, and an unknown one gets a sentence."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from coalitions import CoalitionStructure, InvalidInputError, SynergyGraph, TableGame
from coalitions.errors import did_you_mean
from solvers import solve, verify

MATRIX = [[0, 2, -1, 1], [2, 0, 1, -3], [-1, 1, 0, 2], [1, -3, 2, 0]]


@pytest.fixture
def graph():
    return SynergyGraph(MATRIX, ["ann", "bob", "cleo", "dan"])


def test_a_structure_of_names_is_the_one_of_numbers(graph):
    named = [["bob", "ann"], ["dan", 2]]
    structure = CoalitionStructure([[0, 1], [2, 3]])
    assert CoalitionStructure(named, graph) == graph.structure(named) == structure
    assert graph.structure(structure) is structure
    assert graph.value(named) == graph.value([[0, 1], [2, 3]]) == graph.value(structure) == 4
    assert graph.inside(named).tolist() == [2, 2]


def test_links_and_warm_starts_take_names(graph):
    by_number = solve(graph, must_link=[(0, 2)], cannot_link=[(0, 1)])
    by_name = solve(graph, must_link=[("ann", "cleo")], cannot_link=[("bob", "ann")])
    assert by_name.structure == by_number.structure
    assert by_name.must_link == ((0, 2),)
    assert solve(graph, warm_start=[["ann", "bob"], ["cleo", "dan"]], time_limit=5).value == 4


def test_a_verifier_takes_names(graph):
    checked = verify(
        graph, [["ann", "cleo"], ["bob"], ["dan"]], must_link=[("ann", "cleo")],
        cannot_link=[("bob", 3)],
    )  # fmt: skip
    assert checked.value == -1
    assert (checked.must_link, checked.cannot_link) == (((0, 2),), ((1, 3),))
    with pytest.raises(InvalidInputError, match=r"'anne'.*did you mean 'ann'\?"):
        verify(graph, [["ann", "bob", "cleo", "dan"]], must_link=[("anne", "bob")])


def test_a_text_is_a_name_and_a_number_a_place():
    graph = SynergyGraph(np.array(MATRIX), [3, 2, 1, 0])
    assert graph.structure([["3"], ["2", "1", "0"]]).coalitions == ((0,), (1, 2, 3))
    assert graph.structure([[3], [2, 1, 0]]).coalitions == ((0, 1, 2), (3,))


@pytest.mark.parametrize(
    ("coalitions", "sentence"),
    [
        ([["ann", "bbo"], ["cleo", "dan"]], "there is no player 'bbo'; did you mean 'bob'?"),
        ([["ann", "bob"], ["cleo"]], "player 'dan' is in no coalition"),
        ([["ann", "bob"], ["cleo", "dan", "ann"]], "player 'ann' is in two coalitions"),
        ([[0, 1, 2, 3, 4]], "there is no player 4"),
        ([0, 1], r"a coalition is a list of players, not 0; write \[\[0, 1\], \[2\]\]"),
        (["ann"], "a coalition is a list of players, not 'ann'"),
        ("ann", "'ann' is no structure"),
        (7, "7 is no structure"),
        ([[0.5], [1]], "by number or by name, not as 0.5"),
        ([[None]], "by number or by name, not as None"),
    ],
)
def test_who_is_not_there_gets_a_sentence(graph, coalitions, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        graph.value(coalitions)


def test_names_need_somebody_who_knows_them(graph):
    with pytest.raises(
        InvalidInputError, match=r"'ann' is a name.* CoalitionStructure\(coalitions, gr"
    ):
        CoalitionStructure([["ann"]])
    with pytest.raises(InvalidInputError, match=r"'anne'.*did you mean 'ann'\?"):
        solve(graph, must_link=[("anne", "bob")])
    with pytest.raises(InvalidInputError, match="must_link takes groups of players"):
        solve(graph, must_link=["ann"])


def parted(name):
    """Return a name as macOS writes it: accents after their letters."""
    return unicodedata.normalize("NFD", name)


def test_accents_are_composed_wherever_a_name_enters(tmp_path):
    matrix = [[0, 2, -1], [2, 0, -1], [-1, -1, 0]]
    names = ["Jörg", "Änne", "Bob"]
    for written, asked in ((parted, str), (str, parted), (parted, parted)):
        graph = SynergyGraph(matrix, [*map(written, names)])
        assert graph.labels == tuple(names)
        one, other, third = map(asked, names)
        assert graph.value([[one, other], [third]]) == 2
        apart = solve(graph, cannot_link=[(one, other)], at_least_one_of=[[one, other]])
        assert apart.cannot_link == ((0, 1),)
        weights = {one: 1, other: 1, third: 3}
        assert solve(graph, weights=weights, max_weight=3).value == 2
    assert TableGame([0, 0, 0, 1], [parted("Jörg"), "Bob"]).labels == ("Jörg", "Bob")


def test_files_with_both_spellings_name_one_player(tmp_path):
    table = tmp_path / "team.csv"
    table.write_text(f",Jörg,Änne\n{parted('Jörg')},0,2\n{parted('Änne')},2,0\n")
    assert SynergyGraph.read(table).labels == ("Jörg", "Änne")
    edges = tmp_path / "team.edges"
    edges.write_text(f"Jörg Bob 1\n{parted('Jörg')} Eve 2\n")
    assert SynergyGraph.read(edges).labels == ("Jörg", "Bob", "Eve")
    document = tmp_path / "team.json"
    document.write_text(f'{{"labels": ["Jörg", "Bob"], "edges": [["{parted("Jörg")}", "Bob", 1]]}}')
    assert SynergyGraph.read(document).labels == ("Jörg", "Bob")


def test_labels_that_differ_by_their_encoding_alone_clash():
    with pytest.raises(InvalidInputError, match="two labels read 'Jörg' and differ only in how"):
        SynergyGraph([[0, 1], [1, 0]], ["Jörg", parted("Jörg")])


@pytest.mark.parametrize(
    ("name", "meant"), [("jorg", "Jörg"), ("ANNE", "Änne"), ("bobb", "BOB"), ("strase", "Straße")]
)
def test_a_suggestion_overlooks_accents_and_capitals(name, meant):
    assert did_you_mean(name, ["Änne", "BOB", "Jörg", "Straße"]) == f"did you mean {meant!r}? "


def test_of_names_that_differ_in_capitals_alone_the_closer_one_is_meant():
    assert did_you_mean("ADAMM", ["adam", "ADAM"]) == "did you mean 'ADAM'? "
