"""All n sums over the coalitions of each player in one streaming pass over 2^n values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

REASSOCIATE = {"reassoc", "nsz", "contract"}
"""Lets sums be vectorised; unlike full fast-math it keeps NaN and infinity meaningful."""

BLOCK_BITS = 12
"""The fold streams over blocks of 2^12 values, which stay in the first-level cache."""


@njit(cache=True, fastmath=REASSOCIATE)
def halve(sums: Any, nbit_count: int, first: int, out: Any) -> None:  # noqa: ANN401
    """Set ``out[first + i]`` to the sum of ``sums[S]`` over all S with bit i; spends `sums`.

    The sum over the upper half is bit n−1's; adding the halves leaves the same problem with one
    bit less. So all n sums take 2·2^n additions, not n·2^n.
    """
    half = 1 << nbit_count
    for i in range(nbit_count - 1, -1, -1):
        half >>= 1
        total = 0.0
        for s in range(half):
            total += sums[half + s]
            sums[s] += sums[half + s]
        out[first + i] = total


@njit(cache=True)
def weight_rows(n: int, n_low: int, weights: Any) -> Any:  # noqa: ANN401
    """Return weights of blocks: row p for a block whose number has p set bits."""
    size = np.zeros(1 << n_low, np.int64)
    for s in range(1, 1 << n_low):
        size[s] = size[s >> 1] + (s & 1)
    rows = np.empty((n - n_low + 1, 1 << n_low))
    for p in range(n - n_low + 1):
        for s in range(1 << n_low):
            rows[p, s] = weights[p + size[s]]
    return rows


@njit(cache=True)
def bit_count(number: int) -> int:
    """Return the number of set bits."""
    count = 0
    while number:
        number &= number - 1
        count += 1
    return count


@njit(cache=True, fastmath=REASSOCIATE)
def add_block(block: Any, row: Any, empty: float, low: Any) -> float:  # noqa: ANN401
    """Add the weighted block to `low` and return its sum."""
    total = 0.0
    for s in range(len(block)):
        weighted = row[s] * (block[s] - empty)
        low[s] += weighted
        total += weighted
    return total


@njit(cache=True)
def membership_sums_of_table(table: Any, n: int, weights: Any) -> Any:  # noqa: ANN401
    r"""Return :math:`\sum_{S \ni i} c_{|S|} (v(S) - v(\emptyset))` of each player, in one pass."""
    n_low = min(n, BLOCK_BITS)
    size = 1 << n_low
    rows = weight_rows(n, n_low, weights)
    low = np.zeros(size)
    high = np.empty(1 << (n - n_low))
    for b in range(len(high)):
        high[b] = add_block(table[b * size : (b + 1) * size], rows[bit_count(b)], table[0], low)
    sums = np.empty(n)
    halve(low, n_low, 0, sums)
    halve(high, n - n_low, n_low, sums)
    return sums
