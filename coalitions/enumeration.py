"""All 2^n coalitions in binary order, player i = bit i, and sums over tables of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalitions.checks import GameLike, as_game
from coalitions.errors import InvalidInputError, with_keywords
from coalitions.game import (
    BoolMatrix,
    FloatMatrix,
    FloatVector,
    IntVector,
    evaluate,
    players_of,
    table_of,
)

TABLE_PLAYERS = 30
"""A table of more players than this (8 GiB) is refused."""

ROWS_PER_CALL = 1 << 16
"""Rows of one call when a game is asked for all of its values."""


def coalitions_of_masks(masks: Any, n_players: int) -> BoolMatrix:  # noqa: ANN401 (integers)
    """Return the coalitions [m, n] that the bits of `masks` stand for.

    Examples
    --------
    >>> coalitions_of_masks([5], 3)
    array([[ True, False,  True]])
    """
    octets = np.asarray(masks, "<u8").reshape(-1, 1).view(np.uint8)
    bits = np.unpackbits(octets[:, : max(1, -(-n_players // 8))], axis=1, bitorder="little")
    return bits[:, :n_players].view(np.bool_)


def masks_of_coalitions(coalitions: BoolMatrix) -> IntVector:
    """Return one integer for each row, in which player i is bit i; up to 62 players.

    Examples
    --------
    >>> masks_of_coalitions(np.array([[True, False, True]]))
    array([5])
    """
    rows = np.asarray(coalitions, np.bool_)
    m, n = rows.shape
    if n > 62:
        raise InvalidInputError(f"{n} players do not fit into the 62 bits of a mask")
    packed = np.packbits(rows, axis=1, bitorder="little")
    octets = np.zeros((m, 8), np.uint8)
    octets[:, : packed.shape[1]] = packed
    return octets.view("<i8").reshape(-1).astype(np.int64, copy=False)


def all_coalitions(n_players: int) -> BoolMatrix:
    """Return all 2^n coalitions [2^n, n]; row k is the coalition of the bits of k.

    Examples
    --------
    >>> all_coalitions(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    _check_size(n_players)
    return coalitions_of_masks(np.arange(1 << n_players), n_players)


@with_keywords()
def value_table(
    game: GameLike,
    *,
    rows_per_call: int = ROWS_PER_CALL,
    between: Callable[[int, int], None] | None = None,
    known: FloatVector | None = None,
) -> FloatVector:
    """Return the values of all 2^n coalitions, indexed by mask.

    A game that has its ``table`` is not asked again.

    Parameters
    ----------
    game
        Any game of up to 30 players.
    rows_per_call
        Most coalitions of one call to the game.
    between
        Called with the coalitions evaluated so far and all of them, before the first call and
        after each; an exception in it ends the work.
    known
        The first values, which the game is not asked for again.
    """
    game = as_game(game)
    n = players_of(game)
    _check_size(n)
    size = 1 << n
    table = table_of(game)
    if table is not None:
        return _checked(np.asarray(table, np.float64), size)
    values = np.empty(size)
    first = 0 if known is None else len(known)
    if known is not None:
        values[:first] = known
    if between is not None:
        between(first, size)
    for start in range(first, size, rows_per_call):
        masks = np.arange(start, min(size, start + rows_per_call))
        values[masks] = evaluate(game, coalitions_of_masks(masks, n))
        if between is not None:
            between(int(masks[-1]) + 1, size)
    return values


def _checked(table: FloatVector, size: int) -> FloatVector:
    """Return the table that a foreign game has at hand, if it is one."""
    if table.shape != (size,):
        raise InvalidInputError(f"the game's table has shape {table.shape}, not ({size},)")
    wrong = np.flatnonzero(~np.isfinite(table))
    if len(wrong):
        members = [player for player in range(size.bit_length()) if int(wrong[0]) >> player & 1]
        raise InvalidInputError(f"the value of coalition {members} is {table[wrong[0]]}")
    return table


def _check_size(n_players: int) -> None:
    if n_players > TABLE_PLAYERS:
        raise InvalidInputError(
            f"{n_players} players have 2^{n_players} coalitions; at most {TABLE_PLAYERS} players"
            " can be listed"
        )


# ----------------------------------------------------------------------------------------
# Sums over subsets in tables of 2^n numbers; each takes O(2^n) additions


def coalition_sizes(n_players: int) -> NDArray[np.uint8]:
    """Return |S| for all coalitions [2^n]."""
    sizes = np.zeros(1 << n_players, np.uint8)
    for player in range(n_players):
        half = 1 << player
        np.add(sizes[:half], 1, out=sizes[half : 2 * half])
    return sizes


def member_sums(amounts: FloatVector) -> FloatVector:
    r"""Return the amount of every coalition, :math:`x(S) = \sum_{i \in S} x_i` [2^n]."""
    sums = np.zeros(1 << len(amounts))
    for player, amount in enumerate(amounts.tolist()):
        half = 1 << player
        np.add(sums[:half], amount, out=sums[half : 2 * half])
    return sums


def sums_with_player(table: FloatVector) -> FloatVector:
    r"""Return :math:`\sum_{S \ni i} f(S)` for every player i [n].

    The upper half of a table holds the coalitions with the last player. Once it is summed, that
    player no longer matters: the halves are added and the table is half as long.
    """
    n = len(table).bit_length() - 1
    sums = np.empty(n)
    for player in reversed(range(n)):
        half = 1 << player
        sums[player] = table[half:].sum()
        table = table[:half] + table[half:]
    return sums


def sums_with_pair(table: FloatVector) -> FloatMatrix:
    r"""Return :math:`\sum_{S \supseteq \{i, j\}} f(S)` for every pair [n, n], diagonal zero."""
    n = len(table).bit_length() - 1
    sums = np.zeros((n, n))
    for player in reversed(range(1, n)):
        half = 1 << player
        sums[player, :player] = sums[:player, player] = sums_with_player(table[half:])
        table = table[:half] + table[half:]
    return sums
