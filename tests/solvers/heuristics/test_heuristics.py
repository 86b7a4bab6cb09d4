"""greedy and local-search: kernels keep their books right, and good structures are found."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalitions import CoalitionStructure, InvalidInputError, SynergyGraph
from coalitions.runtime import clock
from solvers import Limits, solve
from solvers.heuristics import _dense_kernels as _dense
from solvers.heuristics import _sparse_kernels as _sparse
from solvers.heuristics._greedy_kernels import unite_on_edges
from solvers.heuristics.dense_search import improve, search_matrix
from solvers.heuristics.greedy import Greedy
from solvers.heuristics.local_search import LocalSearch
from solvers.heuristics.random_numbers import below, random_state, uniform
from solvers.heuristics.sparse_search import search_edges
from solvers.solver import fits_table, run_slices
from tests.strategies import label_vectors, synergy_graphs

BOTH = pytest.mark.parametrize("name", ["greedy", "local-search"])


def random_graph(rng, n):
    matrix = np.triu(rng.normal(size=(n, n)), 1)
    return SynergyGraph(matrix + matrix.T)


def sparse_graph(rng, n, m):
    pair = np.unique(rng.integers(0, n, (m, 2)), axis=0)
    pair = pair[pair[:, 0] < pair[:, 1]]
    return SynergyGraph.from_edges(n, pair[:, 0], pair[:, 1], rng.normal(size=len(pair)))


def worth(graph, labels):
    return graph.value(CoalitionStructure.from_labels(labels))


def assert_books_balance(table):
    """Everything the table keeps up to date equals what it would be if computed afresh."""
    n = len(table.slots)
    fresh = _dense.tabulate(table.weights, table.slots)
    together = table.slots[:, None] == table.slots[None, :]
    assert table.value[0] == pytest.approx(fresh.value[0], abs=1e-9)
    assert fresh.value[0] == pytest.approx((table.weights * together).sum() / 2, abs=1e-9)
    np.testing.assert_array_equal(table.sizes, np.bincount(table.slots, minlength=n))
    for c in range(n):
        expected = table.weights[:, table.slots == c].sum(1)
        np.testing.assert_allclose(table.gains[c], expected, atol=1e-9)
    used = table.order[: table.used[0]]
    assert set(used.tolist()) == set(table.slots.tolist())
    np.testing.assert_array_equal(table.order[table.place], np.arange(n))
    together = table.best_slots[:, None] == table.best_slots[None, :]
    assert table.best[0] == pytest.approx((table.weights * together).sum() / 2, abs=1e-9)


@settings(max_examples=60)
@given(data=st.data())
def test_every_dense_kernel_keeps_the_gain_table(data):
    graph = data.draw(synergy_graphs(max_players=9, scales=(1.0,)))
    n = graph.n_players
    labels = data.draw(label_vectors(n - 1)) if n > 1 else np.zeros(0, np.int64)
    labels = np.append(labels, 0).astype(np.int64)
    table = _dense.tabulate(graph.matrix.copy(), labels)
    state = random_state(data.draw(st.integers(0, 99)))
    assert_books_balance(table)
    _dense.anneal(table, 0.5, 50, n, state)
    assert_books_balance(table)
    _dense.perturb(table, 4, state)
    assert_books_balance(table)
    for change in (_dense.merge, _dense.split, _dense.swap):
        before = table.value[0]
        if change(table, 1e-9):
            assert table.value[0] > before
        else:
            assert table.value[0] == before
        assert_books_balance(table)
    before = table.value[0]
    _dense.descend(table, 1e-9, state)
    assert table.value[0] >= before
    assert_books_balance(table)


@settings(max_examples=100)
@given(data=st.data())
def test_value_optimum_bound_and_warm_start(data):
    graph = data.draw(synergy_graphs(min_players=2, max_players=7))
    name = data.draw(st.sampled_from(["greedy", "local-search"]))
    labels = data.draw(label_vectors(graph.n_players))
    optimum = solve(graph, "brute-force").value
    start = CoalitionStructure.from_labels(labels)
    tolerance = 1e-12 * np.abs(graph.edges.weight).sum()
    for solution in (solve(graph, name), solve(graph, name, warm_start=start)):
        assert solution.value == graph.value(solution.structure)
        assert solution.value <= optimum <= solution.bound
    assert solution.value >= graph.value(start) - tolerance


@settings(max_examples=25)
@given(graph=synergy_graphs(min_players=2, max_players=8, scales=(1.0,)), seed=st.integers(0, 99))
def test_sparse_and_dense_search_find_the_optimum_of_small_graphs(graph, seed):
    optimum = solve(graph, "brute-force").value
    rows = _sparse.rows_of(graph.n_players, *graph.edges)
    for search in (
        search_edges(rows, None, seed=seed, effort=1.0),
        search_matrix(graph.matrix.copy(), None, seed=seed, effort=1.0),
    ):
        value, labels = max(search, key=lambda found: found[0])
        assert value <= optimum + 1e-9
        assert worth(graph, labels) == pytest.approx(value, abs=1e-9)
        # Not guaranteed in general; on eight players both search long enough.
        if search.__name__ == "search_matrix":
            assert value == pytest.approx(optimum, abs=1e-9)


@settings(max_examples=60)
@given(graph=synergy_graphs(min_players=2, max_players=9, scales=(1.0,)), seed=st.integers(0, 99))
def test_sparse_kernels_report_what_they_gain(graph, seed):
    n = graph.n_players
    rows = _sparse.rows_of(n, *graph.edges)
    state = random_state(seed)
    labels = np.random.default_rng(seed).integers(0, n, n)
    before = worth(graph, labels)
    assert _sparse.value_of(rows, labels) == pytest.approx(before, abs=1e-9)
    now = _sparse.annealing(rows, labels)
    _sparse.anneal(rows, now, 0.5, 60, n, state)
    assert now.value[0] == pytest.approx(worth(graph, now.labels), abs=1e-9)
    np.testing.assert_array_equal(now.sizes, np.bincount(now.labels, minlength=n))
    spare = now.spare[: now.n_spare[0]]
    assert sorted(spare) == np.flatnonzero(now.sizes == 0).tolist()
    labels = now.labels.copy()
    gain, _ = _sparse.relocate(rows, labels, 1e-9, 10**9, state)
    assert worth(graph, labels) == pytest.approx(worth(graph, now.labels) + gain, abs=1e-9)
    for player in range(n):  # a local optimum: nobody gains by moving
        for target in range(n):
            other = labels.copy()
            other[player] = target
            assert worth(graph, other) <= worth(graph, labels) + 2e-9


def test_a_newcomer_may_drive_partners_out(rng):
    # A player is asked again when a neighbour comes, not only when one goes.
    for seed in range(300):
        matrix = np.triu(rng.integers(-3, 4, (9, 9)).astype(float), 1)
        matrix += matrix.T
        graph = SynergyGraph(matrix)
        labels = rng.integers(0, 9, 9)
        _sparse.relocate(_sparse.rows_of(9, *graph.edges), labels, 1e-9, 10**9, random_state(seed))
        pull = np.stack([matrix[:, labels == c].sum(1) for c in range(9)])
        assert (pull.max(axis=0) <= pull[labels, np.arange(9)]).all()


@settings(max_examples=60)
@given(graph=synergy_graphs(min_players=2, max_players=9, scales=(1.0,)), seed=st.integers(0, 99))
def test_contraction_keeps_synergies_between_blocks(graph, seed):
    n = graph.n_players
    labels = np.random.default_rng(seed).integers(0, n, n)
    blocks = _sparse.renumber(labels)
    rows = _sparse.contracted(_sparse.rows_of(n, *graph.edges), labels)
    between = np.zeros((blocks, blocks))
    i, j, w = _sparse.edges_of(rows)
    between[i, j] = between[j, i] = w
    expected = np.zeros((blocks, blocks))
    np.add.at(expected, (labels[:, None], labels[None, :]), graph.matrix)
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(between, expected, atol=1e-12)


@settings(max_examples=60)
@given(graph=synergy_graphs(min_players=2, max_players=9, scales=(1.0,)))
def test_greedy_unions_on_edges_leave_no_union_that_gains(graph):
    n = graph.n_players
    labels = unite_on_edges(n, *(array.copy() for array in graph.edges))
    structure = CoalitionStructure.from_labels(labels)
    assert graph.value(structure) >= 0
    numbers = structure.labels
    for a in range(len(structure)):
        for b in range(a):
            merged = np.where(numbers == b, a, numbers)
            assert worth(graph, merged) <= graph.value(structure) + 1e-9


def test_greedy_on_edges_and_on_a_matrix_agree_without_ties(rng):
    graph = random_graph(rng, 320)
    limits = Limits()
    dense = Greedy().search(graph, limits=limits).labels
    labels = unite_on_edges(320, *(array.copy() for array in graph.edges))
    table = _dense.tabulate(graph.matrix.copy(), labels)
    _dense.relocate(table, _dense.rounding_threshold(graph.matrix.copy()), random_state(0))
    assert worth(graph, dense) == pytest.approx(worth(graph, table.slots), rel=1e-12)


@BOTH
def test_planted_coalitions_are_found(name, rng):
    truth = np.repeat(np.arange(8), 40)
    n = len(truth)
    matrix = np.where(truth[:, None] == truth[None, :], 0.3, -0.1) + rng.normal(0, 0.1, (n, n))
    matrix = np.triu(matrix, 1)
    solution = solve(
        matrix + matrix.T, name, **({"effort": 0.02} if name == "local-search" else {})
    )
    assert solution.structure == CoalitionStructure.from_labels(truth)


@BOTH
def test_planted_coalitions_are_found_on_edges(name, rng):
    n, size = 3000, 30
    i = np.repeat(np.arange(n), 20)
    j = i // size * size + rng.integers(0, size, len(i))
    i, j = np.append(i, rng.integers(0, n, 20_000)), np.append(j, rng.integers(0, n, 20_000))
    pair = np.unique(np.sort(np.stack([i, j], 1), axis=1), axis=0)
    i, j = pair[pair[:, 0] < pair[:, 1]].T
    weight = np.where(i // size == j // size, 1.0, -1.0) + rng.normal(0, 0.3, len(i))
    graph = SynergyGraph.from_edges(n, i, j, weight)
    assert not fits_table(graph)
    solution = solve(graph, name)
    planted = CoalitionStructure.from_labels(np.arange(n) // size)
    assert solution.value >= graph.value(planted)
    assert solution.bound >= solution.value


@BOTH
def test_same_seed_same_structure_for_any_thread_count(name, rng):
    options = {"effort": 0.02} if name == "local-search" else {}
    for graph in (random_graph(rng, 60), random_graph(rng, 160), sparse_graph(rng, 400, 3000)):
        first, second = (solve(graph, name, seed=5, threads=t, **options) for t in (1, 2))
        assert first.structure == second.structure
        assert first.bound == second.bound


def test_best_known_value_of_random_graphs_of_forty_players(shared_instances):
    index = json.loads((shared_instances / "index.json").read_text())
    rows = [r for r in index if r["family"] == "cplib_correlation" and r["n"] <= 60]
    assert rows
    for row in rows:
        matrix = np.load(shared_instances / row["file"])["S"].astype(float)
        solution = solve(matrix, "local-search")
        assert solution.value == row["best_known"]
        assert solution.bound >= row["best_known"]


def test_above_150_players_annealing_beats_a_descent(rng):
    graph = random_graph(rng, 160)
    descent = improve(graph.matrix.copy(), np.arange(160), 0, random_state(0))[0]
    assert solve(graph, "local-search", effort=0.1).value > 1.03 * descent


def test_a_search_whose_structures_agree_ends_soon(rng):
    group = rng.integers(0, 10, 200)
    upper = np.triu(np.where(group[:, None] == group, 1.0, -1.0) + rng.normal(0, 1, (200, 200)), 1)
    graph = SynergyGraph(upper + upper.T)
    solution = solve(graph, "local-search")
    assert solution.value >= graph.value(CoalitionStructure.from_labels(group)) - 1e-9
    assert solution.stats["slices"] < 1000, "it was 8000: fifty children of one structure"
    hard = solve(random_graph(rng, 160), "local-search", effort=0.1)
    assert hard.stats["slices"] > 1000


@pytest.mark.parametrize("n", [120, 250])
def test_a_time_limit_is_kept(n, rng, monkeypatch):
    graph = random_graph(rng, n)
    solve(graph, "local-search", time_limit=0.01)  # kernels are compiled now
    monkeypatch.setattr(time, "monotonic", time.process_time)  # the machine may be busy
    started = clock()
    solution = solve(graph, "local-search", time_limit=0.3, effort=1e6)
    assert clock() - started < 1
    assert solution.value > 0


def test_interrupted_it_answers_with_the_best_so_far():
    def search():
        yield 1.0, np.array([0, 0])
        yield 3.0, np.array([0, 1])
        yield 2.0, np.array([0, 0])
        raise KeyboardInterrupt

    labels, slices = run_slices(search(), (0.0, np.array([5, 5])), 10.0, Limits())
    assert labels.tolist() == [0, 1]
    assert slices == 3


def test_the_search_ends_when_the_bound_is_reached():
    def search():
        yield 4.0, np.array([0, 0])
        raise AssertionError("nothing better exists")

    assert run_slices(search(), (0.0, np.array([0, 1])), 4.0, Limits())[0].tolist() == [0, 0]


def test_progress_is_reported(rng, monkeypatch):
    monkeypatch.setattr("solvers.solver.REPORT_EVERY", 0.0)
    seen = []
    solve(random_graph(rng, 40), "local-search", progress=seen.append)
    assert seen
    assert all(after.value >= before.value for before, after in itertools.pairwise(seen))
    assert all(report.value <= report.bound for report in seen)


def test_effort_must_be_positive():
    with pytest.raises(InvalidInputError, match="effort is 0"):
        LocalSearch(effort=0)


def test_looking_a_heuristic_up_does_not_load_numba():
    code = (
        "import sys; from solvers import SOLVERS; SOLVERS['local-search'](); SOLVERS['greedy']();"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_random_numbers_fill_their_range_evenly():
    state = random_state(1, 2)
    counts = np.bincount([below(state, 7) for _ in range(7000)], minlength=7)
    assert len(counts) == 7
    assert abs(counts - 1000).max() < 150
    draws = np.array([uniform(state) for _ in range(2000)])
    assert 0 <= draws.min() < 0.01 < 0.99 < draws.max() < 1
    assert random_state(1, 2)[0] != random_state(2, 1)[0]
