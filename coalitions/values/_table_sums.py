"""All n sums over the coalitions of each player in one streaming pass over 2^n values."""

from __future__ import annotations

from typing import Any

import numpy as np

from coalitions.compiling import njit
from coalitions.enumeration import coalition_sizes
from coalitions.game import FloatMatrix, FloatVector

BLOCK_BITS = 12
"""The fold streams over blocks of 2^12 values, which stay in the first-level cache."""


@njit(cache=True)
def lane_sum(values: Any) -> float:  # noqa: ANN401
    """Return the sum, added up in four lanes: fast, and in one order with any compiler.

    To let the compiler choose the order (fast-math) would be as fast, but code that was just
    compiled then rounds otherwise than the same code from the cache.
    """
    a = b = c = d = 0.0
    whole = len(values) // 4 * 4
    for s in range(0, whole, 4):
        a += values[s]
        b += values[s + 1]
        c += values[s + 2]
        d += values[s + 3]
    for s in range(whole, len(values)):
        a += values[s]
    return (a + b) + (c + d)


@njit(cache=True)
def halve(sums: Any, n_bits: int, first: int, out: Any) -> None:  # noqa: ANN401
    """Set ``out[first + i]`` to the sum of ``sums[S]`` over all S with bit i; spends `sums`.

    The sum over the upper half is bit n−1's; adding the halves leaves the same problem with one
    bit less. So all n sums take 2·2^n additions, not n·2^n.
    """
    half = 1 << n_bits
    for i in range(n_bits - 1, -1, -1):
        half >>= 1
        out[first + i] = lane_sum(sums[half : 2 * half])
        for s in range(half):
            sums[s] += sums[half + s]


def weight_rows(n: int, weights: FloatVector) -> FloatMatrix:
    """Return weights of blocks: row p for a block whose number has p set bits."""
    n_low = min(n, BLOCK_BITS)
    high, low = np.arange(n - n_low + 1), coalition_sizes(n_low).astype(np.int64)
    rows: FloatMatrix = weights[high[:, None] + low]
    return rows


@njit(cache=True)
def bit_count(number: int) -> int:
    """Return the number of set bits."""
    count = 0
    while number:
        number &= number - 1
        count += 1
    return count


@njit(cache=True)
def add_block(block: Any, row: Any, empty: float, low: Any, weighted: Any) -> float:  # noqa: ANN401
    """Add the weighted block to `low` and return its sum; `weighted` is room to work in."""
    for s in range(len(block)):
        weighted[s] = row[s] * (block[s] - empty)
        low[s] += weighted[s]
    total: float = lane_sum(weighted)
    return total


@njit(cache=True)
def membership_sums_of_table(table: Any, n: int, rows: Any) -> Any:  # noqa: ANN401
    r"""Return :math:`\sum_{S \ni i} c_{|S|} (v(S) - v(\emptyset))` of each player, in one pass.

    `rows` are the `weight_rows` of c.
    """
    n_low = min(n, BLOCK_BITS)
    size = 1 << n_low
    low, room = np.zeros(size), np.empty(size)
    high = np.empty(1 << (n - n_low))
    for b in range(len(high)):
        block = table[b * size : (b + 1) * size]
        high[b] = add_block(block, rows[bit_count(b)], table[0], low, room)
    sums = np.empty(n)
    halve(low, n_low, 0, sums)
    halve(high, n - n_low, n_low, sums)
    return sums
