"""Overlapping coalitions: against all packings of few players, and what counts how often."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalitions import InvalidInputError, SynergyGraph
from solvers import solve, solve_overlapping
from solvers.overlap import profitable as columns
from solvers.overlap.profitable import listed


def best_by_hand(graph, memberships, cost, max_size, meetings):
    """Return the value of the best packing: every coalition in or out, depth first."""
    n = graph.n_players
    matrix = graph.matrix
    coalitions = []
    for size in range(2, (max_size or n) + 1):
        for members in itertools.combinations(range(n), size):
            value = sum(matrix[a, b] for a, b in itertools.combinations(members, 2)) - cost * size
            if value > 0:  # leaving out the others never does harm
                coalitions.append((value, members))
    coalitions.sort(reverse=True)
    rest = np.append(np.cumsum([value for value, _ in coalitions][::-1])[::-1], 0.0)
    joined = np.zeros(n, int)
    met = np.zeros((n, n), int)
    most = memberships if meetings is None else meetings
    # A packing has at most n·m memberships, two or more in each coalition.
    limit = n * memberships // 2
    best = 0.0

    def grow_from(first, value, left):
        nonlocal best
        best = max(best, value)
        for k in range(first, len(coalitions)):
            worth, members = coalitions[k]
            if not left or value + min(rest[k], left * worth) <= best:
                return
            inside = np.ix_(members, members)
            if (joined[list(members)] < memberships).all() and (met[inside] < most).all():
                joined[list(members)] += 1
                met[inside] += 1 - np.eye(len(members), dtype=int)
                grow_from(k + 1, value + worth, left - 1)
                joined[list(members)] -= 1
                met[inside] -= 1 - np.eye(len(members), dtype=int)

    grow_from(0, 0.0, limit)
    return best


def check(graph, solution, memberships, cost, max_size, meetings):
    """The solution keeps the rules, is worth what it says, and nothing is worth more."""
    counted = [player for coalition in solution.coalitions for player in coalition]
    assert all(counted.count(player) <= memberships for player in range(graph.n_players))
    pairs = [
        pair for coalition in solution.coalitions for pair in itertools.combinations(coalition, 2)
    ]
    most = memberships if meetings is None else meetings
    assert all(pairs.count(pair) <= most for pair in set(pairs))
    assert len(set(solution.coalitions)) == len(solution.coalitions)
    assert all(2 <= len(each) <= (max_size or graph.n_players) for each in solution.coalitions)
    worth = sum(graph.matrix[pair] for pair in pairs) - cost * len(counted)
    assert solution.value == pytest.approx(worth, abs=1e-9)
    assert solution.optimal
    best = best_by_hand(graph, memberships, cost, max_size, meetings)
    assert solution.value == pytest.approx(best, abs=1e-9)


@st.composite
def graphs(draw, most=6):
    n = draw(st.integers(1, most))
    scale = draw(st.sampled_from([2, 10]))
    cells = draw(st.lists(st.integers(-scale, scale), min_size=n * n, max_size=n * n))
    matrix = np.triu(np.array(cells, float).reshape(n, n), 1)
    return SynergyGraph(matrix + matrix.T)


@settings(max_examples=50, deadline=None)
@given(
    graphs(),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.5, 1.0, 2.25]),
    st.sampled_from([None, 2, 3]),
)
def test_the_best_of_all_packings(graph, memberships, cost, max_size):
    solution = solve_overlapping(graph, memberships, cost, max_size=max_size)
    check(graph, solution, memberships, cost, max_size, 1)


@settings(max_examples=25, deadline=None)
@given(graphs(5), st.integers(2, 3), st.sampled_from([0.0, 1.0]), st.sampled_from([None, 2]))
def test_the_best_of_all_packings_where_each_meeting_counts(graph, memberships, cost, meetings):
    solution = solve_overlapping(graph, memberships, cost, meetings=meetings)
    check(graph, solution, memberships, cost, None, meetings)


@pytest.mark.parametrize("seed", range(4))
def test_seven_players_with_odd_floats(seed):
    matrix = np.triu(np.random.default_rng(seed).normal(0, 1, (7, 7)), 1)
    graph = SynergyGraph(matrix + matrix.T)
    check(graph, solve_overlapping(graph, 2, 0.1), 2, 0.1, None, 1)


def test_a_synergy_counts_once():
    # Nothing is gained by a second coalition of the same two, so there is none.
    assert solve_overlapping([[0, 5], [5, 0]], memberships=3).value == 5.0
    triangle = SynergyGraph([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    assert solve_overlapping(triangle, memberships=3).value == 3.0


def test_each_meeting_counts_where_that_is_asked_for_but_no_coalition_twice():
    assert solve_overlapping([[0, 5], [5, 0]], memberships=3, meetings=None).value == 5.0
    triangle = SynergyGraph([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    both = solve_overlapping(triangle, memberships=2, meetings=None)
    # All three, and one pair besides; a second pair would make a third membership.
    assert both.value == 4.0
    assert len(both.coalitions) == 2


def test_somebody_between_two_who_cannot_agree_is_with_both():
    friends = SynergyGraph([[0, 3, 2], [3, 0, -4], [2, -4, 0]])
    solution = solve_overlapping(friends)
    assert solution.coalitions == ((0, 1), (0, 2))
    assert solution.of(0) == solution.coalitions
    assert solution.of(2) == ((0, 2),)
    assert solve_overlapping(friends, memberships=1).value == solve(friends).value == 3.0


def test_a_cost_keeps_out_what_does_not_pay():
    friends = SynergyGraph([[0, 3, 2], [3, 0, -4], [2, -4, 0]])
    assert solve_overlapping(friends, membership_cost=1.0).coalitions == ((0, 1),)
    assert solve_overlapping(friends, membership_cost=1.5).coalitions == ()
    # No pair pays for its two memberships, but three do for three.
    three = SynergyGraph([[0, 1.5, 1.5], [1.5, 0, 1.5], [1.5, 1.5, 0]])
    assert solve_overlapping(three, membership_cost=1.0).coalitions == ((0, 1, 2),)


@pytest.mark.parametrize("seed", range(3))
def test_one_membership_is_the_problem_of_solve(seed):
    matrix = np.triu(np.random.default_rng(seed).integers(-9, 10, (14, 14)), 1).astype(float)
    graph = SynergyGraph(matrix + matrix.T)
    solution = solve_overlapping(graph, memberships=1)
    assert solution.optimal
    assert solution.value == solve(graph).value


def test_more_memberships_and_more_meetings_are_never_worth_less(rng):
    matrix = np.triu(rng.integers(-9, 10, (10, 10)), 1).astype(float)
    graph = SynergyGraph(matrix + matrix.T)
    values = [solve_overlapping(graph, m).value for m in (1, 2, 3)]
    assert values == sorted(values)
    once, each = (solve_overlapping(graph, 2, max_size=3, meetings=k).value for k in (1, None))
    assert once < each
    assert values[-1] <= graph.positive_weight


def test_a_search_over_many_players_finds_what_the_table_has(rng, monkeypatch):
    for _ in range(20):
        n = int(rng.integers(2, 11))
        pairs = np.triu(rng.integers(-9, 10, (n, n)), 1)
        pairs += pairs.T
        asked = {
            "least": int(rng.integers(1, 5)),
            "most_members": int(rng.integers(2, n + 1)),
        }
        prices = rng.integers(0, 6, n)
        tabled = listed(pairs, prices, most=10**6, **asked)
        with monkeypatch.context() as few:
            few.setattr(columns, "FEW", 0)
            grown = listed(pairs, prices, most=10**6, **asked)
            some = listed(pairs, prices, most=8, only_best=True, **asked)
            few.setattr(columns, "STEPS_AT_ONCE", 1)
            sliced = listed(pairs, prices, most=10**6, **asked)
            none = listed(pairs, prices, most=10**6, expired=lambda: True, **asked)
        assert sliced.complete
        assert sliced.masks.tolist() == grown.masks.tolist()
        assert tabled.complete
        assert grown.complete
        everything = dict(zip(tabled.masks.tolist(), tabled.worths.tolist(), strict=True))
        assert dict(zip(grown.masks.tolist(), grown.worths.tolist(), strict=True)) == everything
        assert none.finished <= (not everything)
        if some.finished:  # else all of those that were found were worth the same
            assert some.worths.max(initial=0) == tabled.worths.max(initial=0)
        assert some.complete == (some.finished and len(some.masks) == len(everything))


def test_twenty_players_are_searched_and_proven(rng):
    matrix = np.triu(rng.integers(-9, 8, (20, 20)), 1).astype(float)
    solution = solve_overlapping(matrix + matrix.T, max_size=4)
    assert solution.optimal


def test_little_time_leaves_a_bound_that_holds(rng, monkeypatch):
    monkeypatch.setattr(time, "monotonic", time.process_time)  # the machine may be busy
    matrix = np.triu(rng.normal(0.1, 1, (40, 40)), 1)
    graph = SynergyGraph(matrix + matrix.T)
    solution = solve_overlapping(graph, time_limit=1.0)
    assert solution.seconds < 4.0
    assert solution.value <= solution.bound <= graph.positive_weight
    assert not solution.optimal


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"memberships": 0}, "memberships is 0"),
        ({"memberships": 1.5}, "memberships is 1.5"),
        ({"meetings": 0}, "meetings is 0"),
        ({"max_size": 0}, "max_size is 0"),
        ({"membership_cost": -1}, "membership_cost is -1"),
        ({"membership_cost": float("nan")}, "membership_cost is nan"),
        ({"time_limit": 0}, "time_limit is 0"),
    ],
)
def test_wrong_arguments_are_refused(wrong, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        solve_overlapping([[0, 1], [1, 0]], **wrong)


def test_coalitions_of_one_are_none():
    solution = solve_overlapping([[0, 1, 2], [1, 0, 3], [2, 3, 0]], max_size=1)
    assert (solution.coalitions, solution.value, solution.bound) == ((), 0.0, 0.0)
    assert solution.optimal


def test_too_many_players_are_refused():
    with pytest.raises(InvalidInputError, match="at most 62 players; there are 63"):
        solve_overlapping(np.zeros((63, 63)))
