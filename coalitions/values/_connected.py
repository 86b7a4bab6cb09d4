"""Kernels: all connected coalitions of a graph, and what the Myerson value takes from them."""

from __future__ import annotations

import numpy as np

from coalitions.compiling import njit
from coalitions.game import FloatMatrix, FloatVector, IntMatrix, IntVector
from coalitions.values._table_sums import halve

CHUNK = 2048
"""Coalitions that are listed at once: they stay in the nearest cache."""

_DE_BRUIJN = np.uint64(0x022FDD63CC95386D)  # its 64 windows of six bits all differ
_POSITIONS = np.argsort([((0x022FDD63CC95386D << k) & (2**64 - 1)) >> 58 for k in range(64)])


def start(n_players: int) -> tuple[IntMatrix, IntVector]:
    """Return the stack and the place from which `next_connected` begins."""
    return np.empty((n_players * (n_players + 3) // 2 + 1, 4), np.int64), np.array([-1, 0])


@njit(cache=True)
def next_connected(
    neighbours: IntVector,
    stack: IntMatrix,
    place: IntVector,
    coalitions: IntVector,
    borders: IntVector,
) -> int:
    """Fill in the next connected coalitions and their borders; return how many, 0 at the end.

    A coalition grows from its largest player by one candidate at a time. The candidates above the
    one taken are barred from the rest of the branch, so every coalition comes up exactly once and
    costs a constant number of operations on words. Low bits change fastest: neighbours in the
    order are neighbours in memory.

    Parameters
    ----------
    neighbours
        Bits of the neighbours of each player [n], n ≤ 62.
    stack, place
        Where the last call stopped; see `start`.
    coalitions, borders
        Arrays to fill with masks; the border of C holds the neighbours of C outside C.
    """
    one = np.int64(1)
    first, depth = place
    count = 0
    while count < len(coalitions):
        if depth == 0:
            if first + 1 == len(neighbours):
                break
            first += 1
            stack[0, 0] = one << first
            stack[0, 1] = neighbours[first]  # everything next to the coalition
            stack[0, 2] = neighbours[first] & ((one << first) - 1)  # the candidates
            stack[0, 3] = -(one << first)  # inside, or barred
            depth = 1
        depth -= 1
        coalition, reach = stack[depth, 0], stack[depth, 1]
        candidates, barred = stack[depth, 2], stack[depth, 3]
        coalitions[count] = coalition
        borders[count] = reach & ~coalition
        count += 1
        open_bits = candidates
        while open_bits:
            bit = open_bits & -open_bits
            open_bits ^= bit
            player = _position(bit)
            now_barred = barred | (candidates & -bit)
            stack[depth, 0] = coalition | bit
            stack[depth, 1] = reach | neighbours[player]
            stack[depth, 2] = (candidates | neighbours[player]) & ~now_barred
            stack[depth, 3] = now_barred
            depth += 1
    place[0], place[1] = first, depth
    return count


@njit(cache=True)
def myerson_of_table(
    table: FloatVector,
    neighbours: IntVector,
    stack: IntMatrix,
    place: IntVector,
    inside: FloatMatrix,
    outside: FloatMatrix,
) -> FloatVector:
    """Return the Myerson value of a game given by its 2^n values.

    Both weights of a coalition are filed under the players they are for, the coalition and its
    border; the value of i is the sum over all sets with i.
    """
    terms = np.zeros(len(table))
    coalitions, borders = np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64)
    empty = table[0]
    while True:
        count = next_connected(neighbours, stack, place, coalitions, borders)
        if count == 0:
            values: FloatVector = add_halves(terms)
            return values
        for k in range(count):
            # Unsigned, so that no index is checked for counting from the end.
            coalition, border = np.uint64(coalitions[k]), np.uint64(borders[k])
            value = table[coalition] - empty
            c, b = _size(coalition), _size(border)
            terms[coalition] += inside[c, b] * value
            terms[border] -= outside[c, b] * value


@njit(cache=True)
def add_halves(table: FloatVector) -> FloatVector:
    """Return the sums of `table` over all sets with player i, folding the table in place."""
    n = 0
    while 1 << (n + 1) <= len(table):
        n += 1
    sums = np.zeros(n)
    halve(table, n, 0, sums)
    return sums


@njit(cache=True, inline="always")
def _position(bit: np.int64) -> np.int64:
    """Return the index of a single bit [Leiserson1998]_."""
    return np.int64(_POSITIONS[(np.uint64(bit) * _DE_BRUIJN) >> np.uint64(58)])


@njit(cache=True, inline="always")
def _size(word: np.uint64) -> np.uint64:
    """Return the number of bits by adding them in parallel [Warren2012]_."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)
