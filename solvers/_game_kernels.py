"""Kernels for the best coalition structure of a table of 2^n integers, player i = bit i."""

from __future__ import annotations

import numpy as np

from coalitions.compiling import njit
from coalitions.game import IntMatrix, IntVector

NONE = np.int64(2**62)
"""More than any slack: there is no structure of these players yet."""

NOT_ALLOWED = np.int64(2**61)
"""The slack of a coalition that may not be formed; above all others, and `NONE` can be added."""


@njit(cache=True)
def best_shares(values: IntVector, n: int) -> IntVector:
    """Return for each player i the maximum of v(C) / |C| over its coalitions, rounded up.

    With these prices p(C) ≥ v(C): each member pays at least its share.
    """
    shares = np.full(n, -NONE)
    for c in range(1, len(values)):
        size = 0
        for i in range(n):
            size += c >> i & 1
        share = -(-values[c] // size)
        for i in range(n):
            if c >> i & 1 and share > shares[i]:
                shares[i] = share
    return shares


@njit(cache=True)
def to_slack(values: IntVector, prices: IntVector) -> None:
    """Turn v(C) into p(C) − v(C), in place, where p(C) is the sum of the prices of C's players."""
    values[0] = 0
    for c in range(1, len(values)):
        total = np.int64(0)
        for i in range(len(prices)):
            if c >> i & 1:
                total += prices[i]
        values[c] = total - values[c]


@njit(cache=True)
def lower_price(slack: IntVector, prices: IntVector, player: int) -> None:
    """Lower a player's price as far as p(C) ≥ v(C) allows; `slack` follows."""
    bit = np.int64(1) << player
    room = NONE
    for c in range(bit, len(slack)):
        if c & bit and slack[c] < room:
            room = slack[c]
    prices[player] -= room
    for c in range(bit, len(slack)):
        if c & bit:
            slack[c] -= room


@njit(cache=True)
def greedy_blocks(slack: IntVector, n: int, first: int) -> IntVector:
    """Return a structure: from player `first` on, the block of least slack among those left."""
    blocks = np.zeros(n, np.int64)
    left = (np.int64(1) << n) - 1
    count = 0
    while left:
        lead = first % n
        while not left >> lead & 1:
            lead = (lead + 1) % n
        bit = np.int64(1) << lead
        rest = left ^ bit
        chosen, least = bit, slack[bit]
        part = rest
        while part:
            if slack[part | bit] < least:
                chosen, least = part | bit, slack[part | bit]
            part = (part - 1) & rest
        blocks[count] = chosen
        count += 1
        left ^= chosen
    return blocks[:count]


@njit(cache=True)
def extend(
    slack: IntVector,
    budget: int,
    n: int,
    best: IntVector,
    lead: int,
    first: int,
    last: int,
) -> int:
    r"""Extend the table of least slacks by blocks whose first player is `lead`.

    ``best[T >> 1]`` is the least slack of a structure of T, for T without player 0; on entry it is
    complete for all T of players above `lead`. For each block C that can be part of a structure
    within the budget and that no structure of C undercuts,

    .. math:: f(C \cup T) = \min\{f(C \cup T),\ s(C) + f(T)\}
        \quad \text{for all } T \subseteq \{\text{lead} + 1, \ldots, n - 1\} \setminus C.

    Blocks number `first` to `last` − 1 are done, in ascending order, so that a block comes after
    all its parts. Returns how many of them were extended.
    """
    bit = np.int64(1) << lead
    everybody = (np.int64(1) << n) - 1
    above = everybody & ~(2 * bit - 1)
    used = 0
    for number in range(first, last):
        block = (np.int64(number) << (lead + 1)) | bit
        own = slack[block]
        if own > budget or own >= best[block >> 1]:
            continue
        used += 1
        best[block >> 1] = own
        free = above & ~block
        rest = free
        while rest:
            total = own + best[rest >> 1]
            at = (block | rest) >> 1
            if total < best[at]:
                best[at] = total
            rest = (rest - 1) & free
    return used


@njit(cache=True)
def first_block(slack: IntVector, best: IntVector, left: int) -> int:
    """Return the block of the first player of `left` in its structure of least slack."""
    bit = left & -left
    rest = left ^ bit
    chosen, least = left, slack[left]
    part = rest
    while part:
        total = slack[left ^ part] + best[part >> 1]
        if total < least:
            chosen, least = left ^ part, total
        part = (part - 1) & rest
    return chosen


@njit(cache=True)
def extend_counted(
    slack: IntVector, budget: int, n: int, best: IntMatrix, lead: int, first: int, last: int
) -> int:
    r"""Extend the tables of least slacks by number of blocks: ``best[k, T >> 1]`` is for k blocks.

    As `extend`, but a block that a structure of its players undercuts is not left out: that
    structure has another number of blocks.
    """
    bit = np.int64(1) << lead
    everybody = (np.int64(1) << n) - 1
    above = everybody & ~(2 * bit - 1)
    most = len(best) - 1
    used = 0
    for number in range(first, last):
        block = (np.int64(number) << (lead + 1)) | bit
        own = slack[block]
        if own > budget:
            continue
        used += 1
        best[1, block >> 1] = min(best[1, block >> 1], own)
        free = above & ~block
        rest = free
        while rest:
            for k in range(1, most):
                total = own + best[k, rest >> 1]
                if total < best[k + 1, (block | rest) >> 1]:
                    best[k + 1, (block | rest) >> 1] = total
            rest = (rest - 1) & free
    return used


@njit(cache=True)
def first_block_counted(slack: IntVector, best: IntMatrix, left: int, k: int) -> tuple[int, int]:
    """Return the block of the first player of `left` in its best structure of k blocks.

    And the slack of that structure; it is `NONE` or more if there is none.
    """
    bit = left & -left
    rest = left ^ bit
    chosen = left
    least = slack[left] if k == 1 else 2 * NONE - 1
    part = rest
    while part and k > 1:
        total = slack[left ^ part] + best[k - 1, part >> 1]
        if total < least:
            chosen, least = left ^ part, total
        part = (part - 1) & rest
    return int(chosen), int(least)
