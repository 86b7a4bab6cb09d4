"""Cheap bounds hold for every structure, on every kind of weight."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalitions import SynergyGraph
from coalitions.runtime import clock
from solvers import Limits, solve
from solvers.heuristics.bounds import cycle_packing_bound
from tests.strategies import synergy_graphs


@settings(max_examples=80)
@given(graph=synergy_graphs(max_players=7))
def test_no_structure_is_worth_more(graph):
    optimum = solve(graph, "brute-force").value
    assert optimum <= cycle_packing_bound(graph) <= graph.positive_weight


@settings(max_examples=60)
@given(graph=synergy_graphs(max_players=7), seed=st.integers(0, 2**16))
def test_relabelled_players_have_the_same_positive_weight(graph, seed):
    order = np.random.default_rng(seed).permutation(graph.n_players)
    moved = SynergyGraph(graph.matrix[np.ix_(order, order)])
    assert moved.positive_weight == graph.positive_weight
    assert cycle_packing_bound(moved) >= solve(graph, "brute-force").value


def test_a_conflict_triangle_costs_its_smallest_weight():
    graph = SynergyGraph([[0, 5, -2], [5, 0, 3], [-2, 3, 0]])
    assert cycle_packing_bound(graph) == 6 == solve(graph, "brute-force").value


def test_a_long_conflict_cycle_is_found():
    # A path 0–1–2–3–4 of weight 4 and a hostile pair 0, 4: something must give, at least 1.
    i, j, w = [0, 1, 2, 3, 0], [1, 2, 3, 4, 4], [4.0, 4, 4, 4, -1]
    graph = SynergyGraph.from_edges(5, i, j, w)
    assert graph.positive_weight == 16
    assert cycle_packing_bound(graph) == 15 == solve(graph, "brute-force").value


def test_cycles_that_share_a_pair_share_its_weight():
    # Two hostile pairs, both closed over the pair 0–1 of weight 1: only one can be charged.
    i, j, w = [0, 0, 1, 1, 0], [1, 2, 2, 3, 3], [1.0, 5, -1, 5, -1]
    graph = SynergyGraph.from_edges(4, i, j, w)
    assert cycle_packing_bound(graph) == 10 == solve(graph, "brute-force").value


def test_disjoint_triangles_add_up():
    triangle = np.array([[0, 1, -1], [1, 0, 1], [-1, 1, 0]])
    graph = SynergyGraph(np.kron(np.eye(5), triangle))
    assert graph.positive_weight == 10
    assert cycle_packing_bound(graph) == 5


def test_without_conflicts_the_bound_is_the_optimum(rng):
    i = np.arange(99)
    graph = SynergyGraph.from_edges(100, i, i + 1, rng.normal(size=99))
    assert cycle_packing_bound(graph) == graph.positive_weight
    assert cycle_packing_bound(graph) == solve(graph, "local-search").value


def test_a_deadline_in_the_past_leaves_the_positive_weight(rng):
    matrix = np.triu(rng.normal(size=(30, 30)), 1)
    graph = SynergyGraph(matrix + matrix.T)
    over = Limits(deadline=clock() - 1)
    assert cycle_packing_bound(graph, limits=over) == pytest.approx(graph.positive_weight)
    assert cycle_packing_bound(graph) < 0.8 * graph.positive_weight
