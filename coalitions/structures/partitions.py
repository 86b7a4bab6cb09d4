"""Partitions of the players: all of them, finer and coarser ones, and how similar two are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector, IntVector
from coalitions.structure import CoalitionStructure, Structured, as_structure

# ----------------------------------------------------------------------------------------
# All partitions, in restricted-growth order: the brute-force reference

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


# ----------------------------------------------------------------------------------------
# Two structures: how similar, and what is finer or coarser


def adjusted_rand_index(one: Structured, other: Structured) -> float:
    r"""Return the Rand index corrected for chance: 1 if equal, about 0 if unrelated.

    With :math:`n_{ab}` players in coalition a of one structure and b of the other, and pairs
    counted by :math:`\binom{\cdot}{2}` [Hubert1985]_,

    .. math:: \frac{\sum_{ab} \binom{n_{ab}}{2} - E}{\tfrac12 (A + B) - E}, \quad
        A = \sum_a \binom{n_{a\cdot}}{2},\; B = \sum_b \binom{n_{\cdot b}}{2},\;
        E = A B \Big/ \binom{n}{2}.

    Examples
    --------
    >>> halves = CoalitionStructure([[0, 1], [2, 3]])
    >>> adjusted_rand_index(halves, CoalitionStructure.grand(4))
    0.0
    """
    one, other = _both(one, other)
    both, left, right = _overlaps(one, other)
    together, a, b = _pairs(both), _pairs(left), _pairs(right)
    every = _pairs(np.array([one.n_players]))
    # Both structures have no pair together, or all of them: the same one, and 0/0 by the formula.
    if a == b and a in (0, every):
        return 1.0
    expected = a * b / every
    return float((together - expected) / ((a + b) / 2 - expected))


def normalized_mutual_information(one: Structured, other: Structured) -> float:
    r"""Return the mutual information over the mean entropy: 1 if equal, 0 if independent.

    .. math:: \frac{2\, I(C; D)}{H(C) + H(D)}, \quad
        I = \sum_{ab} \frac{n_{ab}}{n} \log \frac{n\, n_{ab}}{n_{a\cdot} n_{\cdot b}}

    Two structures of a single coalition carry no information and are equal: 1.

    Examples
    --------
    >>> pair = CoalitionStructure([[0, 1], [2, 3]])
    >>> normalized_mutual_information(pair, pair)
    1.0
    """
    one, other = _both(one, other)
    both, left, right = _overlaps(one, other)
    entropies = _entropy(left) + _entropy(right)
    if entropies == 0 or one == other:
        return 1.0
    mutual = entropies - _entropy(both)
    return float(min(1.0, max(0.0, 2 * mutual / entropies)))


def refines(fine: Structured, coarse: Structured) -> bool:
    """Tell whether every coalition of `fine` lies inside one of `coarse`.

    Examples
    --------
    >>> refines(CoalitionStructure.singletons(3), CoalitionStructure([[0, 1], [2]]))
    True
    """
    fine, coarse = _both(fine, coarse)
    return meet(fine, coarse) == fine


def meet(one: Structured, other: Structured) -> CoalitionStructure:
    """Return the coarsest structure that refines both: together if together in both.

    Examples
    --------
    >>> meet(CoalitionStructure([[0, 1, 2]]), CoalitionStructure([[0], [1, 2]])).coalitions
    ((0,), (1, 2))
    """
    one, other = _both(one, other)
    return CoalitionStructure.from_labels(one.labels * len(other) + other.labels)


def join(one: Structured, other: Structured) -> CoalitionStructure:
    """Return the finest structure that both refine: together if linked through either.

    Examples
    --------
    >>> join(CoalitionStructure([[0, 1], [2]]), CoalitionStructure([[0], [1, 2]])).coalitions
    ((0, 1, 2),)
    """
    one, other = _both(one, other)
    root = list(range(one.n_players))

    def find(player: int) -> int:
        while root[player] != player:
            root[player] = root[root[player]]  # halve the path, so that chains stay short
            player = root[player]
        return player

    for block in (*one, *other):
        for player in block[1:]:
            root[find(player)] = find(block[0])
    return CoalitionStructure.from_labels([find(player) for player in range(one.n_players)])


def _overlaps(
    one: CoalitionStructure, other: CoalitionStructure
) -> tuple[IntVector, IntVector, IntVector]:
    """Return the positive sizes of all intersections, and of the coalitions on either side."""
    cells = one.labels * len(other) + other.labels
    _, both = np.unique(cells, return_counts=True)
    return both, np.bincount(one.labels), np.bincount(other.labels)


def _pairs(sizes: IntVector) -> int:
    return int((sizes * (sizes - 1) // 2).sum())


def _entropy(sizes: IntVector) -> float:
    share: FloatVector = sizes / sizes.sum()
    return float(-(share * np.log(share)).sum())


def _both(one: Structured, other: Structured) -> tuple[CoalitionStructure, CoalitionStructure]:
    """Return two structures of the same players."""
    first, second = as_structure(one), as_structure(other)
    if first.n_players != second.n_players:
        raise InvalidInputError(
            f"the structures have {first.n_players} and {second.n_players} players;"
            " only structures of the same players can be compared"
        )
    return first, second
