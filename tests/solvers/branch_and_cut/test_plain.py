"""Few players without a compiler: plain Python takes the steps of the kernels."""

from __future__ import annotations

import numpy as np
import pytest

from coalitions import SynergyGraph
from solvers import solve, verify
from solvers.branch_and_cut import _cut_kernels as compiled_dual
from solvers.branch_and_cut import partition_problem, plain, plain_dual
from solvers.branch_and_cut._cut_kernels import russian_dolls
from solvers.branch_and_cut.lagrangian_dual import LONGEST
from solvers.branch_and_cut.partition_problem import (
    ENOUGH_STEPS,
    FEW_GROUPS,
    is_plain,
    merges,
    spend,
)
from solvers.solver import random_state


def random_weights(rng: np.random.Generator, n: int) -> np.ndarray:
    spread = int(rng.choice([1, 3, 1000, 2**40]))
    there = rng.random((n, n)) < rng.choice([0.3, 1.0])
    upper = np.triu(rng.integers(-spread, spread + 1, (n, n)) * there, 1)
    return upper + upper.T


def never() -> bool:
    return False


@pytest.mark.parametrize("most_steps", [10**9, 300])
def test_dolls_end_where_the_kernel_does(most_steps):
    for seed in range(100):
        rng = np.random.default_rng(seed)
        weights = random_weights(rng, int(rng.integers(2, 13)))
        floor = int(rng.integers(0, 3))
        done, labels, _ = plain.plain_russian_dolls(weights, floor, most_steps, never)
        theirs = russian_dolls(weights, np.arange(len(weights)), floor, most_steps)
        assert done == theirs[0]
        assert labels.tolist() == theirs[1].tolist()


def test_mergers_are_those_of_the_kernel(monkeypatch):
    counted = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        weights = random_weights(rng, int(rng.integers(2, 13)))
        found = plain.plain_merges(weights)
        monkeypatch.setattr(partition_problem, "_spent", ENOUGH_STEPS)
        assert found == merges(weights)
        counted += len(found)
    assert counted > 100


def test_few_players_have_one_answer_whoever_works(monkeypatch):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(5, 15))
        weights = rng.choice([-1.0, 1.0], (n, n)) if seed % 2 else rng.normal(size=(n, n))
        graph = SynergyGraph(np.triu(weights, 1) + np.triu(weights, 1).T)
        answers = []
        for spent in (0, ENOUGH_STEPS):
            monkeypatch.setattr(partition_problem, "_spent", spent)
            for certificate in (False, True):
                solution = solve(graph, certificate=certificate)
                answers.append((solution.structure, solution.value, solution.bound))
            assert verify(graph, solution.structure, solution.certificate).optimal
        assert len(set(answers)) == 1, seed


def test_plain_python_serves_until_kernels_are_worth_loading(monkeypatch):
    monkeypatch.setattr(partition_problem, "_spent", 0)
    assert is_plain(FEW_GROUPS)
    assert not is_plain(FEW_GROUPS + 1)
    spend(ENOUGH_STEPS)
    assert not is_plain(2)


def test_time_that_is_up_leaves_a_structure_no_worse_than_greedy():
    rng = np.random.default_rng(3)
    weights = random_weights(rng, 20)
    done, labels, _ = plain.plain_russian_dolls(weights, 0, 10**9, lambda: True)
    assert not done
    assert len(labels) == 20
    greedy = plain.plain_greedy(weights)
    gained = weights[greedy[:, None] == greedy].sum() // 2
    graph = SynergyGraph(weights.astype(float))
    late = solve(graph, time_limit=1e-9)
    assert late.bound >= late.value >= gained > 0


def soft_point(rng: np.random.Generator, m: int) -> np.ndarray:
    upper = np.triu(rng.random((m, m)).astype(np.float32), 1)
    return upper + upper.T


