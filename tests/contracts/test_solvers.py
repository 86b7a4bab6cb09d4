"""What every registered solver must hold: value ≤ optimum ≤ bound, equality if it is exact."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import example, given, settings

from coalitions import CoalitionStructure, SynergyGraph
from solvers import SOLVERS, available, solve
from tests.strategies import synergy_graphs

RUNNABLE = [name for name, state in available().items() if state is True]
ILP = [name for name in RUNNABLE if hasattr(SOLVERS[name], "maximise")]


def tolerance(graph: SynergyGraph) -> float:
    return 1e-9 * np.abs(graph.edges.weight).sum()


every_solver = pytest.mark.parametrize("name", RUNNABLE)


def check(graph, solution, optimum, exact):
    slack = tolerance(graph)
    assert solution.structure.n_players == graph.n_players
    assert solution.value == graph.value(solution.structure)
    assert solution.value <= optimum + slack
    assert solution.bound >= optimum - slack
    if exact:
        assert solution.value >= optimum - slack
        assert solution.optimal


# Every exact solver on the same 200 graphs, against brute force and so against each other.
@settings(max_examples=60)
@given(graph=synergy_graphs(max_players=9))
@example(graph=SynergyGraph([[0.0]]))
@example(graph=SynergyGraph(np.zeros((5, 5))))
@example(graph=SynergyGraph(np.ones((5, 5)) - np.eye(5)))
@example(graph=SynergyGraph(np.eye(5) - np.ones((5, 5))))
def test_back_ends_agree_with_brute_force(graph):
    optimum = solve(graph, "brute-force")
    assert optimum.optimal
    for name in ILP:
        check(graph, solve(graph, name), optimum.value, exact=True)


@settings(max_examples=25)
@given(graph=synergy_graphs(max_players=6))
def test_the_full_formulation_agrees(graph):
    optimum = solve(graph, "brute-force").value
    for name in ILP:
        check(graph, solve(graph, name, formulation="full"), optimum, exact=True)


@every_solver
@settings(max_examples=40)
@given(graph=synergy_graphs(max_players=8))
def test_value_optimum_bound(name, graph):
    optimum = solve(graph, "brute-force").value
    check(graph, solve(graph, name), optimum, SOLVERS[name].exact)


@every_solver
def test_a_relabelled_graph_has_the_same_optimum(name, rng):
    matrix = np.triu(rng.integers(-9, 10, (7, 7)).astype(float), 1)
    graph = SynergyGraph(matrix + matrix.T)
    order = rng.permutation(7)
    moved = SynergyGraph(graph.matrix[np.ix_(order, order)])
    if SOLVERS[name].exact:
        assert solve(graph, name).value == solve(moved, name).value


@every_solver
def test_the_same_seed_gives_the_same_structure(name, rng):
    matrix = np.triu(rng.normal(size=(10, 10)), 1)
    graph = SynergyGraph(matrix + matrix.T)
    first, second = (solve(graph, name, seed=3) for _ in range(2))
    assert first.structure == second.structure
    assert first.bound == second.bound


@every_solver
def test_a_warm_start_is_never_made_worse(name, rng):
    matrix = np.triu(rng.normal(size=(10, 10)), 1)
    graph = SynergyGraph(matrix + matrix.T)
    best = solve(graph, "brute-force").structure
    solution = solve(graph, name, warm_start=best)
    assert solution.value >= graph.value(best) - tolerance(graph)


@every_solver
def test_a_time_limit_is_kept_and_the_bound_stays_valid(name, rng):
    if name == "brute-force":
        pytest.skip("brute force takes at most 12 players, which is over at once")
    n = 40
    matrix = np.triu(rng.normal(size=(n, n)), 1)
    graph = SynergyGraph(matrix + matrix.T)
    solve(graph, name, time_limit=0.2)  # compiles what is not compiled yet
    started = time.monotonic()
    solution = solve(graph, name, time_limit=0.5)
    # Building the model and loading a back-end is not the search; both are far below this.
    assert time.monotonic() - started < 15
    assert solution.value == graph.value(solution.structure)
    assert solution.bound >= solution.value >= 0
    best = solve(graph, "local-search").value
    assert solution.bound >= best - tolerance(graph)
    # Stopped before the search began, a back-end may have no bound at all: that is no proof.
    at_once = solve(graph, name, time_limit=1e-3)
    assert at_once.bound >= best - tolerance(graph)
    assert not at_once.optimal


@every_solver
def test_must_and_cannot_link_are_kept(name, rng):
    for _ in range(5):
        matrix = np.triu(rng.integers(-5, 6, (7, 7)).astype(float), 1)
        graph = SynergyGraph(matrix + matrix.T)
        links = {"must_link": [(0, 3), (3, 5)], "cannot_link": [(0, 1), (2, 4)]}
        solution = solve(graph, name, **links)
        labels = solution.structure.labels
        assert labels[0] == labels[3] == labels[5]
        assert labels[0] != labels[1]
        assert labels[2] != labels[4]
        check(graph, solution, best_linked(graph, links), SOLVERS[name].exact)


def best_linked(graph, links):
    """Return the best value among all partitions that keep the links."""
    best = -np.inf
    for labels in all_labels(graph.n_players):
        kept = all(labels[a] == labels[b] for a, b in links["must_link"])
        if kept and all(labels[a] != labels[b] for a, b in links["cannot_link"]):
            best = max(best, graph.value(CoalitionStructure.from_labels(labels)))
    return best


def all_labels(n, prefix=()):
    if len(prefix) == n:
        yield prefix
        return
    for block in range(max(prefix, default=-1) + 2):
        yield from all_labels(n, (*prefix, block))
