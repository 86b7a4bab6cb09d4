"""Kernels: all connected coalitions of a graph, and what the Myerson value takes from them."""

from __future__ import annotations

import numpy as np
from numba import njit

from coalitions.game import FloatMatrix, FloatVector, IntVector

_DE_BRUIJN = np.uint64(0x022FDD63CC95386D)  # its 64 windows of six bits all differ
_POSITIONS = np.argsort([((0x022FDD63CC95386D << k) & (2**64 - 1)) >> 58 for k in range(64)])


@njit(cache=True)
def connected_coalitions(neighbours: IntVector, coalitions: IntVector, borders: IntVector) -> int:
    """Fill in all connected coalitions and their borders; return how many, or −1 if too many.

    A coalition grows from its largest player by one candidate at a time. The candidates above the
    one taken are barred from the rest of the branch, so every coalition comes up exactly once and
    costs a constant number of operations on words. Low bits change fastest: neighbours in the
    order are neighbours in memory.

    Parameters
    ----------
    neighbours
        Bits of the neighbours of each player [n], n ≤ 62.
    coalitions, borders
        Arrays to fill with masks; the border of C holds the neighbours of C outside C.
    """
    n = len(neighbours)
    capacity = len(coalitions)
    one = np.int64(1)
    stack = np.empty((n * (n + 1) // 2 + n + 1, 4), np.int64)
    count = 0
    for first in range(n):
        stack[0, 0] = one << first
        stack[0, 1] = neighbours[first]  # everything next to the coalition
        stack[0, 2] = neighbours[first] & ((one << first) - 1)  # the candidates
        stack[0, 3] = -(one << first)  # inside, or barred
        depth = 1
        while depth:
            depth -= 1
            coalition, reach = stack[depth, 0], stack[depth, 1]
            candidates, barred = stack[depth, 2], stack[depth, 3]
            if count == capacity:
                return -1
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
    return count


@njit(cache=True)
def myerson_terms(
    table: FloatVector,
    coalitions: IntVector,
    borders: IntVector,
    inside: FloatMatrix,
    outside: FloatMatrix,
) -> FloatVector:
    """Return f [2^n] such that the Myerson value of i is the sum of f over all sets with i."""
    terms = np.zeros(len(table))
    empty = table[0]
    for k in range(len(coalitions)):
        # Unsigned, so that no index is checked for counting from the end.
        coalition, border = np.uint64(coalitions[k]), np.uint64(borders[k])
        value = table[coalition] - empty
        c, b = _size(coalition), _size(border)
        terms[coalition] += inside[c, b] * value
        terms[border] -= outside[c, b] * value
    return terms


@njit(cache=True, fastmath={"reassoc"})  # a sum may be vectorised; it is the same on every run
def add_halves(table: FloatVector) -> FloatVector:
    """Return the sums of `table` over all sets with player i, folding the table in place."""
    n = 0
    while 1 << (n + 1) <= len(table):
        n += 1
    sums = np.zeros(n)
    for player in range(n - 1, -1, -1):
        half = 1 << player
        total = 0.0
        for k in range(half):
            total += table[half + k]
            table[k] += table[half + k]
        sums[player] = total
    return sums


@njit(cache=True, inline="always")
def _position(bit: np.int64) -> np.int64:
    """Return the index of a single bit (Leiserson, Prokop and Randall 1998)."""
    return np.int64(_POSITIONS[(np.uint64(bit) * _DE_BRUIJN) >> np.uint64(58)])


@njit(cache=True, inline="always")
def _size(word: np.uint64) -> np.uint64:
    """Return the number of bits by adding them in parallel (Hacker's Delight, Fig. 5-2)."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)
