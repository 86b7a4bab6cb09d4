"""Overlapping coalitions of few players against all packings, exactly and at all scales."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from coalitions import SynergyGraph
from solvers import solve, solve_overlapping

KINDS = (
    "whole",
    "odd",
    "decimals",
    "one never",
    "several nevers",
    "tiny and never",
    "tiny and a cost",
    "mixed",
    "huge",
    "foes",
)


def question(kind, rng, *, single):
    """Return a graph of 3 to 6 players and what is asked of it; `single` asks for one membership.

    With several meetings nearly every set of coalitions is a packing, so there are fewer players.
    """
    n = int(rng.integers(3, 7))
    asked = {"memberships": 1, "membership_cost": float(rng.choice([0.0, 0.0, 0.25, 0.1]))}
    if not single:
        asked |= {
            "memberships": int(rng.integers(2, 4)),
            "meetings": [1, 1, 2, None][rng.choice(4)],
        }
        asked |= {"max_size": [None, None, 2, 3][rng.choice(4)]}
        n = min(n, 6 if asked["meetings"] == 1 else 4)
    weight = rng.normal(0.2, 1, (n, n))
    a, b = rng.choice(n, 2, replace=False)
    few = rng.random((n, n)) < 0.3
    if kind == "whole":
        weight = rng.integers(-9, 10, (n, n)).astype(float)
    elif kind == "decimals":
        weight = rng.integers(-90, 100, (n, n)) / 10
    elif kind == "one never":
        weight[a, b] = weight[b, a] = -(10.0 ** rng.integers(6, 19))
    elif kind == "several nevers":
        weight = np.where(few, -(10.0 ** rng.integers(6, 17, (n, n))), weight)
    elif kind == "tiny and never":
        weight = np.where(few, -1e16, weight * 1e-11)
        asked["membership_cost"] = float(rng.choice([0.0, 1e-12, 0.5]))
    elif kind == "tiny and a cost":
        weight *= 1e-11
        asked["membership_cost"] = float(rng.choice([1e-12, 1e-6, 0.5, 3.0, 1e16]))
    elif kind == "mixed":
        weight *= 10.0 ** rng.uniform(-12, 12, (n, n))
    elif kind == "huge":
        weight *= 1e300
        asked["membership_cost"] = float(rng.choice([0.0, 1e299, 1.0]))
    elif kind == "foes":
        weight = weight - 2.0
    upper = np.triu(weight, 1)
    return SynergyGraph(upper + upper.T), asked


def best_packing(graph, memberships, membership_cost, max_size=None, meetings=1):
    """Return the most that coalitions can be worth, by trying all sets of them."""
    n = graph.n_players
    exact = [[Fraction(weight) for weight in row] for row in graph.matrix.tolist()]
    cost = Fraction(membership_cost)
    columns = []
    for size in range(2, (max_size or n) + 1):
        for members in itertools.combinations(range(n), size):
            pairs = tuple(itertools.combinations(members, 2))
            worth = sum((exact[a][b] for a, b in pairs), -cost * size)
            if worth > 0:
                columns.append((worth, members, pairs))
    columns.sort(key=lambda column: -column[0] / len(column[1]))
    room = [memberships] * n
    most = memberships if meetings is None else meetings
    apart = {pair: most for pair in itertools.combinations(range(n), 2)}
    best = Fraction(0)

    def choose(first, worth):
        nonlocal best
        best = max(best, worth)
        for number in range(first, len(columns)):
            more, members, pairs = columns[number]
            # Those that follow bring no more for each membership.
            if worth + more / len(members) * sum(room) <= best:
                return
            if all(room[player] for player in members) and all(apart[pair] for pair in pairs):
                for player in members:
                    room[player] -= 1
                for pair in pairs:
                    apart[pair] -= 1
                choose(number + 1, worth + more)
                for player in members:
                    room[player] += 1
                for pair in pairs:
                    apart[pair] += 1

    choose(0, Fraction(0))
    return best


def check(graph, asked):
    """Assert that what comes back keeps the rules, is the best there is, and is proven."""
    solution = solve_overlapping(graph, **asked)
    memberships, most = asked["memberships"], asked.get("meetings", 1) or asked["memberships"]
    inside = [player for coalition in solution.coalitions for player in coalition]
    pairs = [
        pair for coalition in solution.coalitions for pair in itertools.combinations(coalition, 2)
    ]
    assert all(inside.count(player) <= memberships for player in inside)
    assert all(pairs.count(pair) <= most for pair in pairs)
    assert len(set(solution.coalitions)) == len(solution.coalitions)
    assert all(len(each) <= (asked.get("max_size") or 6) for each in solution.coalitions)
    value = sum(Fraction(float(graph.matrix[pair])) for pair in pairs)
    value -= Fraction(asked["membership_cost"]) * len(inside)
    assert solution.value == float(value)
    optimum = best_packing(graph, **asked)
    gains = sum(Fraction(w) for w in graph.edges.weight.tolist() if w > 0) * most
    assert solution.bound >= float(optimum)
    assert optimum - value <= Fraction(1e-9) * gains
    assert solution.optimal


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("single", [True, False])
def test_a_sample_of_all_scales_is_solved_and_proven(kind, single):
    rng = np.random.default_rng([KINDS.index(kind), single])
    for _ in range(4):
        check(*question(kind, rng, single=single))


@pytest.mark.slow
@pytest.mark.parametrize(("single", "cases"), [(True, 1197), (False, 565)])
def test_all_scales_are_solved_and_proven(single, cases):
    rng = np.random.default_rng(20261119 + single)
    wrong = []
    for case, kind in zip(range(cases), itertools.cycle(KINDS), strict=False):
        graph, asked = question(kind, rng, single=single)
        try:
            check(graph, asked)
        except AssertionError:
            wrong.append((kind, case))
    assert wrong == []


@pytest.mark.parametrize("power", range(6, 21, 2))
def test_one_membership_is_the_problem_of_solve_beside_a_never(power):
    for seed in range(4):
        upper = np.triu(np.random.default_rng(seed).normal(0, 1, (6, 6)), 1)
        upper[1, 4] = -(10.0**power)
        graph = SynergyGraph(upper + upper.T)
        solution = solve_overlapping(graph, memberships=1)
        assert solution.optimal
        assert solution.value == solve(graph).value
