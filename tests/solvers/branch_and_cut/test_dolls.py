"""Russian dolls: the best structure of what is left to decide, or no answer."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from coalitions import CoalitionStructure, SynergyGraph
from solvers import SOLVERS, Limits, solve, verify
from solvers.branch_and_cut import russian_dolls as short_cuts
from solvers.branch_and_cut._cut_kernels import russian_dolls
from solvers.branch_and_cut.partition_problem import PartitionIncumbent, PartitionProblem
from solvers.branch_and_cut.russian_dolls import closed_by_russian_dolls
from tests.solvers.branch_and_cut.test_branch_and_cut import best_value, symmetric


def random_weights(rng: np.random.Generator, n: int) -> np.ndarray:
    spread = rng.choice([1, 3, 1000])
    return symmetric(n, rng.integers(-spread, spread + 1, n * (n - 1) // 2)).astype(np.int64)


def value_of(weights: np.ndarray, labels: np.ndarray) -> int:
    return int(weights[labels[:, None] == labels[None, :]].sum()) // 2


@pytest.mark.parametrize("seed", range(100))
def test_the_best_of_all_partitions(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    weights = random_weights(rng, n)
    done, labels = russian_dolls(weights, rng.integers(0, n, n), 0, 10**9)
    assert done
    assert value_of(weights, labels) == best_value(weights.astype(float))


@pytest.mark.parametrize("seed", range(60))
def test_pairs_that_must_stay_apart(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    weights = random_weights(rng, n)
    first, second = np.nonzero(np.triu(rng.random((n, n)) < 0.3, 1))
    problem = PartitionProblem.undecided(weights).separated(first, second)
    incumbent = PartitionIncumbent(weights, None, 0)
    assert closed_by_russian_dolls(problem, incumbent)
    forbidden = weights.astype(float)
    forbidden[problem.apart] = -1e6
    assert incumbent.value == best_value(forbidden)
    assert not (incumbent.labels[first] == incumbent.labels[second]).any()


def test_a_floor_is_kept_and_a_budget_ends_the_search():
    rng = np.random.default_rng(1)
    weights = symmetric(14, rng.integers(-9, 10, 91)).astype(np.int64)
    incumbent = PartitionIncumbent(weights, None, 0)
    problem = PartitionProblem.undecided(weights)
    assert not closed_by_russian_dolls(problem, incumbent, most_steps=20)
    assert incumbent.value == 0
    assert closed_by_russian_dolls(problem, incumbent)
    best, labels = incumbent.value, incumbent.labels
    # Nothing is above the floor: the labels stay.
    assert closed_by_russian_dolls(problem, incumbent)
    assert incumbent.value == best
    assert incumbent.labels is labels


def test_a_certificate_is_made_when_it_is_asked_for():
    rng = np.random.default_rng(4)
    graph = SynergyGraph(symmetric(20, rng.integers(-9, 10, 190)).astype(float))
    quick = solve(graph)
    assert quick.stats["steps"] == 0  # no step of the dual
    assert "certificate" not in vars(quick)
    again = pickle.loads(pickle.dumps(quick))
    for solution in (quick, again, solve(graph, "branch-and-cut", certify=True)):
        checked = verify(graph, solution.structure, solution.certificate)
        assert checked.optimal
        assert checked.value == quick.value


def test_short_cuts_inside_the_tree_prove_what_the_dual_proves(monkeypatch):
    # No luck before the dual; then dolls close what is left after its first look.
    monkeypatch.setattr("solvers.branch_and_cut.russian_dolls.MOST_GROUPS_OF_DOLLS", 0)
    rng = np.random.default_rng(2)
    graph = SynergyGraph(symmetric(24, rng.normal(0.05, 0.5, 276)))
    slow = SOLVERS["branch-and-cut"]().search(graph, limits=Limits())
    assert slow.stats["steps"] > 0
    monkeypatch.setattr(short_cuts, "SHRUNK", 1.0)
    monkeypatch.setattr(short_cuts, "closed_by_russian_dolls", _dolls_of_any_size)
    short = SOLVERS["branch-and-cut"]().search(graph, limits=Limits())
    assert 0 < short.stats["steps"] < slow.stats["steps"]
    values = [graph.value(CoalitionStructure.from_labels(a.labels)) for a in (slow, short)]
    assert values[0] == values[1]
    assert short.bound == pytest.approx(slow.bound, rel=1e-9)
    assert verify(graph, CoalitionStructure.from_labels(short.labels), short.certificate).optimal


def _dolls_of_any_size(
    problem: PartitionProblem, incumbent: PartitionIncumbent, steps: int | None = None
) -> bool:
    if steps is None:
        return False  # no luck before the dual
    done, labels = russian_dolls(
        np.where(problem.apart, -(10**17), problem.weights),
        np.arange(problem.n_groups),
        incumbent.value - problem.inside,
        10**9,
    )
    incumbent.offer(labels[problem.groups])
    return bool(done)
