"""The loop over all coalitions of a compiled game.

Importing this module loads (the first time: compiles) the loop, so it is only imported when it is
about to run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coalitions.compiling import ADD, VECTOR, njit, types
from coalitions.values._table_sums import BLOCK_BITS, add_block, bit_count, halve

ROWS = types.float64[:, ::1]


@njit(VECTOR(types.FunctionType(ADD), VECTOR, VECTOR, types.float64, types.int64, ROWS), cache=True)
def membership_sums_of_kernel(
    add: Any,  # noqa: ANN401
    start: Any,  # noqa: ANN401
    parameters: Any,  # noqa: ANN401
    empty: float,
    n: int,
    rows: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Return the sums of `membership_sums_of_table` for a compiled game, and v(N) at the end.

    No table is stored.

    Masks are visited in ascending order. ``states[d]`` is the coalition of the d highest bits of
    the mask, so each mask costs one copied state and one `add`: of its lowest bit, to the
    coalition of all the higher ones.
    """
    n_low = min(n, BLOCK_BITS)
    size = 1 << n_low
    low, room = np.zeros(size), np.empty(size)
    high = np.empty(1 << (n - n_low))
    block = np.empty(size)
    depth_of = np.zeros(size, np.int64)
    lowest_of = np.zeros(size, np.int64)
    for s in range(1, size):
        depth_of[s] = depth_of[s >> 1] + (s & 1)
        lowest_of[s] = 0 if s & 1 else lowest_of[s >> 1] + 1
    states = np.empty((n + 1, len(start)))
    state = start.copy()
    for k in range(len(start)):
        states[0, k] = start[k]
    value = empty
    for b in range(len(high)):
        depth = bit_count(b)
        for s in range(size):
            if s or b:
                lowest, d = lowest_of[s], depth + depth_of[s]
                if s == 0:
                    lowest = n_low + bit_count((b & -b) - 1)
                for k in range(len(state)):
                    state[k] = states[d - 1, k]
                value = add(state, lowest, parameters)
                if lowest:  # nobody joins after player 0
                    for k in range(len(state)):
                        states[d, k] = state[k]
            block[s] = value
        high[b] = add_block(block, rows[depth], empty, low, room)
    sums = np.empty(n + 1)
    halve(low, n_low, 0, sums)
    halve(high, n - n_low, n_low, sums)
    sums[n] = value
    return sums
