from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from coalitions import (
    InfeasibleError,
    InvalidInputError,
    SynergyGraph,
    TableGame,
    core_membership,
    core_point,
    least_core,
    shapley,
)
from tests.coalitions.table_games import mask, subsets, tables

GLOVE = TableGame([0, 0, 0, 1, 0, 1, 0, 1])
MAJORITY = TableGame([0, 0, 0, 1, 0, 1, 1, 1])


@given(st.data())
def test_membership_is_the_definition(data):
    table = data.draw(tables(max_players=5))
    n = len(table).bit_length() - 1
    shares = data.draw(hnp.arrays(float, n, elements=st.integers(-9, 9).map(float)))
    if data.draw(st.booleans()):
        shares[0] += table[-1] - table[0] - shares.sum()
    found = core_membership(TableGame(table), shares)
    excess = {
        part: table[mask(part)] - table[0] - sum(shares[i] for i in part)
        for part in subsets(range(n))
        if 0 < len(part) < n
    }
    slack = 1e-9 * max(1.0, np.abs(table - table[0]).max())
    surplus = table[-1] - table[0] - shares.sum()
    worst = max(excess.values(), default=0.0)
    assume(not slack / 10 < abs(surplus) < 10 * slack)
    assume(not slack / 10 < abs(worst) < 10 * slack)
    assert found.surplus == pytest.approx(surplus, abs=1e-9)
    assert found.member == (abs(surplus) <= slack and worst <= slack)
    assert found.excess == pytest.approx(worst, abs=1e-9)
    if worst > slack:
        assert excess[found.blocking] == pytest.approx(worst, abs=1e-9)
    else:
        assert found.blocking is None


def test_the_glove_market_has_one_core_point():
    """The scarce left glove takes everything."""
    assert core_membership(GLOVE, [1, 0, 0]).member
    found = core_membership(GLOVE, shapley(GLOVE).values)
    assert not found.member
    assert found.blocking in [(0, 1), (0, 2)]
    assert found.excess == pytest.approx(1 / 6)
    assert least_core(GLOVE).epsilon == pytest.approx(0, abs=1e-9)


def test_majority_has_an_empty_core():
    found = least_core(MAJORITY)
    assert found.epsilon == pytest.approx(1 / 3)
    np.testing.assert_allclose(found.payoff, 1 / 3)
    assert not core_membership(MAJORITY, found.payoff).member


@settings(max_examples=40)
@given(tables(max_players=5))
def test_least_core_is_proven_from_both_sides(table):
    game = TableGame(table)
    n = game.n_players
    values = table - table[0]
    slack = 1e-8 * max(1.0, np.abs(values).max())
    found = least_core(game)
    assert found.payoff.sum() == pytest.approx(values[-1], abs=slack)
    if n == 1:
        assert found.epsilon == 0
        return
    # From above: the point leaves no coalition worse off than by ε.
    for part in subsets(range(n)):
        if 0 < len(part) < n:
            gets = sum(found.payoff[i] for i in part)
            assert gets >= values[mask(part)] - found.epsilon - slack
    # From below: the weighted coalitions cover every player once and are worth v(N) + ε · weights.
    cover = np.zeros(n)
    for part, weight in zip(found.coalitions, found.weights, strict=True):
        assert weight > 0
        cover[list(part)] += weight
    np.testing.assert_allclose(cover, 1, atol=1e-7)
    worth = sum(
        weight * (values[mask(part)] - found.epsilon)
        for part, weight in zip(found.coalitions, found.weights, strict=True)
    )
    assert worth == pytest.approx(values[-1], abs=10 * slack)


@settings(max_examples=40)
@given(tables(min_players=2, max_players=5), st.floats(0.5, 3), st.integers(-5, 5))
def test_least_core_follows_scale_and_shift(table, factor, shift):
    game = least_core(TableGame(table))
    moved = least_core(TableGame(factor * table + shift))
    assert moved.epsilon == pytest.approx(factor * game.epsilon, abs=1e-7)


def test_scale_does_not_matter():
    for scale in (1e-9, 1e9):
        found = least_core(TableGame(scale * MAJORITY.table))
        assert found.epsilon == pytest.approx(scale / 3, rel=1e-9)
        assert core_membership(TableGame(scale * GLOVE.table), [scale, 0, 0]).member
        assert not core_membership(TableGame(scale * GLOVE.table), [0, scale, 0]).member


def test_bad_requests_get_a_sentence():
    with pytest.raises(InvalidInputError, match="the payoff must be 3 finite numbers"):
        core_membership(GLOVE, [1, 0])
    with pytest.raises(InvalidInputError, match="the payoff must be 3 finite numbers"):
        core_membership(GLOVE, [1, 0, np.nan])
    with pytest.raises(InvalidInputError, match="25 players are too many"):
        least_core(SynergyGraph(np.zeros((25, 25))).game())


@settings(max_examples=40)
@given(tables(max_players=4))
def test_core_point_is_in_the_core_or_there_is_none(table):
    game = TableGame(table)
    try:
        point = core_point(game)
    except InfeasibleError:
        assert least_core(game).epsilon > 0
    else:
        assert core_membership(game, point, tolerance=1e-7).member


def test_an_empty_core_is_proven():
    with pytest.raises(InfeasibleError, match=r"0\.5 × \{0, 1\}"):
        core_point(MAJORITY)
