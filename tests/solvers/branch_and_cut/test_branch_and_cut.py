"""branch-and-cut: no wrong proof, and every proof can be checked without a solver."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalitions import CoalitionStructure, SynergyGraph
from coalitions.runtime import clock
from solvers import SOLVERS, Answer, Limits, solve, verify
from solvers.branch_and_cut import branching as tree
from solvers.optimality import positive_weight
from solvers.solver import SearchProgress


def all_labels(n: int) -> Iterator[list[int]]:
    """Yield every partition once, as labels that appear in order."""

    def extend(labels: list[int], blocks: int) -> Iterator[list[int]]:
        if len(labels) == n:
            yield labels
            return
        for block in range(blocks + 1):
            yield from extend([*labels, block], max(blocks, block + 1))

    return extend([0], 1)


PARTITIONS: dict[int, np.ndarray] = {}


def best_value(matrix: np.ndarray) -> float:
    """Return the value of the best structure by looking at all of them."""
    n = len(matrix)
    if n not in PARTITIONS:
        labels = np.array(list(all_labels(n)), np.int8)
        i, j = np.triu_indices(n, 1)
        PARTITIONS[n] = labels[:, i] == labels[:, j]
    pairs = matrix[np.triu_indices(n, 1)]
    values = PARTITIONS[n] @ pairs
    # The product is rounded; the best candidates are added up again exactly.
    close = np.flatnonzero(values >= values.max() - 1e-12 * np.abs(pairs).sum())
    return max(math.fsum(pairs[PARTITIONS[n][k]].tolist()) for k in close)


def symmetric(n: int, values: np.ndarray) -> np.ndarray:
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n, 1)] = values
    return matrix + matrix.T


def search(matrix: np.ndarray, **limits: object) -> Answer:
    graph = SynergyGraph(matrix)
    return SOLVERS["branch-and-cut"]().search(graph, limits=Limits(**limits))


def assert_proven(matrix: np.ndarray, optimum: float | None = None) -> None:
    graph = SynergyGraph(matrix)
    solution = solve(graph, "branch-and-cut")
    total = positive_weight(graph)
    assert solution.optimal
    if optimum is not None:
        assert solution.value <= optimum <= solution.bound
        assert solution.value >= optimum - 1e-9 * total
    checked = verify(graph, solution.structure, solution.certificate)
    assert checked.optimal
    assert checked.bound >= solution.value


KINDS = {
    "few integers": lambda rng, m: rng.integers(-2, 3, m).astype(float),
    "integers": lambda rng, m: rng.integers(-100, 101, m).astype(float),
    "decimals": lambda rng, m: rng.integers(-9, 10, m) / 10.0,
    "thirds": lambda rng, m: rng.integers(-5, 6, m) / 3.0,
    "floats": lambda rng, m: rng.normal(size=m),
    "wide": lambda rng, m: rng.normal(size=m) * 10.0 ** rng.uniform(-6, 6, m),
    "sparse": lambda rng, m: rng.normal(size=m) * (rng.random(m) < 0.4),
}


@pytest.mark.parametrize("kind", KINDS)
def test_two_thousand_random_graphs_agree_with_brute_force(kind):
    rng = np.random.default_rng(20240607 + len(kind))
    for _ in range(286):
        n = int(
            rng.choice([3, 4, 5, 6, 7, 8, 9, 10], p=[0.2, 0.2, 0.2, 0.15, 0.1, 0.1, 0.03, 0.02])
        )
        matrix = symmetric(n, KINDS[kind](rng, n * (n - 1) // 2))
        assert_proven(matrix, best_value(matrix))


@pytest.mark.parametrize("copies", [2, 3])
def test_duplicated_players_agree_with_brute_force(copies, rng):
    for _ in range(30):
        small = symmetric(3, rng.integers(-4, 5, 3).astype(float))
        matrix = np.kron(small, np.ones((copies, copies))) + np.kron(
            np.eye(3), rng.integers(-1, 3) * (np.ones((copies, copies)) - np.eye(copies))
        )
        assert_proven(matrix, best_value(matrix))


@given(
    st.integers(2, 6).flatmap(
        lambda n: st.lists(
            st.one_of(
                st.sampled_from([0.0, 0.1, -0.1, 0.3, -0.3, 1 / 3, -1 / 3, 1e-7, -1e9]),
                st.floats(-10, 10),
            ),
            min_size=n * (n - 1) // 2,
            max_size=n * (n - 1) // 2,
        ).map(lambda values: symmetric(n, np.array(values)))
    )
)
def test_any_graph_is_proven(matrix):
    assert_proven(matrix, best_value(matrix))


@pytest.mark.parametrize("n", [12, 20, 28])
@pytest.mark.parametrize("seed", range(3))
def test_noisy_graphs_are_proven_through_cuts_and_branches(n, seed):
    rng = np.random.default_rng(seed)
    assert_proven(symmetric(n, rng.normal(0.05, 0.5, n * (n - 1) // 2)))


def test_all_ties_need_no_luck():
    # Every weight is ±1 on a cycle of friends: many structures are equally good.
    n = 9
    matrix = -np.ones((n, n)) + np.eye(n)
    for i in range(n):
        matrix[i, (i + 1) % n] = matrix[(i + 1) % n, i] = 1.0
    assert_proven(matrix, 4.0)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("modularity", "karate"),
        ("cplib_abr", "wildcats"),
        ("cplib_abr", "zoo"),
        ("fl", "fl_easy_50"),
    ],
)
def test_known_optimum(shared_instances, family, name):
    matrix = np.load(shared_instances / family / f"{name}.npz")["S"].astype(float)
    known = {"karate": 5714, "wildcats": 1304, "zoo": 16948, "fl_easy_50": 805053}[name]
    graph, answer = SynergyGraph(matrix), search(matrix)
    assert graph.value(CoalitionStructure.from_labels(answer.labels)) == known == answer.bound


def test_same_seed_same_answer():
    rng = np.random.default_rng(5)
    matrix = symmetric(25, rng.normal(size=300))
    one, two = search(matrix, seed=3), search(matrix, seed=3)
    assert one.bound == two.bound
    assert (one.labels == two.labels).all()
    assert one.certificate.to_json() == two.certificate.to_json()


def noisy(n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    return symmetric(n, rng.normal(0.0, 1.0, n * (n - 1) // 2))


def test_time_limit_is_kept_and_the_bound_is_certified():
    matrix = noisy(90)
    search(noisy(20))
    started = clock()
    answer = search(matrix, deadline=started + 1.0)
    assert clock() - started < 3.0
    graph, structure = SynergyGraph(matrix), CoalitionStructure.from_labels(answer.labels)
    value = graph.value(structure)
    assert value < answer.bound < np.maximum(matrix, 0).sum() / 2
    checked = verify(graph, structure, answer.certificate)
    assert checked.bound == pytest.approx(answer.bound, rel=1e-8)
    assert checked.optimal is False


def test_deadline_in_the_past_gives_an_honest_answer():
    matrix = noisy(40)
    answer = search(matrix, deadline=clock() - 1.0)
    graph, structure = SynergyGraph(matrix), CoalitionStructure.from_labels(answer.labels)
    assert 0.0 <= graph.value(structure) <= answer.bound
    verify(graph, structure, answer.certificate)


def test_interrupt_returns_the_best_so_far():
    calls = []

    def interrupt(progress: SearchProgress) -> None:
        calls.append(progress)
        raise KeyboardInterrupt

    matrix = noisy(90)
    answer = search(matrix, report=interrupt, deadline=clock() + 60)
    value = SynergyGraph(matrix).value(CoalitionStructure.from_labels(answer.labels))
    assert len(calls) == 1
    assert value == pytest.approx(calls[0].value)
    assert value <= answer.bound


def test_gap_ends_the_search_early():
    matrix = noisy(24)
    answer = search(matrix, gap=0.1)
    value = SynergyGraph(matrix).value(CoalitionStructure.from_labels(answer.labels))
    assert answer.bound - value <= 0.1 * answer.bound
    assert answer.stats["steps"] < search(matrix).stats["steps"]


def test_warm_start_is_not_lost():
    matrix = noisy(60)
    best = search(matrix, deadline=clock() + 1.0)
    graph = SynergyGraph(matrix)
    again = SOLVERS["branch-and-cut"]().search(
        graph, limits=Limits(deadline=clock() - 1.0, seed=9), warm_start=best.labels
    )
    value = graph.value(CoalitionStructure.from_labels(best.labels))
    assert graph.value(CoalitionStructure.from_labels(again.labels)) >= value


def test_splits_that_were_tried_before_are_proven(monkeypatch):
    monkeypatch.setattr(tree, "MOST_FOR_PARTITIONS", 0)  # which would close the root
    upper = np.triu(np.random.default_rng(2).integers(-9, 10, (24, 24)), 1)
    graph = SynergyGraph((upper + upper.T).astype(float))
    solution = solve(graph, certificate=True)
    assert solution.stats["nodes"] > 3  # more than the first split, which has fewer trials
    assert verify(graph, solution.structure, solution.certificate).optimal
    assert solution.value == solve(graph).value
