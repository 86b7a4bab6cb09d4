"""Tests beside the paired interval, against SciPy's own and figures worked out by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from coalitions.errors import InvalidInputError
from learners.experiments.paired_statistics import (
    binomial_interval,
    bootstrap_interval,
    holm,
    paired_difference,
    paired_p_value,
    spread_p_value,
    spread_ratio,
    welch_p_value,
)


def test_the_paired_test_is_scipys_and_agrees_with_the_interval(rng):
    for _ in range(20):
        ours, theirs = rng.normal(0.5, 1, 6).tolist(), rng.normal(0, 1, 6).tolist()
        p = paired_p_value(ours, theirs)
        assert p == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
        gap = paired_difference(ours, theirs)
        assert (p <= 0.05) == (gap.low >= 0 or gap.high <= 0)
    assert paired_p_value([1.0], [0.0]) is None
    assert paired_p_value([1.0, 2.0], [0.0, 1.0]) is None  # two that agree are too few
    assert paired_p_value([1.0, 2.0, 3.0], [0.0, 1.0, 2.0]) == 0.0
    assert paired_p_value([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == 1.0


def test_holm_by_hand():
    # 4 × 0.005, then 3 × 0.01, then 2 × 0.03, then 0.04 raised to the one before.
    assert holm([0.04, 0.01, 0.03, 0.005]) == pytest.approx([0.06, 0.03, 0.06, 0.02])
    assert holm([0.9, 0.4]) == pytest.approx([0.9, 0.8])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(("successes", "trials"), [(0, 5), (3, 5), (5, 5), (17, 40)])
@pytest.mark.parametrize("confidence", [0.95, 0.975])
def test_shares_have_the_exact_interval(successes, trials, confidence):
    exact = stats.binomtest(successes, trials).proportion_ci(confidence, method="exact")
    assert binomial_interval(successes, trials, confidence) == pytest.approx(tuple(exact))


def test_five_of_five_is_not_surely_more_than_half():
    assert binomial_interval(5, 5)[0] == pytest.approx(0.025 ** (1 / 5))
    assert binomial_interval(6, 6)[0] > 0.5
    with pytest.raises(InvalidInputError, match="6 of 5"):
        binomial_interval(6, 5)


def test_welch_is_scipys():
    p = welch_p_value(83.6, 0.32, 5, 83.2, 3.0, 5)
    assert p == pytest.approx(
        stats.ttest_ind_from_stats(83.6, 0.32, 5, 83.2, 3.0, 5, equal_var=False).pvalue
    )
    assert welch_p_value(1.0, 0.0, 5, 2.0, 0.0, 5) is None
    assert welch_p_value(1.0, 1.0, 1, 2.0, 1.0, 5) is None


def test_a_bootstrap_is_near_the_resamples_of_all_kinds():
    figures = np.array([0.0, 1.0, 5.0])
    found = bootstrap_interval(lambda drawn: figures[drawn].mean(axis=1), 3, 0.8)
    everything = [np.mean(each) for each in itertools.product(figures, repeat=3)]
    tails = np.quantile(everything, [0.1, 0.9], method="nearest")
    assert found == pytest.approx(tuple(tails))
    assert found == bootstrap_interval(lambda drawn: figures[drawn].mean(axis=1), 3, 0.8)
    assert bootstrap_interval(lambda drawn: figures[drawn].mean(axis=1), 1) is None


def test_spreads_are_compared_by_fishers_test(rng):
    ours, theirs = rng.normal(0, 1, (2, 4)), rng.normal(0, 2, (2, 4))
    ratio = theirs.var(axis=1, ddof=1).mean() / ours.var(axis=1, ddof=1).mean()
    found = spread_ratio(ours.tolist(), theirs.tolist())
    assert found.mean == pytest.approx(ratio**0.5 - 1)
    low, high = stats.f(6, 6).ppf([0.025, 0.975])
    assert (found.low, found.high) == pytest.approx(
        ((ratio / high) ** 0.5 - 1, (ratio / low) ** 0.5 - 1)
    )
    below = stats.f(6, 6).cdf(ratio)
    assert spread_p_value(ours.tolist(), theirs.tolist()) == pytest.approx(
        2 * min(below, 1 - below)
    )
    assert spread_ratio([[1.0]], [[2.0]]).low is None
    assert spread_p_value([[1.0, 1.0]], [[1.0, 2.0]]) is None
    with pytest.raises(InvalidInputError, match="as many figures"):
        spread_ratio([[1.0, 2.0]], [[1.0]])
