"""All partitions of the players, in restricted-growth order: the brute-force reference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError
from coalitions.structure import CoalitionStructure

LISTED_PLAYERS = 12
"""The partitions of more players than this (Bell(13) = 27 644 437) are not put into one array."""


def bell_number(n_players: int) -> int:
    r"""Return the number of partitions of n players.

    .. math:: B_{n+1} = \sum_{k=0}^{n} \binom{n}{k} B_k

    The Bell triangle computes it by additions alone: a row starts with the last number of the row
    before, and each next number adds the one above (OEIS A000110).

    Examples
    --------
    >>> [bell_number(n) for n in range(8)]
    [1, 1, 2, 5, 15, 52, 203, 877]
    """
    if n_players < 0:
        raise InvalidInputError(f"there cannot be {n_players} players")
    row = [1]
    for _ in range(n_players):
        following = [row[-1]]
        for above in row:
            following.append(following[-1] + above)
        row = following
    return row[0]


def partition_labels(n_players: int) -> NDArray[np.int8]:
    """Return the labels of all partitions [Bell(n), n], one a row.

    A row is a restricted growth string: the first player has label 0, and every other at most one
    more than the largest label before it. Rows are in lexicographic order, from everybody together
    to everybody alone.

    Examples
    --------
    >>> partition_labels(3).tolist()
    [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 2]]
    """
    if n_players > LISTED_PLAYERS:
        raise InvalidInputError(
            f"{n_players} players have {bell_number(n_players):,} partitions; at most"
            f" {LISTED_PLAYERS} players can be listed, iterate over `all_partitions` instead"
        )
    labels = np.zeros((1, 0), np.int8)
    n_blocks = np.zeros(1, np.int64)
    for _ in range(n_players):
        parent = np.repeat(np.arange(len(labels)), n_blocks + 1)
        first = np.cumsum(n_blocks + 1) - (n_blocks + 1)
        label = np.arange(len(parent)) - first[parent]
        labels = np.column_stack([labels[parent], label.astype(np.int8)])
        n_blocks = np.maximum(n_blocks[parent], label + 1)
    return labels


def all_partitions(n_players: int) -> Iterator[CoalitionStructure]:
    """Yield all partitions of n players in the order of `partition_labels`, one at a time.

    Examples
    --------
    >>> [structure.coalitions for structure in all_partitions(2)]
    [((0, 1),), ((0,), (1,))]
    """
    if n_players < 0:
        raise InvalidInputError(f"there cannot be {n_players} players")
    blocks: list[list[int]] = []

    def place(player: int) -> Iterator[CoalitionStructure]:
        if player == n_players:
            yield CoalitionStructure(blocks)
            return
        for block in list(blocks):
            block.append(player)
            yield from place(player + 1)
            block.pop()
        blocks.append([player])
        yield from place(player + 1)
        blocks.pop()

    yield from place(0)
