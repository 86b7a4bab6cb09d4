"""Sums over subsets in tables of 2^n numbers, player i = bit i; each takes O(2^n) additions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coalitions.game import FloatMatrix, FloatVector


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
