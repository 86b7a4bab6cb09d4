"""Weights that are no decimals: the search that proves finds what the quick search finds."""

from __future__ import annotations

import numpy as np
import pytest

from coalitions import SynergyGraph
from solvers import solve, verify
from solvers.branch_and_cut.partition_problem import PartitionIncumbent
from solvers.reductions import integer_weights
from tests.reliability.exact import assert_honest, exact_optimum


def gaussian(rng, n, mean):
    upper = np.triu(rng.normal(mean, 1, (n, n)), 1)
    return SynergyGraph(upper + upper.T)


def test_a_certificate_does_not_cost_the_best_structure():
    graph = gaussian(np.random.default_rng(13), 6, -1)
    quick, proven = solve(graph), solve(graph, "branch-and-cut", certify=True)
    assert quick.value == pytest.approx(0.9440, abs=1e-4)  # it was 0.3319 with a certificate
    assert proven.value == quick.value
    assert proven.optimal


@pytest.mark.parametrize("mean", [-2.0, -1.5, -1.0])
def test_certified_searches_of_gaussian_graphs_find_the_optimum(mean, rng):
    for _ in range(40):
        graph = gaussian(rng, int(rng.integers(5, 9)), mean)
        solution = solve(graph, "branch-and-cut", certify=True)
        assert_honest(graph, solution, exact_optimum(graph), exact=True)
        assert verify(graph, solution.structure, solution.certificate).optimal


@pytest.mark.parametrize("groups", [150, 20])
def test_planted_groups_of_600_players_are_proven(groups):
    rng = np.random.default_rng(groups)
    member = rng.integers(groups, size=600)
    mean = np.where(member[:, None] == member[None, :], 1.0, -1.0)
    upper = np.triu(mean + rng.normal(0, 0.5, (600, 600)), 1)
    solution = solve(SynergyGraph(upper + upper.T))
    assert solution.optimal
    # The roundings of 179 700 weights are far below the tolerance.
    assert solution.bound - solution.value < 1e-10 * solution.positive_weight


def test_a_pair_that_must_not_be_is_not_priced_at_one_unit():
    weights = np.array([[0, 7, -(10**6)], [7, 0, 5], [-(10**6), 5, 0]])
    incumbent = PartitionIncumbent(weights, np.zeros(3, np.int64), 0)
    assert incumbent.value == 0
    assert incumbent.labels.tolist() == [0, 1, 2]


def test_integers_are_the_nearest_to_weight_by_unit(rng):
    from fractions import Fraction

    for magnitude in (1e-300, 1.0, 1e300):
        weights = rng.normal(-1, 1, 50) * magnitude
        scaled = integer_weights(weights)
        nearest = [round(Fraction(weight) / scaled.unit) for weight in weights.tolist()]
        assert scaled.integers.tolist() == nearest
        above = sum(
            max(Fraction(0), Fraction(w) - scaled.unit * k)
            for w, k in zip(weights.tolist(), nearest, strict=True)
        )
        assert above <= Fraction(scaled.slack)
        assert scaled.slack <= 1e-14 * np.abs(weights).sum()


def test_the_weight_between_groups_does_not_depend_on_the_order_of_players():
    from solvers.demands import Contraction, Demands

    parts = [1e16, 1.0, 1.0, -1e16]
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], [1, 2, 3, 0]):
        matrix = np.zeros((5, 5))
        matrix[4, :4] = matrix[:4, 4] = np.array(parts)[order]
        graph = SynergyGraph(matrix)
        contraction = Contraction.apply(
            graph, Demands.of(graph, must_link=[(0, 1), (1, 2), (2, 3)])
        )
        assert contraction.graph.edges.weight.tolist() == [2.0]
