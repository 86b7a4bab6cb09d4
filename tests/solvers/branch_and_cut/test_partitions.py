"""Cuts with several groups on both sides: valid, found, proven and checked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from coalitions import InvalidInputError, SynergyGraph, partition_labels
from solvers import Certificate, solve, verify
from solvers.branch_and_cut import _cut_kernels as kernels
from solvers.branch_and_cut import plain_dual as plain
from solvers.branch_and_cut.lagrangian_dual import (
    WIDEST,
    Ascent,
    Multipliers,
    cuts_of,
    exact_bound,
    violated_cuts,
    violated_partitions,
)
from solvers.branch_and_cut.partition_problem import PartitionProblem
from solvers.heuristics.random_numbers import random_state


def soft_point(rng, m):
    upper = np.triu(rng.random((m, m)), 1).astype(np.float32)
    return upper + upper.T


def partitions(x, seed=0):
    return violated_partitions(x, violation=0.02, starts=200, at_most=100, state=random_state(seed))


def left_sides(cuts, heads, together):
    """Return Σ_{S, T} x − Σ_S x − Σ_T x for each cut, from the definition."""
    values = []
    for cut, head in zip(cuts, heads, strict=True):
        nodes = cut[cut >= 0]
        sign = np.where(np.arange(len(nodes)) < head, -1.0, 1.0)
        inner = together[np.ix_(nodes, nodes)] * np.outer(sign, sign)
        values.append(-np.triu(inner, 1).sum())
    return np.array(values)


def test_no_structure_violates_what_is_found_and_the_point_does():
    x = soft_point(np.random.default_rng(0), 8) * np.float32(0.7)
    cuts, heads = partitions(x)
    assert (heads > 1).any()
    sizes = np.count_nonzero(cuts >= 0, axis=1)
    assert (2 * heads < sizes).all()
    assert (left_sides(cuts, heads, x) > heads + 0.02 - 1e-5).all()
    for labels in partition_labels(8):
        assert (left_sides(cuts, heads, labels[:, None] == labels) <= heads).all()


def test_groups_of_one_side_count_once_and_those_of_two_sides_not_at_all():
    cuts, heads, _ = cuts_of(
        np.zeros(7, np.int64), np.arange(7), np.array([1, 1, 1, 0, 0, 0, 0], np.bool_), 1
    )
    rows = Multipliers(np.empty((0, 3), np.int64), np.empty(0), cuts, heads, np.array([2.0]))
    once = rows.mapped(np.array([0, 1, 1, 2, 3, 4, 5]))
    assert once.cuts[0, :7].tolist() == [0, 1, 2, 3, 4, 5, -1]
    assert once.heads.tolist() == [2]
    assert once.cut_values.tolist() == [2.0]
    gone = rows.mapped(np.array([0, 1, 2, 2, 3, 4, 5]))
    assert gone.cuts[0, :6].tolist() == [0, 1, 3, 4, 5, -1]
    assert gone.heads.tolist() == [2]
    smaller = rows.mapped(np.array([0, 1, 2, 3, 3, 3, 4]))
    assert smaller.cuts[0, :6].tolist() == [3, 4, 0, 1, 2, -1]  # the smaller side is the first
    assert not len(rows.mapped(np.array([0, 1, 2, 3, 3, 4, 5])).cuts)  # three on both sides


@pytest.mark.parametrize("tools", [kernels, plain])
def test_the_exact_bound_is_one_for_any_multipliers(tools):
    rng = np.random.default_rng(1)
    n = 7
    upper = np.triu(rng.integers(-9, 10, (n, n)), 1)
    weights = upper + upper.T
    best = max(int(weights[labels[:, None] == labels].sum()) // 2 for labels in partition_labels(n))
    bounds = []
    for seed in range(20):
        cuts, heads = partitions(soft_point(rng, n) * np.float32(0.7), seed)
        values = rng.exponential(0.3, len(cuts))
        rows = Multipliers(np.empty((0, 3), np.int64), np.empty(0), cuts, heads, values)
        bounds.append(exact_bound(PartitionProblem.undecided(weights), rows, tools).bound)
    assert min(bounds) >= best
    assert max(bounds) > min(bounds)


@pytest.fixture(scope="module")
def proven():
    """A graph that cuts of two sides help, and the certificate of the search."""
    rng = np.random.default_rng(3)
    upper = np.triu(rng.integers(-9, 10, (26, 26)), 1)
    graph = SynergyGraph((upper + upper.T).astype(float))
    return graph, solve(graph, "branch-and-cut", certificate=True)


def test_a_certificate_with_two_sides_is_accepted_and_others_are_not(proven):
    graph, solution = proven
    assert solution.optimal
    document = json.loads(json.dumps(solution.certificate.to_json()))
    assert document["version"] == 4
    (part,) = document["parts"]
    assert max(part["heads"]) > 1
    assert max(map(len, part["cuts"])) <= WIDEST
    assert verify(graph, solution.structure, Certificate.from_json(document)).optimal

    def refuse(complaint):
        with pytest.raises(InvalidInputError, match=complaint):
            verify(graph, solution.structure, Certificate.from_json(document))

    heads = part["heads"]
    part["heads"] = [1] * len(heads)  # right-hand sides that are too small
    refuse("leaves branch|refused")
    for wrong in (
        heads[:-1],
        [0, *heads[1:]],
        [-1, *heads[1:]],
        [*heads[:-1], len(part["cuts"][-1])],
    ):
        part["heads"] = wrong
        refuse("a cut without two sides")
    part["heads"] = ["x"]
    refuse("damaged")
    part["heads"] = [1 << 80] * len(heads)
    refuse("damaged|without two sides")
    del part["heads"]
    refuse("leaves branch|refused")


def root_level(weights, *, two_sided):
    """Return the bound after some rounds of cuts, without branching."""
    ascent = Ascent(PartitionProblem.undecided(weights), Multipliers.none(), 0.1, kernels)
    ascent.run(1)
    state, n = random_state(0), len(weights)
    for _ in range(40):
        ascent.update_triangles(0.01, lambda: None)
        options = {"violation": 0.02, "at_most": 6 * n, "state": state}
        cuts, heads = violated_cuts(ascent.point, starts=10, functions=kernels, **options)
        if two_sided:
            more, theirs = violated_partitions(ascent.point, starts=10 * n, **options)
            cuts, heads = np.concatenate([cuts, more]), np.concatenate([heads, theirs])
        ascent.update_cuts(cuts, heads, 4)
        ascent.run(40)
    return exact_bound(ascent.problem, ascent.multipliers, kernels).level


def test_cuts_of_two_sides_sharpen_the_root():
    upper = np.triu(np.random.default_rng(3).integers(-9, 10, (36, 36)), 1)
    weights = upper + upper.T
    assert root_level(weights, two_sided=True) < 0.98 * root_level(weights, two_sided=False)
