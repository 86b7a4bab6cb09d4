"""The local search beside a proof: it works as much as it is told, and is worth it."""

from __future__ import annotations

import numpy as np
import pytest

from coalitions.game import IntMatrix
from solvers import solve
from solvers.branch_and_cut.partition_problem import (
    MOST_PER_SLICE,
    SLICE_PER_PAIR,
    PartitionIncumbent,
)


def random_weights(n: int) -> IntMatrix:
    upper = np.triu(np.random.default_rng(n).integers(-100, 101, (n, n)), 1)
    return upper + upper.T


def slices_taken(incumbent: PartitionIncumbent, slices: int, work: float) -> int:
    taken = 0

    def check() -> None:
        nonlocal taken
        taken += 1

    incumbent.advance(slices, work, check)
    return taken


@pytest.mark.parametrize("n", [160, 800])
def test_with_many_players_work_is_made_up_for(n):
    incumbent = PartitionIncumbent(random_weights(n), None, 0)
    cost = min(SLICE_PER_PAIR * n * n, MOST_PER_SLICE)
    assert slices_taken(incumbent, 2, 0.0) == 2
    assert slices_taken(incumbent, 1, 7.5 * cost) == 5  # with the two before it is seven
    assert slices_taken(incumbent, 1, 7.5 * cost) == 1  # at least what is asked for


def test_with_few_players_slices_are_counted_and_come_to_an_end():
    incumbent = PartitionIncumbent(random_weights(20), None, 0)
    first = slices_taken(incumbent, 1, 1e12)
    assert first <= 50  # temperatures of one slice, whatever the work
    assert sum(slices_taken(incumbent, 50, 0.0) for _ in range(4)) > 0
    assert slices_taken(incumbent, 1, 0.0) == 0


@pytest.mark.slow
def test_a_random_graph_without_hope_of_a_proof_gets_a_good_structure():
    weights = random_weights(300)
    found = solve(weights, "branch-and-cut", time_limit=30)
    best = max(solve(weights, "local-search", seed=seed).value for seed in range(2))
    assert not found.optimal
    assert found.value >= 0.995 * best
