from __future__ import annotations

from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalitions import (
    CoalitionStructure,
    InvalidInputError,
    TableGame,
    VotingGame,
    owen,
    payoffs,
    restricted,
    shapley,
)
from coalitions.values.owen_myerson import potential_of_table
from tests.coalitions.table_games import Asked, mask, structures, subsets, tables
from tests.strategies import label_vectors, synergy_graphs


@st.composite
def games_with_structures(draw, max_players=6):
    table = draw(tables(max_players=max_players))
    return table, draw(structures(len(table).bit_length() - 1))


def owen_by_definition(table, structure):
    values = np.zeros(structure.n_players)
    m = len(structure)
    for number, block in enumerate(structure):
        b = len(block)
        for unions in subsets(k for k in range(m) if k != number):
            met = [player for k in unions for player in structure.coalitions[k]]
            h = len(unions)
            for i in block:
                for part in subsets(k for k in block if k != i):
                    s = len(part)
                    weight = factorial(h) * factorial(m - h - 1) / factorial(m)
                    weight *= factorial(s) * factorial(b - s - 1) / factorial(b)
                    base = mask((*met, *part))
                    values[i] += weight * (table[base | 1 << i] - table[base])
    return values


@given(games_with_structures())
def test_owen_value_is_its_definition(case):
    table, structure = case
    found = owen(TableGame(table), structure)
    np.testing.assert_allclose(found, owen_by_definition(table, structure), atol=1e-10)


def by_bits(n):
    return [[k for k in range(n) if code >> k & 1] for code in range(1 << n)]


@given(games_with_structures())
def test_owen_value_is_efficient_and_unions_get_their_shapley_value(case):
    table, structure = case
    found = owen(TableGame(table), structure)
    assert found.values.sum() == pytest.approx(table[-1] - table[0], abs=1e-9)
    masks = [mask(block) for block in structure]
    quotient = [table[sum(masks[k] for k in unions)] for unions in by_bits(len(structure))]
    unions = [found[list(block)].sum() for block in structure]
    np.testing.assert_allclose(unions, shapley(TableGame(quotient)).values, atol=1e-9)


@given(tables(max_players=6))
def test_owen_value_of_trivial_structures_is_shapley(table):
    game = TableGame(table)
    truth = shapley(game).values
    for structure in (
        CoalitionStructure.singletons(game.n_players),
        CoalitionStructure.grand(game.n_players),
    ):
        np.testing.assert_allclose(owen(game, structure), truth, atol=1e-10)


def test_owen_value_of_a_majority_with_one_union():
    """Two of three players agree beforehand: together they decide, and the third is out."""
    majority = TableGame([0, 0, 0, 1, 0, 1, 1, 1])
    found = owen(majority, CoalitionStructure([[0, 1], [2]]))
    np.testing.assert_allclose(found, [0.5, 0.5, 0], atol=1e-12)


def test_owen_value_of_the_apex_game_when_the_apex_finds_a_partner():
    """Apex game [3; 2, 1, 1, 1] with the union {0, 1}: the apex gets 2/3 and the partner 1/3.

    The union comes first, second or third of three. First, its members need each other: 1/2.
    Second, the apex wins with the minor player who is there and needs no partner: 1. Third, the
    apex wins if it comes before the partner, who otherwise completes the minors: 1/2.
    """
    apex = VotingGame([2, 1, 1, 1], 3)
    found = owen(apex, CoalitionStructure([[0, 1], [2], [3]]))
    np.testing.assert_allclose(found, [2 / 3, 1 / 3, 0, 0], atol=1e-12)


def test_owen_value_asks_for_few_coalitions(rng):
    table = rng.random(1 << 12)
    game = Asked(table)
    owen(game, CoalitionStructure.from_labels(np.arange(12) // 3))
    assert game.rows == 4 * 2**3 * 2**3


@given(st.data())
def test_payoffs_on_a_graph_are_half_of_the_synergies_inside(data):
    graph = data.draw(synergy_graphs(max_players=6, scales=(1.0,)))
    structure = CoalitionStructure.from_labels(data.draw(label_vectors(graph.n_players)))
    shares = payoffs(graph, structure)
    for block in structure:
        for i in block:
            inside = sum(graph.matrix[i, j] for j in block) / 2
            assert shares[i] == pytest.approx(inside, abs=1e-10)
    np.testing.assert_allclose(shares, payoffs(graph.game(), structure))
    np.testing.assert_allclose(shares, payoffs(TableGame.of(graph.game()), structure), atol=1e-10)
    assert shares.values.sum() == pytest.approx(graph.value(structure), abs=1e-10)


@given(games_with_structures())
def test_payoffs_are_the_shapley_values_of_each_coalition(case):
    table, structure = case
    shares = payoffs(TableGame(table), structure)
    for block in structure:
        assert shares[list(block)].sum() == pytest.approx(table[mask(block)] - table[0], abs=1e-9)
        np.testing.assert_allclose(
            shares[list(block)], shapley(restricted(TableGame(table), block)).values, atol=1e-10
        )


@given(tables(max_players=5))
def test_potential_gives_the_shapley_value_of_every_subgame(table):
    potential = potential_of_table(table)
    game = TableGame(table)
    for coalition in subsets(range(game.n_players)):
        if coalition:
            whole = mask(coalition)
            shares = [potential[whole] - potential[whole ^ 1 << i] for i in coalition]
            truth = shapley(restricted(game, coalition)).values
            np.testing.assert_allclose(shares, truth, atol=1e-9)


def test_other_players_are_refused():
    game = TableGame([0, 1, 1, 2])
    for value in (owen, payoffs):
        with pytest.raises(InvalidInputError, match="3 players, the game 2"):
            value(game, CoalitionStructure.grand(3))
