from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.branch_and_price import column_generation as pricing
from solvers.branch_and_price.branch_and_price import TeamCase, TeamProblem
from solvers.branch_and_price.column_generation import Pricer, Prices
from solvers.branch_and_price.listed import ListedPricer, all_coalitions, sets_of
from solvers.demands import Sizes


def random_case(rng, n):
    upper = np.triu(rng.integers(-20, 21, (n, n)), 1)
    players = rng.integers(1, 3, n)
    high = int(rng.integers(players.max(), players.sum() + 1))
    low = int(rng.integers(1, min(3, high) + 1))
    conflicts = rng.choice([0.0, 0.1, 0.4])
    roles = [sorted(set(rng.integers(0, n, 3).tolist())) for _ in range(rng.integers(0, 3))]
    sizes = Sizes(
        players,
        low,
        high,
        fewest=1,
        most=n,
        loads=rng.integers(0, 5, n),
        max_load=int(rng.integers(4, 12)),
        roles=tuple(map(tuple, roles)),
        apart=tuple(
            pair for pair in itertools.combinations(range(n), 2) if rng.random() < conflicts
        ),
    )
    case = TeamCase.whole(TeamProblem.of(upper + upper.T, sizes))
    for _ in range(rng.integers(0, 4)):
        a, b = (int(node) for node in rng.choice(n, 2, replace=False))
        if case.group[a] != case.group[b]:
            case = case.with_apart(a, b) if rng.random() < 0.5 else case.with_together(a, b)
    return case


def excess(case, triples, prices):
    """List the coalitions of a case, and by how much each exceeds its prices."""
    problem, sizes = case.problem, case.problem.sizes
    n = problem.n
    columns = np.array([[mask >> node & 1 for node in range(n)] for mask in range(1, 1 << n)], bool)
    players = columns @ sizes.players
    allowed = (players >= sizes.min_size) & (players <= sizes.max_size)
    allowed &= columns @ problem.loads <= sizes.max_load
    for role in sizes.roles:
        allowed &= columns[:, list(role)].any(axis=1)
    for a, b in sizes.apart:
        allowed &= ~(columns[:, a] & columns[:, b])
    columns = columns[allowed & case.allows(columns)]
    paid = columns @ prices.nodes + prices.count
    paid += (columns[:, triples].sum(axis=2) >= 2) @ prices.triples
    return columns, (problem.worth(columns) << problem.bits) - paid


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(2, 8), keep=st.integers(1, 3))
def test_prices_pay_for_every_coalition_afterwards(seed, n, keep):
    rng = np.random.default_rng(seed)
    case = random_case(rng, n)
    if case.misfit() is not None:
        return
    triples = np.array(list(itertools.combinations(range(n), 3)), np.int64).reshape(-1, 3)
    triples = triples[rng.permutation(len(triples))[: rng.integers(0, 6)]]
    unit = 1 << case.problem.bits
    asked = Prices(
        rng.integers(-5 * unit, 25 * unit, n),
        int(rng.integers(-10 * unit, 10 * unit)),
        rng.integers(0, 8 * unit, len(triples)),
    )
    columns, over = excess(case, triples, asked)
    worst = over.max(initial=0)
    known = {column.tobytes(): gain for column, gain in zip(columns, over, strict=True)}
    listed = all_coalitions(case.problem)
    assert listed is not None
    searched, looked_up = Pricer(case, triples), ListedPricer(case, triples, listed)
    few_steps = int(rng.integers(0, 40))
    for pricer, root_steps in ((searched, 10**9), (searched, few_steps), (looked_up, 1)):
        priced = pricer.price(
            asked,
            keep=keep,
            root_steps=root_steps,
            check=lambda: None,
            order=rng.permutation(case.n_groups),
        )
        assert excess(case, triples, priced.prices)[1].max(initial=0) <= 0
        assert all(known[column.tobytes()] > 0 for column in priced.columns)
        if priced.complete:
            assert (len(priced.columns) > 0) == (worst > 0)
            assert (priced.prices.nodes > asked.nodes).any() == (worst > 0)


def test_a_list_that_would_be_long_is_not_made():
    weights = np.zeros((20, 20), np.int64)
    few = Sizes(np.ones(20, np.int64), 1, 4, 5, 20)
    listed = all_coalitions(TeamProblem.of(weights, few))
    assert listed is not None
    assert len(listed) == 20 + 190 + 1140 + 4845
    assert len(np.unique(listed.sets.members, axis=0)) == len(listed)
    assert (
        all_coalitions(TeamProblem.of(weights, Sizes(np.ones(20, np.int64), 1, 20, 1, 20))) is None
    )


def test_a_search_in_small_steps_comes_to_the_same_end(monkeypatch):
    rng = np.random.default_rng(5)
    upper = np.triu(rng.integers(-100, 101, (40, 40)), 1)
    sizes = Sizes(np.ones(40, np.int64), 1, 6, 7, 40)
    case = TeamCase.whole(TeamProblem.of(upper + upper.T, sizes))
    none = np.zeros((0, 3), np.int64)
    asked = Prices(np.full(40, 150 << case.problem.bits), 0, np.zeros(0, np.int64))

    def priced():
        looks = 0

        def look():
            nonlocal looks
            looks += 1

        found = Pricer(case, none).price(asked, keep=2, root_steps=10**9, check=look)
        return found, looks

    at_once, looks = priced()
    assert looks == 0
    assert at_once.complete
    assert len(at_once.columns)
    monkeypatch.setattr(pricing, "STEPS_AT_ONCE", 100)
    in_steps, looks = priced()
    assert looks > 10
    assert np.array_equal(at_once.prices.nodes, in_steps.prices.nodes)
    assert np.array_equal(at_once.columns, in_steps.columns)


def test_whoever_looks_at_the_clock_may_end_the_search(monkeypatch):
    monkeypatch.setattr(pricing, "STEPS_AT_ONCE", 100)
    upper = np.triu(np.random.default_rng(5).integers(-100, 101, (40, 40)), 1)
    sizes = Sizes(np.ones(40, np.int64), 1, 20, 2, 40)
    case = TeamCase.whole(TeamProblem.of(upper + upper.T, sizes))
    asked = Prices(np.zeros(40, np.int64), 0, np.zeros(0, np.int64))

    def stop():
        raise TimeoutError

    with pytest.raises(TimeoutError):
        Pricer(case, np.zeros((0, 3), np.int64)).price(asked, keep=2, root_steps=10**9, check=stop)


def test_sums_over_all_sets_are_those_of_their_members():
    rng = np.random.default_rng(3)
    for n, places in ((1, 1), (5, 1), (7, 3), (6, 6)):
        sets = sets_of(n, places)
        members = [
            c for size in range(1, places + 1) for c in itertools.combinations(range(n), size)
        ]
        assert [tuple(np.flatnonzero(row)) for row in sets.members] == members
        amounts = rng.integers(-9, 10, n)
        assert sets.added(amounts).tolist() == [amounts[list(c)].sum() for c in members]
        upper = np.triu(rng.integers(-9, 10, (n, n)), 1)
        inside = [upper[np.ix_(c, c)].sum() for c in members]
        assert sets.worth(upper + upper.T).tolist() == inside
        some = rng.random(len(members))
        least = [min(x for x, c in zip(some, members, strict=True) if i in c) for i in range(n)]
        assert sets.least(some).tolist() == least
