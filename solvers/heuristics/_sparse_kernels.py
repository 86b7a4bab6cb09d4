"""Kernels for local search on a list of edges, without a matrix.

A graph is kept by its rows: player p has the neighbours ``neighbours[first[p]:first[p + 1]]`` with
the same range of ``weights``. Pairs without an edge are worth nothing. The gain of a move is summed
over the neighbours of one player, so the work grows with the edges and never with n².
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coalitions.compiling import njit
from coalitions.game import FloatVector, IntVector
from solvers.heuristics.random_numbers import RandomState, below, shuffle, uniform


class Rows(NamedTuple):
    """A symmetric graph by rows: every edge stands in the rows of both its ends."""

    first: IntVector
    neighbours: IntVector
    weights: FloatVector


def rows_of(n_players: int, i: IntVector, j: IntVector, weight: FloatVector) -> Rows:
    """Return the rows of a graph given by its edges, neighbours in ascending order."""
    tail, head = np.concatenate([i, j]), np.concatenate([j, i])
    order = np.lexsort((head, tail))
    first = np.zeros(n_players + 1, np.int64)
    np.cumsum(np.bincount(tail, minlength=n_players), out=first[1:])
    return Rows(first, head[order], np.concatenate([weight, weight])[order])


def edges_of(rows: Rows) -> tuple[IntVector, IntVector, FloatVector]:
    """Return the edges of a graph, each once, with i < j."""
    tail = np.repeat(np.arange(len(rows.first) - 1), np.diff(rows.first))
    once = tail < rows.neighbours
    return tail[once], rows.neighbours[once], rows.weights[once]


def rounding_threshold(rows: Rows) -> float:
    """Return a gain that rounding cannot feign: 1e-12 of the largest sum of |weights| in a row."""
    tail = np.repeat(np.arange(len(rows.first) - 1), np.diff(rows.first))
    sums = np.bincount(tail, np.abs(rows.weights), minlength=1)
    return 1e-12 * float(sums.max())


def contracted(rows: Rows, labels: IntVector) -> Rows:
    """Return the graph between the blocks of a partition labelled 0 … k−1."""
    n_blocks = int(labels.max()) + 1
    tail = np.repeat(labels, np.diff(rows.first))
    head = labels[rows.neighbours]
    between = tail < head
    pair = tail[between] * n_blocks + head[between]
    order = np.argsort(pair, kind="stable")
    pair = pair[order]
    start = np.flatnonzero(np.diff(pair, prepend=-1))
    if not len(start):
        nothing = np.zeros(0, np.int64)
        return rows_of(n_blocks, nothing, nothing, np.zeros(0))
    weight = np.add.reduceat(rows.weights[between][order], start)
    return rows_of(n_blocks, pair[start] // n_blocks, pair[start] % n_blocks, weight)


@njit(cache=True)
def value_of(rows: Rows, labels: IntVector) -> float:
    """Return the value of a partition."""
    total = 0.0
    for p in range(len(labels)):
        for at in range(rows.first[p], rows.first[p + 1]):
            if labels[rows.neighbours[at]] == labels[p]:
                total += rows.weights[at]
    return total / 2.0


@njit(cache=True)
def renumber(labels: IntVector) -> int:
    """Give the blocks the numbers 0 … k−1 in the order of their first players; return k.

    Labels must lie in 0 … n−1.
    """
    number = np.full(len(labels), -1, np.int64)
    blocks = 0
    for p in range(len(labels)):
        if number[labels[p]] < 0:
            number[labels[p]] = blocks
            blocks += 1
        labels[p] = number[labels[p]]
    return blocks


@njit(cache=True)
def relocate(
    rows: Rows, labels: IntVector, threshold: float, patience: int, state: RandomState
) -> tuple[float, int]:
    """Let players go to their best block until none wants to; return (gain, players asked).

    A player is asked again only after a neighbour has moved [Traag2019]_. `patience` limits how
    many are asked; `labels`, in 0 … n−1, are changed in place.
    """
    n = len(labels)
    sizes = np.zeros(n, np.int64)
    for p in range(n):
        sizes[labels[p]] += 1
    # A stack of empty blocks: who wants to be alone takes the one on top.
    empty = np.flatnonzero(sizes == 0)
    n_empty = len(empty)
    spare = np.empty(n, np.int64)
    spare[:n_empty] = empty
    # A ring of those who are to be asked, each at most once at a time.
    queue = np.arange(n)
    shuffle(state, queue)
    queued = np.ones(n, np.bool_)
    pull = np.zeros(n)
    seen = np.empty(n, np.int64)
    head, waiting, asked, total = 0, n, 0, 0.0
    while waiting > 0 and asked < patience:
        p = queue[head]
        head = head + 1 if head + 1 < n else 0
        waiting -= 1
        queued[p] = False
        asked += 1
        # What p has with each block of its neighbours; only these cells of `pull` are not zero.
        own = labels[p]
        n_seen = 0
        for at in range(rows.first[p], rows.first[p + 1]):
            c = labels[rows.neighbours[at]]
            if pull[c] == 0.0:
                seen[n_seen] = c
                n_seen += 1
            pull[c] += rows.weights[at]
            if pull[c] == 0.0:
                pull[c] = 1e-300  # cancelled to nothing, but seen: it must not be listed twice
        # The best of: another neighbour's block, being alone, staying.
        stay = pull[own]
        target, gain = -1, threshold
        for k in range(n_seen):
            c = seen[k]
            if c != own and pull[c] - stay > gain:
                target, gain = c, pull[c] - stay
        if -stay > gain and sizes[own] > 1:
            target, gain = spare[n_empty - 1], -stay
        for k in range(n_seen):
            pull[seen[k]] = 0.0
        if target < 0:
            continue
        if sizes[target] == 0:
            n_empty -= 1
        labels[p] = target
        sizes[target] += 1
        sizes[own] -= 1
        if sizes[own] == 0:
            spare[n_empty] = own
            n_empty += 1
        total += gain
        for at in range(rows.first[p], rows.first[p + 1]):
            q = rows.neighbours[at]
            if not queued[q]:  # its new partners too: a negative weight may drive them out
                queued[q] = True
                tail = head + waiting
                queue[tail if tail < n else tail - n] = q
                waiting += 1
    return total, asked


class Annealing(NamedTuple):
    """A partition under change: labels, sizes of the blocks, a stack of unused labels, value."""

    labels: IntVector
    sizes: IntVector
    spare: IntVector
    n_spare: IntVector
    value: FloatVector


def annealing(rows: Rows, labels: IntVector) -> Annealing:
    """Return the state of an annealing that starts from `labels`, in 0 … n−1."""
    n = len(labels)
    sizes = np.bincount(labels, minlength=n)
    empty = np.flatnonzero(sizes == 0)
    spare = np.zeros(n, np.int64)
    spare[: len(empty)] = empty
    value = np.array([value_of(rows, labels)])
    return Annealing(labels.copy(), sizes, spare, np.array([len(empty)]), value)


@njit(cache=True)
def anneal(
    rows: Rows,
    now: Annealing,
    temperature: float,
    proposals: int,
    limit: int,
    state: RandomState,
) -> int:
    """Make Metropolis moves at one temperature; return how many were accepted.

    A proposal is a random player and the block of a random neighbour, or now and then an empty one.
    """
    n = len(now.labels)
    labels, sizes, spare = now.labels, now.sizes, now.spare
    accepted = 0
    for _ in range(proposals):
        p = below(state, n)
        start, degree = rows.first[p], rows.first[p + 1] - rows.first[p]
        own = labels[p]
        pick = below(state, degree + 1)
        if pick == degree:
            if sizes[own] == 1 or n - now.n_spare[0] >= limit:
                continue
            target = spare[now.n_spare[0] - 1]
        else:
            target = labels[rows.neighbours[start + pick]]
            if target == own:
                continue
        change = 0.0
        for at in range(start, start + degree):
            c = labels[rows.neighbours[at]]
            if c == own:
                change -= rows.weights[at]
            elif c == target:
                change += rows.weights[at]
        if change < 0.0 and uniform(state) >= np.exp(change / temperature):
            continue
        if sizes[target] == 0:
            now.n_spare[0] -= 1
        labels[p] = target
        sizes[target] += 1
        sizes[own] -= 1
        if sizes[own] == 0:
            spare[now.n_spare[0]] = own
            now.n_spare[0] += 1
        now.value[0] += change
        accepted += 1
    return accepted
