"""Kernels of the multilevel search: moves on one level, refinement, contraction, annealing.

A level is a graph by rows, as in `_sparse_kernels`, but with numbers of 32 bits, which halves what
comes from memory. A node of a coarse level is a group of players. All levels have the same types,
so every kernel is compiled once. Loops stand where numba has array helpers of its own, since those
take longer to compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coalitions.compiling import njit
from coalitions.game import BoolVector, FloatMatrix, FloatVector, IntVector
from coalitions.graph import Edges
from solvers.heuristics.random_numbers import RandomState, below, draw, uniform

ShortVector = NDArray[np.int32]

HEAD, WAITING, SPARES = 0, 1, 2
"""Columns of `Partition.counters`: start and length of the queue, and how many labels are spare."""

SEEN = 1e-300
"""Stands for a pull of 0 of a block that was seen: it must not be listed twice."""

IMPOSSIBLE = -16.0
"""A loss of so many temperatures is accepted once in nine million times: not worth an exponential.
"""

WINDOW = 1024
"""Nodes that are shuffled among each other: random enough, and their rows stay in the cache."""


class Level(NamedTuple):
    """A symmetric graph by rows: node p has ``neighbours[first[p]:first[p + 1]]``."""

    first: IntVector
    neighbours: ShortVector
    weights: FloatVector


class Partition(NamedTuple):
    """A partition of the nodes of a level under change, and the scratch that kernels share."""

    labels: ShortVector
    sizes: ShortVector  # nodes in the block of that label
    pull: FloatVector  # of a block on the node at hand; all zero between two calls
    seen: ShortVector  # blocks next to the node at hand
    queue: ShortVector  # a ring of nodes that may want to move
    queued: BoolVector  # whether a node is in it
    spare: ShortVector  # a stack of all labels that no node has
    counters: IntVector


def level_of(n_players: int, edges: Edges) -> Level:
    """Return the finest level: every node is a player. Edges are i < j, in lexicographic order."""
    i, j, weight = edges
    degree = np.bincount(i, minlength=n_players) + np.bincount(j, minlength=n_players)
    first = np.zeros(n_players + 1, np.int64)
    np.cumsum(degree, out=first[1:])
    neighbours, weights = np.empty(2 * len(i), np.int32), np.empty(2 * len(i))
    _fill_rows(first[:-1].copy(), i, j, weight, neighbours, weights)
    return Level(first, neighbours, weights)


@njit(cache=True)
def _fill_rows(
    free: IntVector,
    i: IntVector,
    j: IntVector,
    weight: FloatVector,
    neighbours: ShortVector,
    weights: FloatVector,
) -> None:
    """Enter every edge in the rows of both its ends; `free` is the next place of each row."""
    for e in range(len(i)):
        a, b = i[e], j[e]
        neighbours[free[a]] = b
        weights[free[a]] = weight[e]
        free[a] += 1
        neighbours[free[b]] = a
        weights[free[b]] = weight[e]
        free[b] += 1


def partition_of(labels: ShortVector) -> Partition:
    """Return the state of moves that start from `labels`, in 0 … n−1, and change them in place."""
    n = len(labels)
    partition = Partition(
        labels,
        np.zeros(n, np.int32),
        np.zeros(n),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.zeros(n, np.bool_),
        np.empty(n, np.int32),
        np.zeros(3, np.int64),
    )
    _count(partition)
    return partition


@njit(cache=True)
def _count(now: Partition) -> None:
    """Fill in the sizes and the spare labels."""
    for p in range(len(now.labels)):
        now.sizes[now.labels[p]] += 1
    for c in range(len(now.labels)):
        if now.sizes[c] == 0:
            now.spare[now.counters[SPARES]] = c
            now.counters[SPARES] += 1


@njit(cache=True)
def value_of(level: Level, labels: ShortVector) -> float:
    """Return the value of a partition, less what is inside the nodes."""
    total = 0.0
    for p in range(len(labels)):
        for at in range(level.first[p], level.first[p + 1]):
            if labels[level.neighbours[at]] == labels[p]:
                total += level.weights[at]
    return total / 2.0


@njit(cache=True)
def largest_sum(level: Level) -> float:
    """Return the largest sum of |weights| in a row."""
    largest = 0.0
    for p in range(len(level.first) - 1):
        total = 0.0
        for at in range(level.first[p], level.first[p + 1]):
            total += abs(level.weights[at])
        largest = max(largest, total)
    return largest


@njit(cache=True)
def renumber(labels: ShortVector) -> int:
    """Give the blocks the numbers 0 … k−1 in the order of their first nodes; return k."""
    number = np.empty(len(labels), np.int32)
    for c in range(len(labels)):
        number[c] = -1
    blocks = 0
    for p in range(len(labels)):
        c = labels[p]
        if number[c] < 0:
            number[c] = blocks
            blocks += 1
        labels[p] = number[c]
    return blocks


# ----------------------------------------------------------------------------------------
# Moves


@njit(cache=True)
def queue_all(now: Partition, state: RandomState) -> None:
    """Queue every node, in an order that is random within windows."""
    n = len(now.queue)
    for p in range(n):
        now.queue[p] = p
        now.queued[p] = True
    for low in range(0, n, WINDOW):
        for last in range(min(low + WINDOW, n) - 1, low, -1):
            other = low + below(state, last - low + 1)
            now.queue[last], now.queue[other] = now.queue[other], now.queue[last]
    now.counters[HEAD] = 0
    now.counters[WAITING] = n


@njit(cache=True)
def _go(now: Partition, p: int, target: int) -> None:
    """Put a node into another block; a target of −1 is a block of its own."""
    if target < 0:
        now.counters[SPARES] -= 1
        target = now.spare[now.counters[SPARES]]
    own = now.labels[p]
    now.labels[p] = target
    now.sizes[target] += 1
    now.sizes[own] -= 1
    if now.sizes[own] == 0:
        now.spare[now.counters[SPARES]] = own
        now.counters[SPARES] += 1


@njit(cache=True)
def move(level: Level, now: Partition, threshold: float, patience: int) -> bool:
    """Let queued nodes go to their best blocks; return whether none wants to move any more.

    1. The pull of a block on a node is the sum of its edges to it; by oneself it is 0.
    2. The node goes where the pull is highest, if it gains more than `threshold`.
    3. Those who may want to follow or to evade it are queued: friends outside its new block, foes
       outside its old one [Traag2019]_.

    Ends early after about `patience` edges were looked at.
    """
    first, neighbours, weights = level
    labels, sizes, pull, seen = now.labels, now.sizes, now.pull, now.seen
    queue, queued, n = now.queue, now.queued, len(now.labels)
    head, waiting, looked = now.counters[HEAD], now.counters[WAITING], 0
    while waiting > 0 and looked < patience:
        p = queue[head]
        head = head + 1 if head + 1 < n else 0
        waiting -= 1
        queued[p] = False
        own, low, high = labels[p], first[p], first[p + 1]
        looked += high - low + 1
        n_seen = 0
        for at in range(low, high):
            c = labels[neighbours[at]]
            sum_so_far = pull[c]
            if sum_so_far == 0.0:
                seen[n_seen] = c
                n_seen += 1
            sum_so_far += weights[at]
            pull[c] = sum_so_far if sum_so_far != 0.0 else SEEN
        stay = pull[own]
        pull[own] = 0.0
        target, best = own, stay + threshold
        for k in range(n_seen):
            c = seen[k]
            if c != own and pull[c] > best:
                target, best = c, pull[c]
            pull[c] = 0.0
        if best < 0.0 and sizes[own] > 1:
            target = -1
        if target == own:
            continue
        _go(now, p, target)
        target = labels[p]
        for at in range(low, high):
            q = neighbours[at]
            if not queued[q] and labels[q] != (target if weights[at] > 0.0 else own):
                tail = head + waiting
                queue[tail if tail < n else tail - n] = q
                waiting += 1
                queued[q] = True
    now.counters[HEAD], now.counters[WAITING] = head, waiting
    finished: bool = waiting == 0
    return finished


# ----------------------------------------------------------------------------------------
# From level to level


@njit(cache=True)
def refine(
    level: Level,
    now: Partition,
    noise: float,
    threshold: float,
    groups: ShortVector,
    state: RandomState,
) -> int:
    """Write into `groups` a partition inside the blocks, numbered 0 … k−1; return k.

    A node that is still alone joins the group of its block that pulls most, or with probability
    `noise` any that pulls [Traag2019]_. Groups are tighter than blocks: two halves of a block that
    should part become two nodes of the next level.
    """
    first, neighbours, weights = level
    n = len(groups)
    members = np.empty(n, np.int32)
    for p in range(n):
        groups[p] = p
        members[p] = 1
    queue_all(now, state)
    now.counters[WAITING] = 0
    for turn in range(n):
        p = now.queue[turn]
        now.queued[p] = False
        if members[groups[p]] > 1:
            continue
        n_seen = 0
        for at in range(first[p], first[p + 1]):
            if now.labels[neighbours[at]] == now.labels[p]:
                c = groups[neighbours[at]]
                if now.pull[c] == 0.0:
                    now.seen[n_seen] = c
                    n_seen += 1
                now.pull[c] += weights[at]
                if now.pull[c] == 0.0:
                    now.pull[c] = SEEN
        any_will_do = noise > 0.0 and uniform(state) < noise
        target, best, candidates = -1, threshold, 0
        for k in range(n_seen):
            c = now.seen[k]
            pull = now.pull[c]
            now.pull[c] = 0.0
            if pull <= threshold:
                continue
            candidates += 1
            if (below(state, candidates) == 0) if any_will_do else (pull > best):
                target, best = c, pull
        if target >= 0:
            members[groups[p]] = 0
            members[target] += 1
            groups[p] = target
    n_groups: int = renumber(groups)
    return n_groups


@njit(cache=True)
def overlay(one: ShortVector, other: ShortVector, groups: ShortVector) -> int:
    """Write into `groups` who is together in both partitions, numbered 0 … k−1; return k.

    Labels lie in 0 … n−1.
    """
    n = len(one)
    order, _ = _by_group(one, n)
    number, owner = np.empty(n, np.int32), np.empty(n, np.int32)
    for c in range(n):
        owner[c] = -1
    blocks = 0
    for k in range(n):
        p = order[k]
        c = other[p]
        if owner[c] != one[p]:  # the first of this pair of blocks
            owner[c] = one[p]
            number[c] = blocks
            blocks += 1
        groups[p] = number[c]
    return blocks


@njit(cache=True)
def _by_group(groups: ShortVector, n_groups: int) -> tuple[ShortVector, IntVector]:
    """Return the nodes in the order of their groups, and where each group begins."""
    start = np.zeros(n_groups + 1, np.int64)
    for p in range(len(groups)):
        start[groups[p] + 1] += 1
    for c in range(n_groups):
        start[c + 1] += start[c]
    order = np.empty(len(groups), np.int32)
    for p in range(len(groups) - 1, -1, -1):
        # Counting backwards from where the next group begins leaves every start in its place.
        start[groups[p] + 1] -= 1
        order[start[groups[p] + 1]] = p
    begin = np.empty(n_groups + 1, np.int64)
    for c in range(n_groups):
        begin[c] = start[c + 1]
    begin[n_groups] = len(groups)
    return order, begin


@njit(cache=True)
def contract(level: Level, groups: ShortVector, n_groups: int) -> Level:
    """Return the level whose nodes are the groups 0 … k−1; what is inside a group is dropped.

    The first pass counts the neighbours of every group, so that no more memory is taken than the
    rows need; the second one adds up.
    """
    first, neighbours, weights = level
    order, begin = _by_group(groups, n_groups)
    new_first = np.zeros(n_groups + 1, np.int64)
    place = np.empty(n_groups, np.int64)  # of a neighbour in the row at hand
    for c in range(n_groups):
        place[c] = -1
    for c in range(n_groups):
        place[c], count = c, 0
        for k in range(begin[c], begin[c + 1]):
            p = order[k]
            for at in range(first[p], first[p + 1]):
                b = groups[neighbours[at]]
                if place[b] != c:
                    place[b] = c
                    count += 1
        new_first[c + 1] = new_first[c] + count
    new_neighbours = np.empty(new_first[n_groups], np.int32)
    new_weights = np.empty(new_first[n_groups], np.float64)
    for c in range(n_groups):
        place[c] = -1
    for c in range(n_groups):
        free = new_first[c]
        for k in range(begin[c], begin[c + 1]):
            p = order[k]
            for at in range(first[p], first[p + 1]):
                b = groups[neighbours[at]]
                if b == c:
                    continue
                if place[b] < new_first[c]:
                    place[b] = free
                    new_neighbours[free] = b
                    new_weights[free] = weights[at]
                    free += 1
                else:
                    new_weights[place[b]] += weights[at]
    return Level(new_first, new_neighbours, new_weights)


# ----------------------------------------------------------------------------------------
# Annealing with few blocks


@njit(cache=True)
def pulls(level: Level, labels: ShortVector, n_blocks: int) -> FloatMatrix:
    """Return the sum of the edges of every node to every block [n, k]."""
    table = np.zeros((len(labels), n_blocks))
    for p in range(len(labels)):
        for at in range(level.first[p], level.first[p + 1]):
            table[p, labels[level.neighbours[at]]] += level.weights[at]
    return table


@njit(cache=True)
def sweep(
    level: Level, labels: ShortVector, table: FloatMatrix, temperature: float, state: RandomState
) -> None:
    """Propose to every node another block, and accept as Metropolis does at a temperature.

    A proposal is one subtraction in the table of `pulls`, and only moves look at edges: that is ten
    times as fast as to sum over neighbours, as most proposals are refused.
    """
    first, neighbours, weights = level
    n, n_blocks = table.shape
    for p in range(n):
        own, bits = labels[p], draw(state)
        target = np.int32(((bits >> np.uint64(32)) * np.uint64(n_blocks - 1)) >> np.uint64(32))
        if target >= own:
            target += 1
        change = table[p, target] - table[p, own]
        if change < 0.0:
            if change < IMPOSSIBLE * temperature:
                continue
            chance = np.float64(bits & np.uint64(0xFFFFFFFF)) * 2.0**-32
            if chance >= np.exp(change / temperature):
                continue
        labels[p] = target
        for at in range(first[p], first[p + 1]):
            table[neighbours[at], own] -= weights[at]
            table[neighbours[at], target] += weights[at]
