"""Players by name: wherever a number is taken, a name is, and an unknown one gets a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from coalitions import CoalitionStructure, InvalidInputError, SynergyGraph
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
    with pytest.raises(InvalidInputError, match=r"no player 'anne'; did you mean 'ann'\?"):
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
    with pytest.raises(InvalidInputError, match=r"no player 'anne'; did you mean 'ann'\?"):
        solve(graph, must_link=[("anne", "bob")])
    with pytest.raises(InvalidInputError, match="must_link takes pairs of two different players"):
        solve(graph, must_link=["ann"])
