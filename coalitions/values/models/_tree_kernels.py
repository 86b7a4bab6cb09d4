"""Compiled loops: to grow, read and take apart boosted trees, and over products of their terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from coalitions.compiling import njit


@njit(cache=True)
def boosted(
    rows: Any,  # noqa: ANN401
    values: Any,  # noqa: ANN401
    n_trees: int,
    depth: int,
    rate: float,
    ridge: float,
) -> Any:  # noqa: ANN401
    """Return the player that each node asks for (−1 at leaves) and the nodes' values.

    Nodes of a tree are numbered as in a heap: the children of a are 2a+1 (out) and 2a+2 (in).
    The mean of the values is not part of the trees: a constant is nobody's merit.
    """
    m, n = rows.shape
    features = np.full((n_trees, (2 << depth) - 1), -1, np.int64)
    leaves = np.zeros((n_trees, (2 << depth) - 1))
    residual = values - values.mean()
    node = np.zeros(m, np.int64)
    sums, counts = np.zeros((1 << depth, n)), np.zeros((1 << depth, n), np.int32)
    whole, number = np.zeros(1 << depth), np.zeros(1 << depth)
    for t in range(n_trees):
        node[:] = 0
        for level in range(depth + 1):
            first = (1 << level) - 1
            whole[:] = 0.0
            number[:] = 0.0
            sums[:] = 0.0
            counts[:] = 0
            for k in range(m):
                q = node[k] - first
                if q >= 0:
                    whole[q] += residual[k]
                    number[q] += 1
                    if level < depth:
                        value = residual[k]
                        # A product in place of a question: random bits cannot be foretold.
                        for i in range(n):
                            sums[q, i] += value * rows[k, i]
                            counts[q, i] += rows[k, i]
            for q in range(1 << level):
                if number[q] == 0:
                    continue
                leaves[t, first + q] = rate * whole[q] / (number[q] + ridge)
                if level == depth:
                    continue
                least = whole[q] ** 2 / (number[q] + ridge)
                best = least * (1 + 1e-9) + 1e-14
                for i in range(n):
                    other = number[q] - counts[q, i]
                    if counts[q, i] == 0 or other == 0:
                        continue
                    gain = sums[q, i] ** 2 / (counts[q, i] + ridge)
                    gain += (whole[q] - sums[q, i]) ** 2 / (other + ridge)
                    # Ties go to the first player, also if rounding tells them apart.
                    if gain > best * (1 + 1e-9):
                        best = gain
                        features[t, first + q] = i
            if level < depth:
                for k in range(m):
                    if node[k] >= first:
                        player = features[t, node[k]]
                        if player >= 0:
                            node[k] = 2 * node[k] + 1 + rows[k, player]
        for k in range(m):
            residual[k] -= leaves[t, node[k]]
    return features, leaves


@njit(cache=True)
def predicted(features: Any, leaves: Any, rows: Any) -> Any:  # noqa: ANN401
    """Return the sum of the trees at some coalitions."""
    total = np.zeros(len(rows))
    for t in range(len(features)):
        for k in range(len(rows)):
            node = 0
            while features[t, node] >= 0:
                node = 2 * node + 1 + rows[k, features[t, node]]
            total[k] += leaves[t, node]
    return total


@njit(cache=True)
def tree_values(features: Any, leaves: Any, n: int, depth: int) -> Any:  # noqa: ANN401
    """Return the Shapley values of the trees."""
    values = np.zeros(n)
    factorial = np.ones(depth + 1)
    for k in range(1, depth + 1):
        factorial[k] = factorial[k - 1] * k
    player, inside = np.zeros(depth, np.int64), np.zeros(depth, np.int64)
    for t in range(len(features)):
        for leaf in range(features.shape[1]):
            if features[t, leaf] >= 0 or leaves[t, leaf] == 0.0:
                continue
            above, length, n_in = leaf, 0, 0
            while above > 0:
                parent = (above - 1) // 2
                player[length] = features[t, parent]
                inside[length] = above - 2 * parent - 1
                n_in += inside[length]
                above, length = parent, length + 1
            n_out = length - n_in
            for k in range(length):
                if inside[k]:
                    share = factorial[n_in - 1] * factorial[n_out]
                else:
                    share = -factorial[n_in] * factorial[n_out - 1]
                values[player[k]] += leaves[t, leaf] * share / factorial[length]
    return values


@njit(cache=True)
def leaf_terms(
    features: Any,  # noqa: ANN401
    leaves: Any,  # noqa: ANN401
    words: Any,  # noqa: ANN401
    n: int,
    depth: int,
    parity: int,
    least: int,
) -> Any:  # noqa: ANN401
    """Return key, coefficient and players of each leaf's terms of odd or even degree.

    `parity` is 1 or 0, and degrees below `least` are left out.
    """
    room = 0
    for t in range(len(features)):
        for leaf in range(features.shape[1]):
            if features[t, leaf] < 0 and leaves[t, leaf] != 0.0:
                length, above = 0, leaf
                while above > 0:
                    above, length = (above - 1) // 2, length + 1
                room += max(1, (1 << length) >> 1)
    keys = np.zeros(room, np.uint64)
    sizes = np.zeros(room)
    players = np.full((room, depth), n, np.int64)
    player, side = np.zeros(depth, np.int64), np.zeros(depth)
    at = 0
    for t in range(len(features)):
        for leaf in range(features.shape[1]):
            if features[t, leaf] >= 0 or leaves[t, leaf] == 0.0:
                continue
            length, above = 0, leaf
            while above > 0:
                parent = (above - 1) // 2
                player[length] = features[t, parent]
                side[length] = 1.0 if above == 2 * parent + 2 else -1.0
                above, length = parent, length + 1
            for subset in range(1 << length):
                degree, key, size = 0, np.uint64(0), leaves[t, leaf] / (1 << length)
                for k in range(length):
                    if subset >> k & 1:
                        degree += 1
                        key ^= words[player[k]]
                        size *= side[k]
                if degree % 2 != parity or degree < least:
                    continue
                keys[at], sizes[at] = key, size
                place = 0
                for k in range(length):
                    if subset >> k & 1:
                        players[at, place] = player[k]
                        place += 1
                at += 1
    return keys[:at], sizes[:at], players[:at]


@njit(cache=True)
def sums_of_products(bits: Any, weights: Any, whole: float) -> Any:  # noqa: ANN401
    """Return the weighted sums of the products of any two terms [k, k].

    A bit is where a term is −1, 64 pairs of one weight in a word [words, k]. Two terms have the
    product −1 where their bits differ, so the sum is the whole weight less twice that of these.
    """
    n_words, k = bits.shape
    sums = np.empty((k, k))
    differ = np.empty(k)
    for a in range(k):
        differ[: a + 1] = 0.0
        for word in range(n_words):
            mine, weight = bits[word, a], weights[word]
            for b in range(a + 1):
                # The number of bits, in twos, fours and bytes that are added side by side.
                x = mine ^ bits[word, b]
                x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
                x = (x & np.uint64(0x3333333333333333)) + (
                    (x >> np.uint64(2)) & np.uint64(0x3333333333333333)
                )
                x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
                differ[b] += weight * np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))
        for b in range(a + 1):
            sums[a, b] = sums[b, a] = whole - 2 * differ[b]
    return sums
