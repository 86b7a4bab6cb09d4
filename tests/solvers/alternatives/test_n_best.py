"""The best structures in order: against all partitions, with ties, links, sizes and time limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalitions import (
    CoalitionStructure,
    InfeasibleError,
    InvalidInputError,
    SynergyGraph,
    partition_labels,
)
from solvers import solve
from solvers.optimality import OPTIMALITY_TOLERANCE


def graph_of(n, rng, scale=4):
    matrix = np.triu(rng.integers(-scale, scale + 1, (n, n)), 1)
    return SynergyGraph((matrix + matrix.T).astype(float))


def all_values(graph, allowed=lambda labels: True):
    """Return the value of every allowed structure, by structure."""
    return {
        structure: graph.value(structure)
        for labels in partition_labels(graph.n_players)
        if allowed(labels)
        for structure in [CoalitionStructure.from_labels(labels)]
    }


def listed(solution):
    return [solution, *solution.others]


def check(solution, values, n_best):
    """The list is the top of all values, nobody is in it twice, and everything is proven."""
    found = listed(solution)
    best = sorted(values.values(), reverse=True)[:n_best]
    assert [each.value for each in found] == best
    assert len({each.structure for each in found}) == len(found)
    assert all(values[each.structure] == each.value for each in found)
    assert all(each.optimal for each in found)
    assert "others" not in solution.stats


@st.composite
def cases(draw, most=7):
    n = draw(st.integers(1, most))
    scale = draw(st.sampled_from([1, 3, 20]))  # many ties, some, hardly any
    cells = draw(st.lists(st.integers(-scale, scale), min_size=n * n, max_size=n * n))
    matrix = np.triu(np.array(cells, float).reshape(n, n), 1)
    return SynergyGraph(matrix + matrix.T), draw(st.integers(1, 30))


@settings(max_examples=40, deadline=None)
@given(cases())
def test_the_n_best_are_those_of_all_partitions(case):
    graph, n_best = case
    check(solve(graph, n_best=n_best), all_values(graph), n_best)


@settings(max_examples=25, deadline=None)
@given(cases(6), st.data())
def test_the_n_best_with_links(case, data):
    graph, n_best = case
    n = graph.n_players
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    pairs = st.lists(pair, max_size=2 if n > 1 else 0)
    must, cannot = data.draw(pairs), data.draw(pairs)
    values = all_values(
        graph,
        lambda labels: (
            all(labels[a] == labels[b] for a, b in must)
            and all(labels[a] != labels[b] for a, b in cannot)
        ),
    )
    if not values:
        with pytest.raises(InfeasibleError):
            solve(graph, n_best=n_best, must_link=must, cannot_link=cannot)
        return
    check(solve(graph, n_best=n_best, must_link=must, cannot_link=cannot), values, n_best)


@settings(max_examples=15, deadline=None)
@given(cases(6), st.integers(1, 3), st.integers(0, 2))
def test_the_n_best_with_sizes(case, low, more):
    graph, n_best = case
    high = low + more
    values = all_values(
        graph,
        lambda labels: all(low <= size <= high for size in np.bincount(labels).tolist()),
    )
    if not values:
        with pytest.raises(InfeasibleError):
            solve(graph, n_best=n_best, min_size=low, max_size=high)
        return
    check(solve(graph, n_best=n_best, min_size=low, max_size=high), values, n_best)


@pytest.mark.parametrize("unit", [1.0, 1e-11])
def test_what_roles_and_sizes_force_together_at_minus_1e16_is_proven(unit):
    for seed in range(15):
        rng = np.random.default_rng(seed)
        weight = np.where(rng.random((5, 5)) < 0.4, -1e16, rng.normal(0, unit, (5, 5)))
        graph = SynergyGraph(np.triu(weight, 1) + np.triu(weight, 1).T)
        for demand in ({"at_least_one_of": [(0, 2)]}, {"max_size": 3, "n_groups": 2}):
            found = listed(solve(graph, n_best=4, **demand))
            assert len(found) == 4
            assert all(each.optimal for each in found)
            assert [each.value for each in found] == sorted(
                (each.value for each in found), reverse=True
            )


def test_nine_players_and_two_hundred_structures(rng):
    graph = graph_of(9, rng, 30)
    check(solve(graph, n_best=200), all_values(graph), 200)


def test_a_list_longer_than_all_structures_has_all_of_them_and_says_nothing():
    graph = SynergyGraph([[0, 3, -2], [3, 0, -2], [-2, -2, 0]])
    solution = solve(graph, n_best=100)
    assert [each.value for each in listed(solution)] == [3.0, 0.0, -1.0, -2.0, -2.0]
    assert solution.stats.get("others") is None


@settings(max_examples=30, deadline=None)
@given(cases(6))
def test_all_optimal_finds_every_tie(case):
    graph, _ = case
    values = all_values(graph)
    best = max(values.values())
    found = listed(solve(graph, all_optimal=True))
    assert {each.structure for each in found} == {s for s, v in values.items() if v == best}


def test_optimal_is_meant_within_the_tolerance_of_a_proof():
    off = 10 * OPTIMALITY_TOLERANCE
    near, far = 1.0 - OPTIMALITY_TOLERANCE / 10, 1.0 - 10 * off
    graph = SynergyGraph([[0, 1, near, -9], [1, 0, -9, far], [near, -9, 0, -9], [-9, far, -9, 0]])
    pairs = [
        {block for block in each.structure if len(block) > 1}
        for each in listed(solve(graph, all_optimal=True))
    ]
    # {0, 2} and {1, 3} together are worth near + far: nearly twice as much as any single pair.
    assert pairs == [{(0, 2), (1, 3)}]
    alone = SynergyGraph([[0, 1, near], [1, 0, -9], [near, -9, 0]])
    assert len(solve(alone, all_optimal=True).others) == 1
    assert (
        len(solve(SynergyGraph([[0, 1, far], [1, 0, -9], [far, -9, 0]]), all_optimal=True).others)
        == 0
    )


def test_very_many_ties_end_at_the_cap_with_a_sentence():
    solution = solve(SynergyGraph(np.zeros((8, 8))), all_optimal=True, n_best=50)
    assert len(listed(solution)) == 50
    assert "after 50 optimal structures" in solution.stats["others"]


def test_the_list_is_the_same_every_time_and_its_values_for_another_solver(rng):
    graph = graph_of(8, rng, 3)
    one, two = solve(graph, n_best=12), solve(graph, n_best=12)
    assert [each.structure for each in listed(one)] == [each.structure for each in listed(two)]
    other = solve(graph, "brute-force", n_best=12)
    assert [each.value for each in listed(one)] == [each.value for each in listed(other)]


def test_a_time_limit_leaves_valid_bounds_and_says_so(rng):
    matrix = np.triu(rng.normal(0.1, 1, (60, 60)), 1)
    solution = solve(matrix + matrix.T, n_best=5, time_limit=1.0)
    found = listed(solution)
    assert not all(each.optimal for each in found)
    assert "not proven" in solution.stats["others"]
    assert all(each.bound >= each.value for each in found)
    assert [each.value for each in found] == sorted((e.value for e in found), reverse=True)


def test_ctrl_c_ends_the_list_with_what_was_found(rng, monkeypatch):
    from solvers.alternatives import n_best as ranking

    calls = []
    plain = ranking._between

    def pressed(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(*arguments)

    monkeypatch.setattr(ranking, "_between", pressed)
    solution = solve(graph_of(8, rng, 20), n_best=10)
    assert solution.stats["interrupted"]
    assert 3 <= len(listed(solution)) <= 10
    assert solution.optimal
    assert not solution.others[-1].optimal


def test_the_best_one_keeps_its_certificate(rng):
    from solvers import verify

    graph = graph_of(8, rng)
    solution = solve(graph, n_best=3, certificate=True)
    assert verify(graph, solution.structure, solution.certificate).optimal
    assert all(other.certificate is None for other in solution.others)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "two"])
def test_a_wrong_number_is_refused(wrong):
    with pytest.raises(InvalidInputError, match=r"n_best is .* whole number from 1 on"):
        solve([[0, 1], [1, 0]], n_best=wrong)


def test_forbidden_weights_do_not_disturb_the_order():
    never = -math.ldexp(1.0, 1000)
    graph = SynergyGraph([[0, 2, never], [2, 0, 1], [never, 1, 0]])
    assert [each.value for each in listed(solve(graph, n_best=3))] == [2.0, 1.0, 0.0]
