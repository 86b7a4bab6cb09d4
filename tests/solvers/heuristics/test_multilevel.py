"""multilevel: kernels keep their books, steps decide the answer, and good structures are found."""

from __future__ import annotations

import itertools
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalitions import CoalitionStructure, InvalidInputError, SynergyGraph
from solvers import solve
from solvers.heuristics import _multilevel_kernels as kernels
from solvers.heuristics.multilevel import LevelSearch
from solvers.heuristics.random_numbers import random_state
from tests.strategies import label_vectors, synergy_graphs


def planted(n, degree, group, seed=0):
    """Return a graph of groups: half of the edges inside, +0.5; others −0.5; noise 1."""
    rng = np.random.default_rng(seed)
    i = rng.integers(0, n, n * degree // 2)
    near = i - i % group + rng.integers(0, group, len(i))
    j = np.where(rng.random(len(i)) < 0.5, near, rng.integers(0, n, len(i)))
    return unique(n, i, j, lambda i, j: np.where(i // group == j // group, 0.5, -0.5), rng)


def random_signs(n, degree, plus=0.5, seed=0):
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, n, (2, n * degree // 2))
    signs = np.where(rng.random(len(i)) < plus, 1.0, -1.0)
    return unique(n, i, j, lambda i, j: signs[: len(i)], None)


def unique(n, i, j, mean, rng):
    keys = np.unique(np.minimum(i, j)[i != j] * n + np.maximum(i, j)[i != j])
    i, j = keys // n, keys % n
    noise = 0.0 if rng is None else rng.normal(0, 1, len(i))
    return SynergyGraph.from_edges(n, i, j, mean(i, j) + noise)


KINDS = {
    "groups": planted(1000, 40, 50),
    "random signs": random_signs(1000, 20),
    "mostly friends": random_signs(1000, 20, plus=0.7),
}


def worth(graph, labels):
    return graph.value(CoalitionStructure.from_labels(labels))


def level_of(graph):
    return kernels.level_of(graph.n_players, graph.edges)


@settings(max_examples=60)
@given(data=st.data())
def test_moves_keep_their_books_and_end_where_nobody_gains_alone(data):
    graph = data.draw(synergy_graphs(min_players=2, max_players=9, scales=(1.0,)))
    n, level = graph.n_players, level_of(graph)
    labels = (data.draw(label_vectors(n)) % n).astype(np.int32)
    now, before = kernels.partition_of(labels), worth(graph, labels)
    assert kernels.value_of(level, labels) == pytest.approx(before, abs=1e-9)
    kernels.queue_all(now, random_state(data.draw(st.integers(0, 99))))
    while not kernels.move(level, now, 1e-9, 5):
        pass
    assert worth(graph, labels) >= before - 1e-9
    np.testing.assert_array_equal(now.sizes, np.bincount(labels, minlength=n))
    spare = now.spare[: now.counters[kernels.SPARES]]
    assert sorted(spare) == np.flatnonzero(now.sizes == 0).tolist()
    assert not now.pull.any()
    assert not now.queued.any()
    for player in range(n):
        for target in range(n):
            other = labels.copy()
            other[player] = target
            assert worth(graph, other) <= worth(graph, labels) + 2e-9


@settings(max_examples=60)
@given(data=st.data())
def test_a_coarser_level_has_the_same_synergies_between_groups(data):
    graph = data.draw(synergy_graphs(min_players=2, max_players=9, scales=(1.0,)))
    n, level = graph.n_players, level_of(graph)
    one, other = ((data.draw(label_vectors(n)) % n).astype(np.int32) for _ in range(2))
    groups = np.empty(n, np.int32)
    n_groups = kernels.overlay(one, other, groups)
    together = (one[:, None] == one) & (other[:, None] == other)
    np.testing.assert_array_equal(groups[:, None] == groups, together)
    assert set(groups.tolist()) == set(range(n_groups))
    coarse = kernels.contract(level, groups, n_groups)
    between = np.zeros((n_groups, n_groups))
    tail = np.repeat(np.arange(n_groups), np.diff(coarse.first))
    np.add.at(between, (tail, coarse.neighbours), coarse.weights)
    member = (groups[:, None] == np.arange(n_groups)).astype(float)
    expected = member.T @ graph.matrix @ member
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(between, expected, atol=1e-9)
    assert len(set(zip(tail.tolist(), coarse.neighbours.tolist(), strict=True))) == len(tail)


@settings(max_examples=60)
@given(data=st.data(), noise=st.sampled_from([0.0, 0.5, 1.0]))
def test_refined_groups_lie_inside_blocks_and_gain(data, noise):
    graph = data.draw(synergy_graphs(min_players=2, max_players=9, scales=(1.0,)))
    n, level = graph.n_players, level_of(graph)
    labels = (data.draw(label_vectors(n)) % n).astype(np.int32)
    groups = np.empty(n, np.int32)
    state = random_state(data.draw(st.integers(0, 99)))
    now = kernels.partition_of(labels)
    n_groups = kernels.refine(level, now, noise, 1e-9, groups, state)
    assert set(groups.tolist()) == set(range(n_groups))
    assert len(set(zip(groups.tolist(), labels.tolist(), strict=True))) == n_groups
    assert worth(graph, groups) >= 0.0


@settings(max_examples=40)
@given(graph=synergy_graphs(min_players=2, max_players=9, scales=(1.0,)), seed=st.integers(0, 99))
def test_sweeps_keep_the_table(graph, seed):
    level, n_blocks = level_of(graph), 3
    labels = np.random.default_rng(seed).integers(0, n_blocks, graph.n_players).astype(np.int32)
    table = kernels.pulls(level, labels, n_blocks)
    for temperature in (1.0, 0.1):
        kernels.sweep(level, labels, table, temperature, random_state(seed))
    assert 0 <= labels.min() <= labels.max() < n_blocks
    np.testing.assert_allclose(table, kernels.pulls(level, labels, n_blocks), atol=1e-9)


@settings(max_examples=60)
@given(data=st.data())
def test_value_optimum_bound_and_warm_start(data):
    graph = data.draw(synergy_graphs(min_players=2, max_players=7))
    start = CoalitionStructure.from_labels(data.draw(label_vectors(graph.n_players)))
    optimum = solve(graph, "brute-force").value
    tolerance = 1e-12 * np.abs(graph.edges.weight).sum()
    for solution in (solve(graph, "multilevel"), solve(graph, "multilevel", warm_start=start)):
        assert solution.value == graph.value(solution.structure)
        assert solution.value <= optimum <= solution.bound
    assert solution.value >= graph.value(start) - tolerance


@pytest.mark.parametrize("kind", KINDS)
def test_it_finds_more_than_greedy_and_than_its_start(kind):
    graph = KINDS[kind]
    greedy, found = solve(graph, "greedy"), solve(graph, "multilevel", steps=12)
    assert found.value > greedy.value
    again = solve(graph, "multilevel", warm_start=found, steps=12, seed=1)
    assert again.value >= found.value
    assert solve(graph, "multilevel", warm_start=greedy, steps=1).value >= greedy.value


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_not_behind_local_search(kind):
    graph = KINDS[kind]
    assert solve(graph, "multilevel").value >= 0.999 * solve(graph, "local-search").value


@pytest.mark.parametrize("looks", [1, 7, 60, 200])
@pytest.mark.parametrize("kind", KINDS)
def test_equal_numbers_of_steps_give_equal_answers_whatever_the_clock_says(kind, looks):
    clock = itertools.count()
    stopped = LevelSearch(KINDS[kind], seed=5, expired=lambda: next(clock) >= looks)
    *_, last = stopped.slices()
    assert last is stopped.best
    assert worth(KINDS[kind], last[1]) == pytest.approx(last[0])
    if stopped.n_steps:
        again = LevelSearch(KINDS[kind], seed=5)
        *_, best = again.slices(steps=stopped.n_steps)
        np.testing.assert_array_equal(best[1], last[1])


def test_the_seed_decides():
    graph = KINDS["groups"]
    one, same, other = (solve(graph, "multilevel", steps=1, seed=seed) for seed in (5, 5, 6))
    assert one.structure == same.structure != other.structure


def test_a_time_limit_is_kept_and_any_time_gives_an_answer():
    graph = planted(20_000, 20, 50)
    solve(graph, "multilevel", steps=1)
    for limit in (1e-3, 0.5):
        started = time.monotonic()
        solution = solve(graph, "multilevel", time_limit=limit, effort=1e9)
        assert time.monotonic() - started < limit + 20  # generous: the machine may be busy
        assert 0 <= solution.value <= solution.bound


def test_it_may_run_in_several_threads():
    graph, found = KINDS["groups"], {}
    expected = solve(graph, "multilevel", steps=6, seed=2).structure

    def run(number):
        found[number] = solve(graph, "multilevel", steps=6, seed=2).structure

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found.values()) == {expected}


def test_steps_are_counted_and_the_search_ends_by_itself():
    search = LevelSearch(KINDS["groups"], seed=0)
    values = [value for value, _ in search.slices(steps=5)]
    assert len(values) == search.n_steps == 5
    assert values == sorted(values)
    short = solve(KINDS["groups"], "multilevel", effort=0.1).stats["steps"]
    assert short < solve(KINDS["groups"], "multilevel").stats["steps"]


def test_links_are_kept():
    graph = KINDS["random signs"]
    links = {"must_link": [(0, 1), (1, 2)], "cannot_link": [(0, 3), (4, 5)]}
    labels = solve(graph, "multilevel", steps=8, **links).structure.labels
    assert labels[0] == labels[1] == labels[2] != labels[3]
    assert labels[4] != labels[5]


def test_auto_takes_it_for_sparse_graphs_too_large_for_a_proof():
    sparse = random_signs(3500, 6)
    assert solve(sparse, time_limit=1).solver == "multilevel"
    assert solve(sparse.subgraph(range(60)), time_limit=1).solver == "branch-and-cut"


@pytest.mark.parametrize("option", [{"steps": 0}, {"effort": 0}])
def test_options_must_be_positive(option):
    with pytest.raises(InvalidInputError, match="is 0; it must be"):
        solve([[0, 1], [1, 0]], "multilevel", **option)
