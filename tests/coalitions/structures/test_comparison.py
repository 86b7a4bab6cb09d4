from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalitions import (
    CoalitionStructure,
    InvalidInputError,
    adjusted_rand_index,
    all_partitions,
    join,
    meet,
    normalized_mutual_information,
    refines,
)
from tests.coalitions.table_games import structures


@st.composite
def pairs_of_structures(draw, max_players=9):
    n = draw(st.integers(1, max_players))
    return draw(structures(n)), draw(structures(n))


@given(pairs_of_structures())
def test_both_indices_agree_with_scikit_learn(pair):
    metrics = pytest.importorskip("sklearn.metrics")
    one, other = pair
    assert adjusted_rand_index(one, other) == pytest.approx(
        metrics.adjusted_rand_score(one.labels, other.labels), abs=1e-12
    )
    assert normalized_mutual_information(one, other) == pytest.approx(
        metrics.normalized_mutual_info_score(one.labels, other.labels), abs=1e-12
    )


def test_adjusted_rand_index_by_hand():
    # 2 of 6 pairs are together on either side, 1 on both; 2 · 2 / 6 by chance.
    one = CoalitionStructure([[0, 1], [2, 3]])
    other = CoalitionStructure([[0, 1], [2], [3]])
    assert adjusted_rand_index(one, other) == pytest.approx((1 - 1 / 3) / (1.5 - 1 / 3))


@given(pairs_of_structures())
def test_indices_are_symmetric_and_one_only_for_the_same_structure(pair):
    one, other = pair
    for index in (adjusted_rand_index, normalized_mutual_information):
        assert index(one, other) == pytest.approx(index(other, one), abs=1e-12)
        assert index(one, one) == 1.0
        if one != other:
            assert index(one, other) < 1 - 1e-6


@given(pairs_of_structures())
def test_meet_and_join_are_the_nearest_in_the_lattice(pair):
    one, other = pair
    low, high = meet(one, other), join(one, other)
    for structure in pair:
        assert refines(low, structure)
        assert refines(structure, high)
    if one.n_players <= 5:
        for between in all_partitions(one.n_players):
            if refines(between, one) and refines(between, other):
                assert refines(between, low)
            if refines(one, between) and refines(other, between):
                assert refines(high, between)


@given(pairs_of_structures())
def test_refinement_is_set_inclusion(pair):
    fine, coarse = pair
    inside = all(any(set(f) <= set(c) for c in coarse) for f in fine)
    assert refines(fine, coarse) == inside


def test_structures_of_different_players_are_not_compared():
    with pytest.raises(InvalidInputError, match="2 and 3 players"):
        meet(CoalitionStructure.grand(2), CoalitionStructure.grand(3))
    with pytest.raises(InvalidInputError):
        adjusted_rand_index(CoalitionStructure.grand(2), CoalitionStructure.grand(3))
