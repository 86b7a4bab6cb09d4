"""Gurobi, on the size-limited licence that the wheel of gurobipy brings along."""

from __future__ import annotations

import numpy as np
import pytest

from coalitions import NoSolutionError, SynergyGraph
from solvers import SOLVERS, available, solve

pytestmark = pytest.mark.skipif(
    available()["gurobi"] is not True, reason="gurobipy is not installed: pip install gurobipy"
)


def random_graph(n_players, seed):
    upper = np.triu(np.random.default_rng(seed).normal(size=(n_players, n_players)), 1)
    return SynergyGraph(upper + upper.T)


@pytest.mark.parametrize("formulation", ["rp-star", "full"])
@pytest.mark.parametrize("seed", range(5))
def test_gurobi_finds_and_proves_the_best_structure(seed, formulation):
    graph = random_graph(8, seed)
    best = solve(graph, "brute-force").value
    found = solve(graph, SOLVERS["gurobi"](formulation=formulation))
    assert found.value == pytest.approx(best)
    assert best - 1e-9 <= found.bound <= best + 1e-6 * abs(best)
    assert found.optimal


@pytest.mark.parametrize("sizes", [{"max_size": 3}, {"min_size": 2}, {"n_groups": 3}])
def test_gurobi_meets_sizes_by_the_full_formulation(sizes):
    graph = random_graph(8, 7)
    found = solve(graph, SOLVERS["gurobi"](formulation="full"), **sizes)
    assert found.value == pytest.approx(solve(graph, **sizes).value)


def test_a_model_beyond_the_free_licence_is_refused_in_a_sentence():
    # 780 variables and 29,640 rows; 2,000 of either are free.
    with pytest.raises(NoSolutionError, match="gurobi: Model too large for size-limited license"):
        solve(random_graph(40, 0), SOLVERS["gurobi"](formulation="full"))
