"""The verifier's whole numbers: exact against fractions, on any floats and units."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalitions import SynergyGraph
from solvers.proofs._weights import NodePairs, between_nodes, exact_sum, rounded, slack, trimmed

FLOATS = st.one_of(
    st.floats(-1e6, 1e6),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e305, max_value=1e305),
    st.integers(-(10**6), 10**6).map(lambda k: k / 100),
    st.integers(-100, 100).map(float),
    st.integers(-100, 100).map(lambda k: k + 0.5),
)
UNITS = st.one_of(
    st.integers(0, 9).map(lambda d: Fraction(1, 10**d)),
    st.integers(-1100, 1000).map(lambda e: Fraction(2) ** e),
    st.fractions(min_value=Fraction(1, 10**6), max_value=1000),
    st.tuples(st.integers(1, 2**51), st.integers(-60, 20)).map(
        lambda p: p[0] * Fraction(2) ** p[1]
    ),
)


def pairs_of(weights: list[float]) -> NodePairs:
    n = len(weights)
    nothing = np.zeros(n)
    return NodePairs(
        np.arange(n), np.arange(n) + n, np.array(weights), nothing, np.zeros(n, np.bool_)
    )


@given(st.lists(FLOATS, min_size=1, max_size=8), UNITS)
def test_rounding_is_exact(weights, unit):
    expected = [round(Fraction(w) / unit) for w in weights]
    assert rounded(np.array(weights), unit).tolist() == expected


@given(st.lists(FLOATS, min_size=1, max_size=8), UNITS)
def test_slack_covers_what_integers_fall_short_of_and_hardly_more(weights, unit):
    whole = rounded(np.array(weights), unit)
    exact = sum(
        (
            max(Fraction(0), Fraction(w) - unit * int(k))
            for w, k in zip(weights, whole, strict=True)
        ),
        Fraction(0),
    )
    found = slack(pairs_of(weights), whole, unit)
    assert exact <= found
    roundings = sum((Fraction(math.ulp(w)) for w in weights), Fraction(0))
    assert found <= exact * (1 + Fraction(1, 10**12)) + roundings
    if unit.denominator & (unit.denominator - 1) == 0:
        assert found <= exact * (1 + Fraction(1, 10**12))


@given(st.lists(FLOATS, max_size=10))
def test_sums_are_exact(numbers):
    assert exact_sum(numbers) == sum(map(Fraction, numbers), Fraction(0))


@pytest.mark.parametrize("seed", range(20))
def test_weights_between_nodes_are_correctly_rounded_sums(seed):
    rng = np.random.default_rng(seed)
    n = 9
    matrix = np.triu(rng.normal(size=(n, n)) * 10.0 ** rng.integers(-12, 13, (n, n)), 1)
    graph = SynergyGraph(matrix + matrix.T)
    node_of = rng.integers(0, 4, n)
    apart = np.array([[0, 1]])
    inside, pairs = between_nodes(graph, node_of, 4, apart)
    expected: dict[tuple[int, int], Fraction] = {(0, 1): Fraction(0)}
    total = Fraction(0)
    for i, j, w in zip(*(column.tolist() for column in graph.edges), strict=True):
        one, two = sorted((int(node_of[i]), int(node_of[j])))
        if one == two:
            total += Fraction(w)
        else:
            expected[one, two] = expected.get((one, two), Fraction(0)) + Fraction(w)
    assert inside == total
    assert list(zip(pairs.one.tolist(), pairs.two.tolist(), strict=True)) == sorted(expected)
    for k, exact in enumerate(expected[pair] for pair in sorted(expected)):
        assert pairs.weight[k] == float(exact)
        assert exact <= Fraction(pairs.weight[k]) + Fraction(pairs.above[k])
        assert pairs.above[k] <= math.ulp(pairs.weight[k])
    assert pairs.forbidden.tolist() == [pair == (0, 1) for pair in sorted(expected)]


def test_hopeless_and_forbidden_pairs_get_the_least_weight_that_keeps_them_apart():
    one, two = np.array([0, 0, 1]), np.array([1, 2, 2])
    pairs = NodePairs(
        one, two, np.array([3.0, -1e300, 2.0]), np.zeros(3), np.array([False, False, False])
    )
    whole = rounded(pairs.weight, Fraction(1))
    assert whole.dtype == object
    assert trimmed(pairs, whole, 3).tolist() == [3, -3, 2]
    forbidden = NodePairs(one, two, pairs.weight, pairs.above, np.array([True, False, False]))
    assert trimmed(forbidden, whole, 3).tolist() == [-1, -1, 2]
    assert slack(pairs, trimmed(pairs, whole, 3), Fraction(1)) == 0


def test_many_forbidden_pairs_have_room():
    # 60 nodes that gain 2^55 each, and forbidden pairs between all of them: above int64 in sum.
    n, gain = 60, 1 << 55
    one, two = np.triu_indices(n, 1)
    forbidden = (one % 2 == 1) | (two != one + 1)
    weight = np.where(forbidden, 0.0, float(gain))
    pairs = NodePairs(one, two, weight, np.zeros(len(one)), forbidden)
    found = trimmed(pairs, weight.astype(np.int64), n)
    assert found.dtype == object
    assert sum(map(abs, found.tolist())) == 30 * gain + int(forbidden.sum()) * (gain + 1)
