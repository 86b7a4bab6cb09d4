"""Means, ranks and intervals over seeds: by hand, against scipy, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from coalitions.errors import InvalidInputError
from learners.experiments.paired_statistics import (
    best_of,
    best_sentence,
    difference_text,
    not_settled,
    paired_difference,
    ranks,
    standings,
)

accuracies = st.floats(0, 1).map(lambda value: round(value, 4))


@st.composite
def tables(draw):
    n_seeds = draw(st.integers(1, 6))
    names = draw(st.lists(st.sampled_from("abcde"), min_size=1, max_size=5, unique=True))
    row = st.lists(accuracies, min_size=n_seeds, max_size=n_seeds)
    return {name: draw(row) for name in names}


def test_three_seeds_by_hand():
    # Differences 0.01, 0.02, 0.06: mean 0.03, sample variance (4 + 1 + 9) 1e-4 / 2 = 7e-4.
    # The 97.5 % point of Student's t with 2 degrees of freedom is 4.302653 in any table.
    found = paired_difference([0.91, 0.92, 0.96], [0.90, 0.90, 0.90])
    reach = 4.302653 * (7e-4 / 3) ** 0.5
    assert found.mean == pytest.approx(0.03)
    assert found.low == pytest.approx(0.03 - reach, rel=1e-5)
    assert found.high == pytest.approx(0.03 + reach, rel=1e-5)
    assert found.low < 0 < found.high  # three wins of three, and still nothing is proven


def test_ranks_by_hand():
    found = ranks({"a": [0.9, 0.5, 0.7], "b": [0.8, 0.5, 0.9], "c": [0.9, 0.5, 0.1]})
    assert found == {"a": [1.5, 2.0, 2.0], "b": [3.0, 2.0, 1.0], "c": [1.5, 2.0, 3.0]}


def test_standings_by_hand():
    found = standings({"a": [0.5, 0.7], "b": [0.6, 0.6]}, "b")
    assert found["a"].mean == pytest.approx(0.6)
    assert found["a"].sd == pytest.approx(0.2 / 2**0.5)
    assert found["a"].rank == found["b"].rank == 1.5
    assert found["b"].sd == pytest.approx(0)
    # Differences −0.1 and 0.1; t with 1 degree of freedom is 12.7062; s/√2 = 0.1.
    assert found["a"].difference.high == pytest.approx(1.27062, rel=1e-5)
    assert best_of({"a": [0.5, 0.7], "b": [0.6, 0.6], "c": [0.1, 0.2]}) == ["a", "b"]


def test_one_seed_has_no_interval_and_no_deviation():
    found = standings({"a": [0.5], "b": [0.25]}, "a")["b"]
    assert found.sd is None
    assert (found.difference.mean, found.difference.low, found.difference.high) == (
        -0.25,
        None,
        None,
    )


def test_two_seeds_that_differ_by_the_same_amount_settle_nothing():
    scores = {"a": [0.9, 0.8], "b": [0.7, 0.6], "c": [0.3, 0.1]}
    found = standings(scores, "a")["b"].difference
    assert (found.low, found.high) == (None, None)
    assert difference_text(found, 2) == "-0.2000 (too few seeds)"
    rivals = not_settled(scores)
    assert rivals[0] == "b"
    assert "two seeds that differ by the same amount" in best_sentence(scores, ["a"], rivals)
    three = {name: [*values, values[0]] for name, values in scores.items()}
    assert not_settled(three) == []


def test_unequal_numbers_of_seeds_are_no_pairs():
    with pytest.raises(InvalidInputError, match="2 and 1"):
        paired_difference([0.1, 0.2], [0.1])
    with pytest.raises(InvalidInputError, match="0 and 0"):
        paired_difference([], [])


@given(tables())
def test_scipy_agrees(scores):
    table = np.array(list(scores.values()))
    by_scipy = stats.rankdata(-table, axis=0)
    assert np.allclose(list(ranks(scores).values()), by_scipy)
    baseline = next(iter(scores))
    for name, standing in standings(scores, baseline).items():
        gaps = np.array(scores[name]) - np.array(scores[baseline])
        if len(gaps) > 1 and gaps.std() > 1e-6:
            low, high = stats.ttest_1samp(gaps, 0).confidence_interval(0.95)
            assert standing.difference.low == pytest.approx(low)
            assert standing.difference.high == pytest.approx(high)


@given(tables(), st.randoms())
def test_the_order_of_seeds_does_not_matter(scores, random):
    order = list(range(len(next(iter(scores.values())))))
    random.shuffle(order)
    shuffled = {name: [values[k] for k in order] for name, values in scores.items()}
    baseline = next(iter(scores))
    assert standings(shuffled, baseline) == standings(scores, baseline)
    assert best_of(shuffled) == best_of(scores)


@given(tables())
def test_the_baseline_differs_from_itself_by_nothing(scores):
    for baseline in scores:
        own = standings(scores, baseline)[baseline].difference
        edges = {own.low, own.high} - {None}
        assert own.mean == 0
        assert edges <= {0.0}


@given(tables())
def test_differences_are_differences_of_means_and_ranks_share_out_all_places(scores):
    baseline = next(iter(scores))
    found = standings(scores, baseline)
    n = len(scores)
    assert sum(each.rank for each in found.values()) == pytest.approx(n * (n + 1) / 2)
    for standing in found.values():
        gap = standing.mean - found[baseline].mean
        assert standing.difference.mean == pytest.approx(gap, abs=1e-12)


@given(st.lists(accuracies, min_size=2, max_size=6), st.floats(-1, 1))
def test_a_gain_that_is_the_same_in_every_seed_has_no_width(scores, gain):
    found = paired_difference([score + gain for score in scores], scores)
    assert found.high - found.low < 1e-12
