"""What a wish costs: against two searches, by number and name, and with little time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalitions import InfeasibleError, InvalidInputError, SynergyGraph
from solvers import solve, what_if
from tests.solvers.alternatives.test_n_best import cases

FRIENDS = SynergyGraph([[0, 3, 2], [3, 0, -4], [2, -4, 0]], labels=["ann", "bob", "cleo"])


@settings(max_examples=40, deadline=None)
@given(cases(), st.data())
def test_the_cost_is_the_difference_of_two_searches(case, data):
    graph, _ = case
    n = graph.n_players
    if n < 3:
        return
    a, b, c = data.draw(st.permutations(range(n)))[:3]
    wish = what_if(graph, together=[(a, b)], apart=[(b, c)])
    base = solve(graph)
    granted = solve(graph, must_link=[(a, b)], cannot_link=[(b, c)])
    assert wish.base.value == base.value
    assert wish.solution.value == granted.value
    assert wish.cost == base.value - granted.value >= 0
    labels = wish.solution.structure.labels
    assert labels[a] == labels[b] != labels[c]
    assert wish.optimal
    assert wish.cost_range == (wish.cost, wish.cost)


def test_the_cost_with_sizes_and_links(rng):
    matrix = np.triu(rng.integers(-5, 6, (7, 7)), 1).astype(float)
    graph = SynergyGraph(matrix + matrix.T)
    demands = {"max_size": 3, "must_link": [(0, 1)]}
    wish = what_if(graph, together=[(1, 2)], **demands)
    with_it = solve(graph, max_size=3, must_link=[(0, 1), (1, 2)])
    assert wish.cost == solve(graph, **demands).value - with_it.value
    assert (0, 1, 2) in wish.solution.structure.coalitions


def test_names_and_numbers_say_the_same():
    by_name = what_if(FRIENDS, together=[("ann", "cleo")])
    assert by_name.cost == what_if(FRIENDS, together=[(0, 2)]).cost == 1.0
    assert by_name.solution.structure.coalitions == ((0, 2), (1,))
    assert what_if(FRIENDS, apart=[("ann", "bob")]).cost == 1.0


def test_a_group_is_all_of_its_pairs():
    assert what_if(FRIENDS, together=[("ann", "bob", "cleo")]).cost == 2.0
    assert what_if(FRIENDS, apart=[("ann", "bob", "cleo")]).cost == 3.0


def test_what_is_so_already_costs_nothing_and_takes_no_second_search():
    wish = what_if(FRIENDS, together=[("ann", "bob")])
    assert wish.cost == 0.0
    assert wish.solution is wish.base


def test_a_small_cost_is_told_beside_a_pair_at_minus_1e16():
    # Both structures have 0 and 1 together: their values are the same float.
    matrix = np.zeros((4, 4))
    for a, b, weight in ((0, 1, -1e16), (0, 2, 5e-12), (0, 3, 3e-12), (2, 3, -1.0)):
        matrix[a, b] = matrix[b, a] = weight
    wish = what_if(matrix, together=[(0, 3)], must_link=[(0, 1)])
    assert wish.base.value == wish.solution.value == -1e16
    assert wish.cost == 5e-12 - 3e-12
    assert wish.optimal


@pytest.mark.parametrize("time_limit", [1e-6, 0.3])
def test_little_time_gives_a_range_that_holds(rng, time_limit):
    matrix = np.triu(rng.normal(0.1, 1, (60, 60)), 1)
    graph = SynergyGraph(matrix + matrix.T)
    base = solve(graph, "greedy")
    a, b = base.structure.coalitions[0][:2]
    wish = what_if(graph, apart=[(a, b)], time_limit=time_limit)
    least, most = wish.cost_range
    assert 0 <= least <= wish.cost <= most
    assert not wish.optimal
    assert wish.base.bound >= wish.solution.bound


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        ({}, "takes a wish"),
        ({"together": ["ann"]}, "takes groups of players"),
        ({"together": [("ann",)]}, "two or more different players"),
        ({"apart": [("ann", "ann")]}, "two or more different players"),
        ({"apart": [("ann", "dan")]}, "'dan', who is not a player"),
    ],
)
def test_a_wish_that_is_none_is_refused(wish, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        what_if(FRIENDS, **wish)


def test_a_wish_that_cannot_be_granted_says_so():
    with pytest.raises(InfeasibleError):
        what_if(FRIENDS, together=[("ann", "bob")], apart=[("bob", "ann")])
