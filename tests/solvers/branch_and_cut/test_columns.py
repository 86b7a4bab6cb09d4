"""Columns beside the dual: conflicts, how large coalitions can be, and the bound."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from coalitions import SynergyGraph
from coalitions.runtime import clock
from solvers import solve, verify
from solvers.branch_and_cut import russian_dolls as module
from solvers.branch_and_cut.branch_and_cut import TimeIsUp
from solvers.branch_and_cut.partition_problem import PartitionIncumbent, PartitionProblem
from solvers.branch_and_cut.russian_dolls import ConflictColumns, conflicts, widest
from tests.solvers.branch_and_cut.test_branch_and_cut import best_value, symmetric


def with_conflicts(rng: np.random.Generator, n: int, share: float) -> np.ndarray:
    """Return whole weights, positive but for a share of pairs that nothing can make up for."""
    weights = rng.integers(-5, 100, n * (n - 1) // 2)
    weights[rng.random(len(weights)) < share] = -9999
    return symmetric(n, weights).astype(np.int64)


def forbidding(weights: np.ndarray, apart: np.ndarray) -> np.ndarray:
    return np.where(apart, -1e6, weights.astype(float))


@pytest.mark.parametrize("seed", range(60))
def test_some_best_structure_has_no_conflict(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    spread = int(rng.choice([1, 3, 20]))
    weights = symmetric(n, rng.integers(-2 * spread, spread + 1, n * (n - 1) // 2)).astype(np.int64)
    first, second = np.nonzero(np.triu(rng.random((n, n)) < 0.2, 1))
    problem = PartitionProblem.undecided(weights).separated(first, second)
    found = conflicts(problem)
    assert found[problem.apart].all()
    assert (found == found.T).all()
    assert not found.diagonal().any()
    assert best_value(forbidding(weights, found)) == best_value(forbidding(weights, problem.apart))


@pytest.mark.parametrize("seed", range(30))
def test_no_set_without_a_conflict_is_larger(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 11))
    apart = np.triu(rng.random((n, n)) < rng.choice([0.1, 0.3, 0.6]), 1)
    apart |= apart.T
    largest = max(
        len(some)
        for size in range(1, n + 1)
        for some in itertools.combinations(range(n), size)
        if not apart[np.ix_(some, some)].any()
    )
    assert widest(apart) == largest
    monkeypatch.setattr(module, "STEPS_FOR_WIDTH", 2)
    assert largest <= widest(apart) <= n


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_comes_down_to_the_best_structure(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    weights = with_conflicts(rng, n, 0.4)
    problem = PartitionProblem.undecided(weights)
    best = best_value(forbidding(weights, weights < -1000))
    incumbent = PartitionIncumbent(weights, None, 0)
    columns = ConflictColumns(problem, incumbent)
    columns.search(allowed=lambda value: value, check=lambda: None, seed=0)
    assert columns.bound == incumbent.value == best


def test_what_is_decided_stays_so_and_counts():
    rng = np.random.default_rng(3)
    weights = with_conflicts(rng, 9, 0.3)
    first, second = np.argwhere(np.triu(weights > 0, 1))[0]
    merge = np.arange(9)
    merge[second] = first
    merge = np.unique(merge, return_inverse=True)[1]
    problem = PartitionProblem.undecided(weights).merged(merge)
    assert problem is not None
    forced = weights.astype(float)
    forced[first, second] = forced[second, first] = 1e7
    incumbent = PartitionIncumbent(weights, None, 0)
    columns = ConflictColumns(problem, incumbent)
    columns.search(allowed=lambda value: value, check=lambda: None, seed=0)
    assert columns.bound == best_value(forced) - 1e7 + weights[first, second]
    assert incumbent.labels[first] == incumbent.labels[second]


def test_a_search_that_is_stopped_leaves_a_valid_bound():
    class StoppedError(Exception):
        pass

    looks = iter(range(4))

    def check():
        if next(looks, None) is None:
            raise StoppedError

    weights = with_conflicts(np.random.default_rng(5), 24, 0.25)
    best = solve(SynergyGraph(weights.astype(float))).value
    columns = ConflictColumns(
        PartitionProblem.undecided(weights), PartitionIncumbent(weights, None, 0)
    )
    with pytest.raises(StoppedError):
        columns.search(allowed=lambda value: value, check=check, seed=0)
    assert columns.bound is not None
    assert columns.bound >= best


def test_one_that_is_too_slow_gives_up_and_the_dual_goes_on(monkeypatch):
    weights = with_conflicts(np.random.default_rng(6), 24, 0.25)
    columns = ConflictColumns(
        PartitionProblem.undecided(weights), PartitionIncumbent(weights, None, 0)
    )
    monkeypatch.setattr(module, "PATIENCE", 1)
    columns.search(allowed=lambda value: value, check=lambda: None, seed=0)
    assert columns.bound is not None
    assert columns.bound >= solve(SynergyGraph(weights.astype(float))).value


def test_a_graph_of_many_conflicts_is_proven_by_columns():
    weights = with_conflicts(np.random.default_rng(0), 28, 0.2).astype(float)
    graph = SynergyGraph(weights)
    solution = solve(graph)
    assert solution.optimal
    assert solution.stats["columns"] > 0
    # Its certificate is that of the columns: no other search is needed.
    began = clock()
    shown = solution.certificate
    assert clock() - began < 0.2
    assert verify(graph, solution.structure, shown).optimal


def test_columns_that_are_stopped_leave_a_certificate_of_the_bound_they_had(monkeypatch):
    search = ConflictColumns.search
    bounds = []

    def stopped(columns, *, allowed, check, seed):
        looks = iter(range(25))

        def hurried():
            if next(looks, None) is None:
                raise TimeIsUp

        try:
            search(columns, allowed=allowed, check=hurried, seed=seed)
        finally:
            bounds.append(columns.bound)

    monkeypatch.setattr(ConflictColumns, "search", stopped)
    graph = SynergyGraph(with_conflicts(np.random.default_rng(0), 28, 0.2).astype(float))
    solution = solve(graph, certificate=True)
    assert not solution.optimal
    assert bounds == [solution.bound]
    assert verify(graph, solution.structure, solution.certificate).bound == solution.bound


def test_a_graph_without_conflicts_is_not_for_columns():
    rng = np.random.default_rng(1)
    weights = symmetric(30, rng.integers(-9, 10, 435)).astype(np.int64)
    assert not ConflictColumns(
        PartitionProblem.undecided(weights), PartitionIncumbent(weights, None, 0)
    ).promising
