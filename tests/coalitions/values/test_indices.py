"""Interaction indices of any order: definitions, axioms, and shapiq's word for them."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from math import comb, factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalitions import (
    INDICES,
    InvalidInputError,
    TableGame,
    UnknownNameError,
    banzhaf,
    interactions,
    shapley,
)
from tests.coalitions.table_games import Asked, index_of_all, mask, relabelled, subsets, tables

NAMES = sorted(INDICES)
EFFICIENT = [name for name in NAMES if INDICES[name].efficient]


def derivative(table, coalition, others):
    s = len(coalition)
    return sum(
        (-1) ** (s - len(part)) * table[mask((*others, *part))] for part in subsets(coalition)
    )


def weighted(table, coalition, weight):
    """The sum over all sets of t others of their joint contribution times weight(t)."""
    n = len(table).bit_length() - 1
    rest = [k for k in range(n) if k not in coalition]
    return sum(weight(len(t)) * derivative(table, coalition, t) for t in subsets(rest))


def sii(table, coalition):
    n, s = len(table).bit_length() - 1, len(coalition)
    return weighted(
        table,
        coalition,
        lambda t: factorial(n - t - s) * factorial(t) / factorial(n - s + 1),
    )


def bernoulli_numbers(count):
    numbers = [Fraction(1)]
    for m in range(1, count):
        numbers.append(-sum(comb(m + 1, k) * numbers[k] for k in range(m)) / (m + 1))
    return [float(number) for number in numbers]


def larger(coalition, n, order):
    for more in range(order - len(coalition) + 1):
        for extra in combinations([k for k in range(n) if k not in coalition], more):
            yield more, tuple(sorted((*coalition, *extra)))


def nearest(table, order, *, shapley_weights):
    """The coefficients of the polynomial that fits best, by least squares on all coalitions."""
    n = len(table).bit_length() - 1
    terms = [c for c in subsets(range(n)) if len(c) <= order]
    rows = np.array([[mask(term) & ~code == 0 for term in terms] for code in range(1 << n)], float)
    weights = np.ones(1 << n)
    if shapley_weights:
        for code in range(1 << n):
            s = code.bit_count()
            ends = s in (0, n)
            weights[code] = 1e9 if ends else (n - 1) / (comb(n, s) * s * (n - s))
    root = np.sqrt(weights)
    fit = np.linalg.lstsq(rows * root[:, None], table * root, rcond=None)[0]
    return dict(zip(terms, fit, strict=True))


def by_definition(name, table, order):
    """Every index as its paper has it."""
    n = len(table).bit_length() - 1
    asked = [c for c in subsets(range(n)) if 1 <= len(c) <= order]
    if name in ("FSII", "FBII"):
        found = nearest(table, order, shapley_weights=name == "FSII")
        return {c: x for c, x in found.items() if c or name == "FBII"}
    bernoulli = bernoulli_numbers(order + 1)
    definitions = {
        "SII": lambda c: sii(table, c),
        "BII": lambda c: weighted(table, c, lambda t: 2.0 ** (len(c) - n)),
        "k-SII": lambda c: sum(bernoulli[m] * sii(table, t) for m, t in larger(c, n, order)),
        "STII": lambda c: (
            weighted(table, c, lambda t: order / n / comb(n - 1, t))
            if len(c) == order
            else derivative(table, c, ())
        ),
        "CHII": lambda c: weighted(
            table,
            c,
            lambda t: len(c) * factorial(n - len(c) - t) * factorial(len(c) + t - 1) / factorial(n),
        ),
        "Moebius": lambda c: derivative(table, c, ()),
        "Co-Moebius": lambda c: derivative(table, c, [k for k in range(n) if k not in c]),
    }
    return {c: definitions[name](c) for c in asked}


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(table=tables(max_players=4), data=st.data())
def test_an_index_is_its_definition(name, table, data):
    order = data.draw(st.integers(1, len(table).bit_length() - 1))
    found = interactions(TableGame(table), name, order)
    truth = by_definition(name, table, order)
    assert found.mapping.keys() == truth.keys()
    for coalition, value in truth.items():
        assert found[coalition] == pytest.approx(value, abs=1e-5 if name == "FSII" else 1e-9)


def test_hand_computed_indices_of_a_pair_of_gloves():
    # v = x0 x1 + x0 x2 − x0 x1 x2
    glove = TableGame([0, 0, 0, 1, 0, 1, 0, 1])
    third = 1 / 3
    expected = {
        "Moebius": [0, 0, 0, 1, 1, 0],
        "Co-Moebius": [1, 0, 0, 0, 0, -1],
        "SII": [2 * third, third / 2, third / 2, 0.5, 0.5, -0.5],
        "BII": [0.75, 0.25, 0.25, 0.5, 0.5, -0.5],
        "k-SII": [third / 2, third / 2, third / 2, 0.5, 0.5, -0.5],
        "STII": [0, 0, 0, 2 * third, 2 * third, -third],
        "FSII": [third / 2, third / 2, third / 2, 0.5, 0.5, -0.5],
        "FBII": [-0.125, 0.25, 0.25, 0.25, 0.5, 0.5, -0.5],
    }
    for name, values in expected.items():
        found = interactions(glove, name, 2)
        np.testing.assert_allclose(found.values, values, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", EFFICIENT)
@given(table=tables(max_players=5), data=st.data())
def test_efficient_indices_share_out_the_whole_value(name, table, data):
    order = data.draw(st.integers(1, len(table).bit_length() - 1))
    found = interactions(TableGame(table), name, order)
    assert found.values.sum() == pytest.approx(table[-1] - table[0], abs=1e-8)


@pytest.mark.parametrize("name", EFFICIENT)
def test_of_order_one_an_efficient_index_is_the_shapley_value(name, rng):
    game = TableGame(rng.normal(size=1 << 6))
    np.testing.assert_allclose(interactions(game, name, 1).values, shapley(game).values)
    np.testing.assert_allclose(interactions(game, "BII", 1).values, banzhaf(game).values)


@pytest.mark.parametrize("name", NAMES)
def test_indices_are_linear_and_know_symmetry_and_null_players(name, rng):
    one, two = rng.normal(size=(2, 1 << 5))
    parts = [interactions(TableGame(t), name, 3).values for t in (one, two, 2 * one - 3 * two)]
    np.testing.assert_allclose(parts[2], 2 * parts[0] - 3 * parts[1], atol=1e-9)
    order = rng.permutation(5).tolist()
    moved = interactions(TableGame(relabelled(one, order)), name, 3)
    here = interactions(TableGame(one), name, 3)
    for coalition in moved:
        assert moved[coalition] == pytest.approx(here[[order[k] for k in coalition]], abs=1e-9)
    null = interactions(TableGame(np.concatenate([one, one])), name, 3)  # player 5 adds nothing
    assert [c for c in null if 5 in c and abs(null[c]) > 1e-9] == []


@pytest.mark.parametrize("name", NAMES)
def test_what_a_measure_says_and_what_its_weights_say_is_the_same(name, rng):
    from coalitions import all_coalitions
    from coalitions.values.interaction_indices import coalitions_of_size, weighted_sums

    table = rng.normal(size=1 << 7)
    index = INDICES[name](3)
    masses, rows = index.masses(7), all_coalitions(7)
    found = interactions(TableGame(table), name, 3)
    for size in index.sizes():
        sums = weighted_sums(masses[size], coalitions_of_size(7, size), rows, table)
        np.testing.assert_allclose(sums, list(found.values_of_order(size).values()), atol=1e-9)


@pytest.mark.parametrize("name", ["Moebius", "Co-Moebius"])
def test_only_the_coalitions_that_count_are_evaluated(name, rng):
    game = Asked(rng.normal(size=1 << 12))
    found = interactions(game, name, 2, budget=100)
    assert (found.method, found.evaluations, game.rows) == ("exact", 79, 79)
    assert "79" in found.reason
    truth = interactions(TableGame(game._game.table), name, 2)
    np.testing.assert_allclose(found.values, truth.values, atol=1e-9)


def test_the_result_speaks_names_tables_and_json():
    glove = TableGame([0, 0, 0, 1, 0, 1, 0, 1], labels=["left", "right", "other"])
    found = interactions(glove, "shapley", 2)
    assert (found.index, found.order, found.n_players) == ("SII", 2, 3)
    assert found.labels == ("left", "right", "other")
    assert found.named["right", "other"] == found[2, 1] == found.mapping[1, 2] == -0.5
    assert found[0] == found[[0]] == pytest.approx(2 / 3)
    assert list(found.values_of_order(1)) == [(0,), (1,), (2,)]
    frame = found.to_frame()
    assert frame.columns.tolist() == ["coalition", "order", "value", "stderr", "low", "high"]
    assert frame["coalition"].tolist()[-1] == ("right", "other")
    document = json.loads(found.to_json())
    assert document["interactions"][3]["coalition"] == ["left", "right"]
    assert document["evaluations"] == 8
    low, high = found.interval()
    np.testing.assert_array_equal(low, high)
    for wrong in (7, (0, 1, 2), "x", None):
        with pytest.raises(InvalidInputError, match="is not a coalition of at most 2"):
            found[wrong]


def test_bad_orders_and_indices_get_a_sentence():
    game = TableGame(np.arange(8.0))
    with pytest.raises(UnknownNameError, match="no interaction index named 'SIII'; did you mean"):
        interactions(game, "SIII")
    with pytest.raises(InvalidInputError, match="the order is 4; there are only 3 players"):
        interactions(game, "SII", 4)
    with pytest.raises(InvalidInputError, match="the order"):
        interactions(game, "SII", 0)
    with pytest.raises(InvalidInputError, match="it must be a name"):
        interactions(game, 3)
    wide = Asked(np.zeros(2))
    wide.n_players = 400
    with pytest.raises(InvalidInputError, match="ask for a lower order"):
        interactions(wide, "SII", 3)


def test_tables_of_all_coalitions_know_every_index(rng):
    table = rng.normal(size=1 << 4)
    found = index_of_all(TableGame(table), "k-SII", 2)
    ours = interactions(TableGame(table), "k-SII", 2)
    assert found[0b0101] == pytest.approx(ours[0, 2])
    assert found[0b0111] == 0.0
    assert found[0] == 0.0
