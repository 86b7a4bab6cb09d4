"""Wrappers are games, keep batching, and compose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalitions import (
    BudgetError,
    FunctionGame,
    InvalidInputError,
    TableGame,
    all_coalitions,
    cached,
    normalized,
    reported,
    restricted,
    shapley,
)
from coalitions.enumeration import coalitions_of_masks, masks_of_coalitions
from tests.coalitions.table_games import tables


class Batches:
    def __init__(self, table):
        self.game = TableGame(table)
        self.n_players = self.game.n_players
        self.sizes = []

    def __call__(self, coalitions):
        self.sizes.append(len(coalitions))
        return self.game(coalitions)


@given(tables(max_players=4), st.lists(st.lists(st.integers(0, 15), max_size=12), max_size=5))
def test_cached_evaluates_each_coalition_once(table, batches):
    inner = Batches(table)
    game = cached(inner)
    asked = set()
    for masks in batches:
        masks = np.array(masks, int) % len(table)
        rows = coalitions_of_masks(masks, inner.n_players)
        fresh = set(masks.tolist()) - asked
        assert game.unseen(rows) == len(fresh)
        calls = len(inner.sizes)
        np.testing.assert_array_equal(game(rows), table[masks])
        assert inner.sizes[calls:] == ([len(fresh)] if fresh else [])
        asked |= fresh
    assert game.evaluations == len(asked)
    assert game.requests == sum(map(len, batches))


def test_a_cache_with_a_limit_refuses_before_it_evaluates():
    inner = Batches(np.arange(8.0))
    game = cached(inner, limit=3)
    game(all_coalitions(3)[:2])
    with pytest.raises(BudgetError, match="2 evaluations are spent and 2 more"):
        game(all_coalitions(3)[1:4])
    assert inner.sizes == [2]
    game(all_coalitions(3)[:3])
    assert game.evaluations == 3
    with pytest.raises(InvalidInputError, match="negative"):
        cached(inner, limit=-1)


def test_a_cache_of_many_players(rng):
    rows = rng.random((40, 100)) < 0.5
    game = cached(Sizes(100))
    np.testing.assert_array_equal(game(np.concatenate([rows, rows])), np.tile(rows.sum(1), 2))
    assert game.evaluations == 40


class Sizes:
    def __init__(self, n_players):
        self.n_players = n_players

    def __call__(self, coalitions):
        return coalitions.sum(axis=1)


@given(tables(max_players=4))
def test_normalised_starts_at_zero_in_one_call(table):
    inner = Batches(table)
    game = normalized(inner)
    values = game(all_coalitions(inner.n_players))
    np.testing.assert_array_equal(values, table - table[0])
    assert len(inner.sizes) == 1


def test_normalised_to_one():
    game = normalized(TableGame([1.0, 2.0, 3.0, 5.0]), scale=True)
    np.testing.assert_array_equal(game(all_coalitions(2)), [0, 0.25, 0.5, 1])
    with pytest.raises(InvalidInputError, match="cannot be scaled"):
        normalized(TableGame([1.0, 2.0, 3.0, 1.0]), scale=True)([1, 0])


@given(tables(min_players=2, max_players=4), st.data())
def test_restricted_is_the_subgame(table, data):
    n = len(table).bit_length() - 1
    players = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True))
    game = restricted(TableGame(table), players)
    for row in all_coalitions(len(players)):
        mask = sum(1 << players[k] for k in np.flatnonzero(row))
        assert game(row)[0] == table[mask]


@pytest.mark.parametrize("players", [[], [0, 0], [3], [-1], [0.5]])
def test_restricted_to_players_that_are_not_there(players):
    with pytest.raises(InvalidInputError, match="players"):
        restricted(TableGame(np.zeros(8)), players)


def test_reported_counts_rows_and_wrappers_compose():
    counts = []
    inner = reported(TableGame(np.arange(8.0) + 2), counts.append)
    game = cached(normalized(restricted(inner, [2, 0])))
    np.testing.assert_array_equal(game([[1, 0], [0, 1], [1, 0]]), [4, 1, 4])
    np.testing.assert_array_equal(game([[1, 1]]), [5])
    assert counts == [4, 5]


@given(st.integers(1, 62), st.data())
def test_masks_and_coalitions_are_the_same_thing(n, data):
    masks = data.draw(st.lists(st.integers(0, (1 << n) - 1), max_size=5))
    rows = coalitions_of_masks(masks, n)
    assert rows.shape == (len(masks), n)
    assert masks_of_coalitions(rows).tolist() == masks
    expected = [[mask >> i & 1 == 1 for i in range(n)] for mask in masks]
    assert rows.tolist() == expected


def test_too_many_players_to_list():
    with pytest.raises(InvalidInputError, match="at most 30"):
        all_coalitions(31)
    with pytest.raises(InvalidInputError, match="62 bits"):
        masks_of_coalitions(np.zeros((1, 63), bool))


def test_a_subclass_of_a_checked_game_is_checked_and_gets_a_copy():
    class Careless(FunctionGame):
        def __call__(self, coalitions):
            coalitions[:] = True
            return np.full(len(coalitions), self.answer)

    game = Careless(len, 3)
    game.answer = 1.0
    asked = np.zeros((2, 3), np.bool_)
    assert cached(game)(asked).tolist() == [1, 1]
    assert not asked.any()
    game.answer = np.nan
    with pytest.raises(InvalidInputError, match="nan"):
        shapley(game, "permutation", 6)


def test_a_function_that_writes_to_its_rows_changes_nothing_outside():
    def careless(rows):
        values = rows.sum(axis=1)
        rows[:] = True
        return values

    asked = np.zeros((2, 3), np.bool_)
    assert cached(FunctionGame(careless, 3))(asked).tolist() == [0, 0]
    assert not asked.any()
