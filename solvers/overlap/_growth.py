"""Coalitions by depth-first search with a bound: the compiled loop behind `listed`."""

from __future__ import annotations

import numpy as np

from coalitions.compiling.kernel import njit


@njit(cache=True)
def grow(pairs, prices, least, most_members, most, work, only_best):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Grow coalitions by players in ascending order, depth first.

    With members C and candidates R, nothing grown from here is worth more than f(C) plus, for the
    best candidates there is room for, what each gains from C and half of what it could gain from
    the others in R.
    """
    n = len(prices)
    # half[k, j]: half of what j could gain from the players from k on, rounded up.
    half = np.zeros((n + 1, n), np.int64)
    for j in range(n):
        total = np.int64(0)
        for k in range(n - 1, -1, -1):
            if k != j and pairs[k, j] > 0:
                total += pairs[k, j]
            half[k, j] = (total + 1) // 2
    masks = np.empty(most, np.int64)
    worths = np.empty(most, np.int64)
    found = 0
    gains = np.empty((n + 1, n), np.int64)  # what each player would add, by depth
    for j in range(n):
        gains[0, j] = -prices[j]
    chosen = np.empty(n + 1, np.int64)
    upcoming = np.zeros(n + 1, np.int64)  # the next candidate, by depth
    worth = np.zeros(n + 1, np.int64)
    bits = np.zeros(n + 1, np.int64)
    hopes = np.empty(n, np.int64)
    depth, steps, listed_all = 0, 0, True
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
        steps += 1
        if steps > work:
            return masks[:found], worths[:found], False, False
        upcoming[depth] += 1
        chosen[depth] = player
        worth[depth + 1] = worth[depth] + gains[depth, player]
        bits[depth + 1] = bits[depth] | (np.int64(1) << player)
        for j in range(player + 1, n):
            gains[depth + 1, j] = gains[depth, j] + pairs[player, j]
        upcoming[depth + 1] = player + 1
        depth += 1
        if depth >= 2 and worth[depth] >= least:
            if found == most:
                if not only_best:
                    return masks[:found], worths[:found], False, False
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
                    return masks[:found], worths[:found], False, False
                found, listed_all = kept, False
                if worth[depth] < least:
                    continue
            masks[found], worths[found] = bits[depth], worth[depth]
            found += 1
    return masks[:found], worths[:found], True, listed_all
