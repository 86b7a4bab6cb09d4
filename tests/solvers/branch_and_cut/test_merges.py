"""Reductions: pairs are only put together if some best structure has them together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers.branch_and_cut.partition_problem import PartitionProblem, merges, trimmed
from solvers.reductions import components
from tests.solvers.branch_and_cut.test_branch_and_cut import best_value, symmetric


@st.composite
def small_weights(draw):
    """Whole weights with many ties; often just the signs of cluster editing."""
    n = draw(st.integers(3, 8))
    values = draw(st.sampled_from([[-1, 1], [-1, 0, 1], [-3, -2, -1, 1, 2, 3], range(-9, 10)]))
    n_pairs = n * (n - 1) // 2
    pairs = draw(st.lists(st.sampled_from(values), min_size=n_pairs, max_size=n_pairs))
    return symmetric(n, np.array(pairs)).astype(np.int64)


@given(small_weights())
def test_whatever_a_rule_puts_together_is_together_in_some_best_structure(weights):
    best = best_value(weights.astype(float))
    problem = PartitionProblem.undecided(weights)
    found = merges(weights)
    for count in range(1, len(found) + 1):
        first, second = np.array(found[:count]).T
        joined = problem.merged(components(len(weights), first, second))
        rest = best_value(joined.weights.astype(float)) if joined.n_groups > 1 else 0.0
        assert joined.inside + rest == best, found[:count]


@pytest.mark.parametrize("seed", range(60))
def test_mergers_and_trimming_keep_the_best_value(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    spread = rng.choice([1, 3, 20])
    weights = symmetric(n, rng.integers(-spread, spread + 1, n * (n - 1) // 2)).astype(np.int64)
    lighter = trimmed(weights)
    assert best_value(lighter.astype(float)) == best_value(weights.astype(float))
    found = merges(lighter)
    if not found:
        return
    pairs = np.array(found)
    problem = PartitionProblem.undecided(lighter).merged(components(n, pairs[:, 0], pairs[:, 1]))
    rest = best_value(problem.weights.astype(float)) if problem.n_groups > 1 else 0.0
    assert problem.inside + rest == best_value(weights.astype(float))


def test_the_rules_fire_at_all():
    twins = np.array([[0, 1, 5, -4], [1, 0, 5, -4], [5, 5, 0, 0], [-4, -4, 0, 0]])
    assert (0, 1) in merges(twins)
    pendant = np.array([[0, 3, 0], [3, 0, -9], [0, -9, 0]])
    assert merges(pendant) == [(0, 1)]
    undecided = np.array([[0, 3, -4], [3, 0, 5], [-4, 5, 0]])
    assert (0, 1) not in merges(undecided)


def test_trimming_raises_only_what_no_coalition_can_make_up_for():
    weights = np.array([[0, 2, -50], [2, 0, 1], [-50, 1, 0]])
    assert trimmed(weights).tolist() == [[0, 2, -2], [2, 0, 1], [-2, 1, 0]]
