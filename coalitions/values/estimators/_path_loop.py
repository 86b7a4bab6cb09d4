"""The loop over random permutations of the players of a compiled game.

Importing this module loads (the first time: compiles) the loop, so it is only imported when it is
about to run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coalitions.compiling import ADD, VECTOR, njit, types


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
    for k in range(len(slots)):
        slots[k] = 0
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
        types.float64,
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
    factor: float,
) -> Any:  # noqa: ANN401
    """Return mean and squared deviations of each player's marginals, and the distinct prefixes.

    A unit is a random permutation, or a permutation and its reverse if `antithetic`; the squared
    deviations are those of the units' means. All values are multiplied by the factor. A coalition
    is known by the exclusive or of its players' random 64-bit words. Only sizes at which paths may
    meet are compared; taking two coalitions for one or one for two has a chance below 1e-9.
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
            previous = empty * factor
            key = np.uint64(0)
            for a in range(n):
                player = order[a] if way == 0 else order[n - 1 - a]
                value = add(state, player, parameters) * factor
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
            for i in range(n):
                first[i] = unit[i]
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
