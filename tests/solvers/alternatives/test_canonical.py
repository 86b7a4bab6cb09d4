"""The canonical one of several best structures: against all partitions, solvers and starts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from coalitions import CoalitionStructure, InvalidInputError, SynergyGraph
from solvers import solve
from tests.solvers.alternatives.test_n_best import all_values, cases


def by_the_rule(values):
    """Return the structure of the largest value, the fewest pairs and the first labels."""
    best = max(values.values())
    return min(
        (structure for structure, value in values.items() if value == best),
        key=lambda s: (sum(len(c) * (len(c) - 1) for c in s), s.labels.tolist()),
    )


def coarse(n, rng):
    """Return synergies in steps of 0.01 with roundings off, as differences of accuracies have."""
    accuracy = rng.integers(30, 45, (n, n)) / 50
    own = rng.integers(30, 45, n) / 50
    gains = accuracy - own[:, None]
    matrix = (gains + gains.T) / 2
    np.fill_diagonal(matrix, 0.0)
    return SynergyGraph(matrix)


@settings(max_examples=40, deadline=None)
@given(cases())
def test_it_is_the_one_of_all_partitions(case):
    graph, _ = case
    solution = solve(graph, canonical=True)
    assert solution.structure == by_the_rule(all_values(graph))
    assert solution.optimal
    assert solution.stats["canonical"] is True


@settings(max_examples=10, deadline=None)
@given(cases(6))
def test_it_is_the_one_with_sizes_and_links(case):
    graph, _ = case
    if graph.n_players < 4:
        return
    values = all_values(
        graph, lambda labels: labels[0] == labels[1] and max(np.bincount(labels)) <= 3
    )
    solution = solve(graph, canonical=True, max_size=3, must_link=[(0, 1)])
    assert solution.structure == by_the_rule(values)
    assert solution.stats["canonical"] is True


@pytest.mark.parametrize("seed", range(3))
def test_it_depends_neither_on_the_solver_nor_on_the_start(seed):
    rng = np.random.default_rng(seed)
    graph = coarse(8, rng)
    starts = [None, CoalitionStructure.grand(8), CoalitionStructure.singletons(8)]
    found = {
        solve(graph, solver, warm_start=start, canonical=True).structure
        for solver in ("branch-and-cut", "brute-force", "highs", "cbc", "cp-sat")
        for start in starts
    }
    assert len(found) == 1


@pytest.mark.parametrize("solver", ["highs", "cbc", "cp-sat"])
def test_back_ends_find_the_same(solver):
    graph = SynergyGraph(np.ones((5, 5)) - np.eye(5) - 2 * np.eye(5)[::-1] * (1 - np.eye(5)))
    expected = by_the_rule(all_values(graph))
    assert solve(graph, solver, canonical=True).structure == expected


def test_a_rounding_off_breaks_no_tie():
    # 0.7 − 0.68 is not 0.02, and 0.01 + 0.01 is: both pairs of coalitions are worth the same.
    off = 0.7 - 0.68
    assert off != 0.02
    for first, second in ((off, 0.02), (0.02, off)):
        graph = SynergyGraph([[0, first, second], [first, 0, -1], [second, -1, 0]])
        assert solve(graph, canonical=True).structure.coalitions == ((0, 1), (2,))


def test_nobody_is_joined_for_nothing():
    assert len(solve(np.zeros((6, 6)), canonical=True).structure) == 6


def test_never_as_a_huge_number_does_not_blur_the_rest():
    graph = SynergyGraph([[0, 0.02, 0.01], [0.02, 0, -1e16], [0.01, -1e16, 0]])
    solution = solve(graph, canonical=True)
    assert solution.stats["canonical"] is True
    assert solution.structure.coalitions == ((0, 1), (2,))


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e20, 1e290])
def test_the_size_of_the_numbers_does_not_matter(scale):
    graph = SynergyGraph(np.array([[0, 2, 2], [2, 0, -5], [2, -5, 0]]) * scale)
    solution = solve(graph, canonical=True)
    assert solution.stats["canonical"] is True
    assert solution.structure.coalitions == ((0, 1), (2,))


def test_a_proof_goes_with_it():
    from solvers import verify

    graph = SynergyGraph([[0, 2, 2], [2, 0, -5], [2, -5, 0]])
    solution = solve(graph, canonical=True, certificate=True)
    assert verify(graph, solution.structure, solution.certificate).optimal


def test_little_time_is_said(rng):
    matrix = np.triu(rng.normal(0.1, 1, (60, 60)), 1)
    solution = solve(matrix + matrix.T, canonical=True, time_limit=0.5)
    assert solution.stats["canonical"] is False
    assert not solution.optimal


def test_a_list_is_something_else():
    with pytest.raises(InvalidInputError, match="canonical chooses one structure"):
        solve([[0, 1], [1, 0]], canonical=True, n_best=2)
