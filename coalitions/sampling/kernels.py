"""Loops over a compiled game: all its coalitions, or the prefixes of random permutations.

A loop takes the game's `add` as a first-class function of a fixed type, not as a template. It is
therefore compiled once for all games, and the disk cache holds for games that users write.
Importing this module loads (the first time: compiles) the loops, so it is only imported when one
is about to run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types

from coalitions.game import FloatVector, Kernel
from coalitions.sampling.fold import BLOCK_BITS, add_block, bit_count, halve, weight_rows

VECTOR = types.float64[::1]
ADD = types.float64(VECTOR, types.int64, VECTOR)


def compiled_add(kernel: Kernel) -> Any:  # noqa: ANN401 (a numba dispatcher)
    """Return the kernel's `add`, compiled for the one type that the loops take."""
    if (VECTOR, types.int64, VECTOR) not in kernel.add.overloads:  # type: ignore[attr-defined]
        kernel.add.compile(ADD)  # type: ignore[attr-defined]
    return kernel.add


_ADDS_OF_VALUES: dict[Any, Any] = {}


def add_of_value(value: Any) -> Callable[[FloatVector, int, FloatVector], float]:  # noqa: ANN401
    """Return an `add` whose state is the coalition and which evaluates it as a whole."""
    if value not in _ADDS_OF_VALUES:

        @njit
        def add(state: Any, player: Any, parameters: Any) -> Any:  # noqa: ANN401
            state[player] = 1.0
            return value(state, parameters)

        _ADDS_OF_VALUES[value] = add
    return _ADDS_OF_VALUES[value]  # type: ignore[no-any-return]


@njit(
    VECTOR(types.FunctionType(ADD), VECTOR, VECTOR, types.float64, types.int64, VECTOR), cache=True
)
def membership_sums_of_kernel(
    add: Any,  # noqa: ANN401
    start: Any,  # noqa: ANN401
    parameters: Any,  # noqa: ANN401
    empty: float,
    n: int,
    weights: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Return the same sums for a compiled game, and v(N) at the end; no table is stored.

    Masks are visited in ascending order. ``states[d]`` is the coalition of the d highest bits of
    the mask, so each mask costs one copied state and one `add`: of its lowest bit, to the
    coalition of all the higher ones.
    """
    n_low = min(n, BLOCK_BITS)
    size = 1 << n_low
    rows = weight_rows(n, n_low, weights)
    low, room = np.zeros(size), np.empty(size)
    high = np.empty(1 << (n - n_low))
    block = np.empty(size)
    depth_of = np.zeros(size, np.int64)
    lowest_of = np.zeros(size, np.int64)
    for s in range(1, size):
        depth_of[s] = depth_of[s >> 1] + (s & 1)
        lowest_of[s] = 0 if s & 1 else lowest_of[s >> 1] + 1
    states = np.empty((n + 1, len(start)))
    states[0] = start
    state = start.copy()
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


@njit(cache=True)
def _mixed(state: Any) -> Any:  # noqa: ANN401
    """Return the next 64 random bits of SplitMix64 [Steele2014]_."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True)
def _shuffle(order: Any, random: Any) -> None:  # noqa: ANN401
    """Shuffle `order`; 32 random bits a step, whose bias of n/2^32 is far below any error."""
    half = np.uint64(32)
    mask = np.uint64(0xFFFFFFFF)
    i = len(order) - 1
    while i > 0:
        bits = _mixed(random)
        j = np.int64(((bits >> half) * np.uint64(i + 1)) >> half)
        order[i], order[j] = order[j], order[i]
        i -= 1
        if i > 0:
            j = np.int64(((bits & mask) * np.uint64(i + 1)) >> half)
            order[i], order[j] = order[j], order[i]
            i -= 1


@njit(cache=True)
def _distinct(keys: Any, slots: Any) -> int:  # noqa: ANN401
    """Return the number of different non-zero keys; `slots` is a power of two and zeroed here."""
    slots[:] = 0
    mask = len(slots) - 1
    count = 0
    for k in range(len(keys)):
        place = np.int64(keys[k] & np.uint64(mask))
        while slots[place] != 0 and slots[place] != keys[k]:
            place = (place + 1) & mask
        if slots[place] == 0:
            slots[place] = keys[k]
            count += 1
    return count


@njit(cache=True)
def _repeating_sizes(n: int, n_paths: int) -> int:
    """Return up to which size s (and from n−s on) paths are at all likely to meet again.

    Of R random coalitions of one size, two are equal with probability at most R²/C(n, s).
    """
    n_subsets = 1.0
    for s in range(1, n // 2 + 1):
        n_subsets *= (n - s + 1) / s
        if n_subsets > 1e12 * n_paths * n_paths:
            return s - 1
    return n // 2


@njit(
    types.Tuple((VECTOR, VECTOR, types.int64))(
        types.FunctionType(ADD),
        VECTOR,
        VECTOR,
        types.float64,
        types.int64,
        types.int64,
        types.boolean,
        types.uint64,
    ),
    cache=True,
)
def path_moments(
    add: Any,  # noqa: ANN401
    start: Any,  # noqa: ANN401
    parameters: Any,  # noqa: ANN401
    empty: float,
    n: int,
    n_units: int,
    antithetic: bool,
    seed: int,
) -> Any:  # noqa: ANN401
    """Return mean and squared deviations of each player's marginals, and the distinct prefixes.

    A unit is a random permutation, or a permutation and its reverse if `antithetic`; the squared
    deviations are those of the units' means. A coalition is known by the exclusive or of its
    players' random 64-bit words. Only sizes at which paths may meet are compared; taking two
    coalitions for one or one for two has a chance below 1e-9.
    """
    random = np.array([seed], np.uint64)
    words = np.empty(n, np.uint64)
    for i in range(n):
        words[i] = _mixed(random)
    order = np.arange(n)
    state = np.empty(len(start))
    first = np.zeros(n)
    unit = np.empty(n)
    sums = np.zeros(n)
    squares = np.zeros(n)
    ways = 2 if antithetic else 1
    n_paths = n_units * ways
    border = _repeating_sizes(n, n_paths)
    # One row for each size up to the border, then one for each size from n−border on.
    keys = np.empty((min(2 * border, n - 1), n_paths), np.uint64)
    for u in range(n_units):
        _shuffle(order, random)
        for way in range(ways):
            for k in range(len(start)):
                state[k] = start[k]
            previous = empty
            key = np.uint64(0)
            for a in range(n):
                player = order[a] if way == 0 else order[n - 1 - a]
                value = add(state, player, parameters)
                if way == 0:
                    unit[player] = value - previous
                else:
                    unit[player] = (unit[player] + value - previous) / 2
                previous = value
                key ^= words[player]
                if a < border:
                    keys[a, u * ways + way] = key
                elif n - 1 - border <= a < n - 1:
                    keys[len(keys) - (n - 1 - a), u * ways + way] = key
        if u == 0:
            first[:] = unit
        for i in range(n):
            # Shifted by the first unit, so that equal marginals have a variance of exactly 0.
            shifted = unit[i] - first[i]
            sums[i] += shifted
            squares[i] += shifted * shifted
    slots = 8
    while slots < 2 * n_paths:
        slots *= 2
    table = np.empty(slots, np.uint64)
    count = 2 + (n - 1 - len(keys)) * n_paths
    for level in range(len(keys)):
        count += _distinct(keys[level], table)
    for i in range(n):
        squares[i] = max(0.0, squares[i] - sums[i] ** 2 / n_units)
        sums[i] = first[i] + sums[i] / n_units
    return sums, squares, count