@pytest.mark.parametrize("seed", range(8))
def test_rows_of_the_dual_are_those_of_the_kernels(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(4, 14))
    x = soft_point(rng, m)
    keys = plain_dual.violated_triangles(x, 0, m, 0.02, 10**6)
    assert keys.tolist() == compiled_dual.violated_triangles(x, 0, m, 0.02, 10**6).tolist()
    pairs, degree = plain_dual.triangle_pairs(keys, m)
    for mine, theirs in zip((pairs, degree), compiled_dual.triangle_pairs(keys, m), strict=True):
        assert mine.tolist() == theirs.tolist()
    steps = plain_dual.step_lengths(pairs, degree, 8.0)
    assert steps == pytest.approx(compiled_dual.step_lengths(pairs, degree, 8.0))
    y = rng.random(len(keys)).astype(np.float32) * (rng.random(len(keys)) < 0.5)
    y = y.astype(np.float32)
    idle = rng.integers(0, 3, len(keys)).astype(np.int16)
    new = plain_dual.violated_triangles(soft_point(rng, m), 0, m, 0.02, 10**6)
    kept = plain_dual.merge_rows(keys, y, y, idle, 3, new)
    for mine, theirs in zip(kept, compiled_dual.merge_rows(keys, y, y, idle, 3, new), strict=True):
        assert mine.tolist() == theirs.tolist()


@pytest.mark.parametrize("seed", range(8))
def test_cuts_are_violated_and_counted_as_the_kernels_do(seed):
    rng = np.random.default_rng(seed)
    m = 12
    x = soft_point(rng, m) * 0.6
    cuts, depths = plain_dual.grow_cuts(x, 0.02, 10, random_state(0))
    assert len(cuts) == len(depths) > 0
    heads = np.ones(len(cuts), np.int64)
    pointer, pairs, signs = plain_dual.cut_pairs(cuts, heads, m)
    same_pairs(cuts, heads, m)
    for row, cut in enumerate(cuts):
        members = cut[1:][cut[1:] >= 0]
        assert 3 <= len(set(members.tolist())) <= LONGEST
        assert cut[0] not in members
        mine = slice(pointer[row], pointer[row + 1])
        assert (signs[mine] * x.ravel()[pairs[mine]]).sum() > 1.02 - 1e-5
    triangles = np.array([[0, 1, 2], [3, 4, 5], [2, 0, 7]])
    values, cut_values = np.array([5, 0, 7]), rng.integers(0, 9, len(cuts))
    reduced = [np.zeros((m, m), np.int64), np.zeros((m, m), np.int64)]
    totals = [
        tools.subtract_rows(each, triangles, values, cuts, heads, cut_values)
        for tools, each in zip((plain_dual, compiled_dual), reduced, strict=True)
    ]
    assert totals[0] == totals[1]
    assert (reduced[0] == reduced[1]).all()


def same_pairs(cuts, heads, m):
    ours, theirs = (tools.cut_pairs(cuts, heads, m) for tools in (plain_dual, compiled_dual))
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.tolist() == other.tolist()


def test_a_few_steps_of_the_dual_go_where_the_kernel_goes():
    rng = np.random.default_rng(0)
    m = 10
    weights = np.triu(rng.normal(size=(m, m)), 1).astype(np.float32).ravel()
    keys = plain_dual.violated_triangles(soft_point(rng, m), 0, m, 0.02, 10**6)
    cuts, _ = plain_dual.grow_cuts(soft_point(rng, m) * np.float32(0.6), 0.02, 10, random_state(0))
    pairs, _ = plain_dual.triangle_pairs(keys, m)
    # Two on the first side of every other cut: any sides will do for the arithmetic.
    heads = np.where(np.arange(len(cuts)) % 2, 2, 1)
    same_pairs(cuts, heads, m)
    pointer, cells, signs = plain_dual.cut_pairs(cuts, heads, m)
    ends = []
    for tools in (plain_dual, compiled_dual):
        y, cut_y = np.zeros(len(keys), np.float32), np.zeros(len(cuts), np.float32)
        x, reduced = np.zeros(m * m, np.float32), weights.copy()
        bound, mu, _ = tools.ascend(
            *(weights, np.ones(m * m, np.float32)),
            (pairs, y, y.copy(), np.full(len(y), 0.05, np.float32)),
            (
                *(pointer, cells, signs, heads.astype(np.float32)),
                *(cut_y, cut_y.copy(), np.full(len(cut_y), 0.02, np.float32)),
            ),
            (reduced, reduced.copy(), x),
            *(0.2, 0.99, 1.0, 30),
        )
        ends.append((bound, mu, float(y.sum()), float(cut_y.sum())))
    assert ends[0] == pytest.approx(ends[1], rel=1e-3)
