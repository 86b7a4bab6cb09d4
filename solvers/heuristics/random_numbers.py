"""Random numbers inside kernels: a xorshift generator whose state the caller owns.

A kernel draws from a one-element array it is given, so a run depends on its seed alone: not on a
global generator, not on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalitions.compiling import njit
from solvers.solver import RandomState, random_state

__all__ = ["RandomState", "below", "draw", "random_state", "shuffle", "two_below", "uniform"]


@njit(cache=True)
def draw(state: RandomState) -> Any:  # noqa: ANN401 (64 bits, unsigned)
    """Return the next 64 bits [Marsaglia2003]_."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return x


@njit(cache=True)
def below(state: RandomState, limit: int) -> Any:  # noqa: ANN401 (int64 or int, as compiled)
    """Return a whole number from 0 to `limit` − 1, for limits under 2³²."""
    return np.int64(((draw(state) >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))


@njit(cache=True)
def two_below(state: RandomState, one: int, other: int) -> Any:  # noqa: ANN401 (a pair of int64)
    """Return two whole numbers below two limits under 2³², from one draw."""
    bits = draw(state)
    high, low = bits >> np.uint64(32), bits & np.uint64(0xFFFFFFFF)
    return (
        np.int64((high * np.uint64(one)) >> np.uint64(32)),
        np.int64((low * np.uint64(other)) >> np.uint64(32)),
    )


@njit(cache=True)
def uniform(state: RandomState) -> float:
    """Return a number from [0, 1)."""
    return np.float64(draw(state) >> np.uint64(11)) * 2.0**-53


@njit(cache=True)
def shuffle(state: RandomState, items: NDArray[np.int64]) -> None:
    """Put the items in random order."""
    for last in range(len(items) - 1, 0, -1):
        other = below(state, last + 1)
        items[last], items[other] = items[other], items[last]
