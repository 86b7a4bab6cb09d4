"""Coalitions by depth-first search with a bound: the compiled loop behind `listed`."""

from __future__ import annotations

from typing import Any

import numpy as np

from coalitions.compiling import njit

DEPTH, FOUND, LEAST, ALL = range(4)
"""Places in the state of a search: the depth (−1 at its end), coalitions found, what one must be
worth, and whether all that were worth enough are there."""

STATE = 4


def room_for(n_players: int) -> tuple[Any, ...]:
    """Return room for a search.

    By depth what each player would add, and for each k half of what a player could gain from those
    from k on [n + 1, n]; by depth the next candidate, the worth and the bits [n + 1].
    """
    tables = (np.zeros((n_players + 1, n_players), np.int64) for _ in range(2))
    return (*tables, *(np.zeros(n_players + 1, np.int64) for _ in range(3)))


@njit(cache=True)
def begin(pairs, prices, gains, half):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Fill the first row of `gains`, and all of `half`."""
    n = len(prices)
    for j in range(n):
        gains[0, j] = -prices[j]
        total = np.int64(0)
        for k in range(n - 1, -1, -1):
            if k != j and pairs[k, j] > 0:
                total += pairs[k, j]
            half[k, j] = (total + 1) // 2


@njit(cache=True)
def grow(  # type: ignore[no-untyped-def]  # noqa: ANN202
    pairs,  # noqa: ANN001
    most_members,  # noqa: ANN001
    only_best,  # noqa: ANN001
    work,  # noqa: ANN001
    state,  # noqa: ANN001
    masks,  # noqa: ANN001
    worths,  # noqa: ANN001
    gains,  # noqa: ANN001
    half,  # noqa: ANN001
    upcoming,  # noqa: ANN001
    worth,  # noqa: ANN001
    bits,  # noqa: ANN001
):
    """Grow coalitions by players in ascending order, depth first, for so many steps.

    With members C and candidates R, nothing grown from here is worth more than f(C) plus, for the
    best candidates there is room for, what each gains from C and half of what it could gain from
    the others in R. Returns whether there is more to do; where `masks` is full, there is not.
    """
    n = len(pairs)
    most = len(masks)
    depth, found, least = state[DEPTH], state[FOUND], state[LEAST]
    hopes = np.empty(n, np.int64)
    steps = 0
    while depth >= 0:
        player = upcoming[depth]
        stop = player >= n or depth >= most_members
        if not stop:
            # Is anything left that starts with this player or a later one worth the while?
            room = most_members - depth
            count = 0
            for j in range(player, n):
                hope = gains[depth, j] + half[player, j]
                if hope > 0:
                    hopes[count] = hope
                    count += 1
            bound = worth[depth]
            for k in range(count):
                bound += hopes[k]
            # Only the best have room; as soon as the bound is too low, nobody need be taken off.
            while count > room and bound >= least:
                lowest = 0
                for k in range(1, count):
                    if hopes[k] < hopes[lowest]:
                        lowest = k
                bound -= hopes[lowest]
                count -= 1
                hopes[lowest] = hopes[count]
            stop = bound < least
        if stop:
            depth -= 1
            continue
        if steps == work:
            break
        steps += 1
        upcoming[depth] += 1
        worth[depth + 1] = worth[depth] + gains[depth, player]
        bits[depth + 1] = bits[depth] | (np.int64(1) << player)
        for j in range(player + 1, n):
            gains[depth + 1, j] = gains[depth, j] + pairs[player, j]
        upcoming[depth + 1] = player + 1
        depth += 1
        if depth >= 2 and worth[depth] >= least:
            if found == most:
                if not only_best:
                    state[ALL] = 0
                    return False
                # Those above the mean stay, and from now on nothing less is looked for.
                mean = 0.0
                for k in range(found):
                    mean += worths[k] / found
                least = np.int64(mean) + np.int64(1)
                kept = 0
                for k in range(found):
                    if worths[k] >= least:
                        masks[kept], worths[kept] = masks[k], worths[k]
                        kept += 1
                if not kept:  # all are worth the same, which is enough of them
                    state[ALL] = 0
                    return False
                found, state[ALL] = kept, 0
                if worth[depth] < least:
                    continue
            masks[found], worths[found] = bits[depth], worth[depth]
            found += 1
            state[FOUND] = found
    state[DEPTH], state[FOUND], state[LEAST] = depth, found, least
    return depth >= 0
