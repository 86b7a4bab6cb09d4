"""Kernels that pack conflict cycles: a negative pair closed by a short path of positive pairs."""

from __future__ import annotations

import numpy as np

from coalitions.compiling import njit
from coalitions.game import IntVector


def adjacency(
    n_players: int, i: IntVector, j: IntVector, edges: IntVector
) -> tuple[IntVector, IntVector, IntVector]:
    """Return (first, neighbours, edge numbers) of some edges, neighbours in ascending order.

    Player p has the neighbours ``neighbours[first[p]:first[p + 1]]``. The edges i < j must be in
    lexicographic order: then the lower neighbours of a player come in order by themselves, and the
    higher ones after them.
    """
    tail = np.concatenate([j[edges], i[edges]])
    head = np.concatenate([i[edges], j[edges]])
    # Short integers are sorted digit by digit, five times faster.
    order = np.argsort(tail.astype(np.uint16) if n_players <= 2**16 else tail, kind="stable")
    first = np.zeros(n_players + 1, np.int64)
    np.cumsum(np.bincount(tail, minlength=n_players), out=first[1:])
    return first, head[order], np.concatenate([edges, edges])[order]


@njit(cache=True)
def pack(
    first: IntVector,
    neighbours: IntVector,
    edges: IntVector,
    i: IntVector,
    j: IntVector,
    capacity: IntVector,
    negative: IntVector,
    served: int,
    length: int,
    steps: int,
) -> tuple[int, int, int]:
    """Close the pairs ``negative[served:]`` by positive paths of `length` edges.

    Capacities are used up on the way. Stops after about `steps` edges looked at; returns (weight
    packed, pairs served, edges looked at).
    """
    n = len(first) - 1
    packed, looked = 0, 0
    reached = np.full(n, -1, np.int64)
    by_edge = np.empty(n, np.int64)
    before = np.empty(n, np.int64)
    queue = np.empty(n, np.int64)
    search = 0
    while served < len(negative) and looked < steps:
        edge = negative[served]
        served += 1
        a, b = i[edge], j[edge]
        if length == 2:
            gain, work = _triangles(first, neighbours, edges, capacity, a, b, edge)
            packed += gain
            looked += work
            continue
        while capacity[edge] > 0:
            found, work = _shortest(
                first, neighbours, edges, capacity, a, b, length, search, reached, by_edge, before,
                queue,
            )  # fmt: skip
            search += 1
            looked += 4 * work  # these jump about in memory, those of a triangle do not
            if not found:
                break
            smallest = capacity[edge]
            p = b
            while p != a:
                smallest = min(smallest, capacity[by_edge[p]])
                p = before[p]
            p = b
            while p != a:
                capacity[by_edge[p]] -= smallest
                p = before[p]
            capacity[edge] -= smallest
            packed += smallest
    return packed, served, looked


@njit(cache=True)
def _triangles(
    first: IntVector,
    neighbours: IntVector,
    edges: IntVector,
    capacity: IntVector,
    a: int,
    b: int,
    edge: int,
) -> tuple[int, int]:
    """Close the pair a, b through its common neighbours; return (weight packed, edges seen)."""
    p, q = first[a], first[b]
    packed = 0
    while p < first[a + 1] and q < first[b + 1] and capacity[edge] > 0:
        if neighbours[p] < neighbours[q]:
            p += 1
        elif neighbours[p] > neighbours[q]:
            q += 1
        else:
            share = min(capacity[edge], capacity[edges[p]], capacity[edges[q]])
            capacity[edge] -= share
            capacity[edges[p]] -= share
            capacity[edges[q]] -= share
            packed += share
            p += 1
            q += 1
    return packed, p - first[a] + q - first[b]


@njit(cache=True)
def _shortest(
    first: IntVector,
    neighbours: IntVector,
    edges: IntVector,
    capacity: IntVector,
    a: int,
    b: int,
    length: int,
    search: int,
    reached: IntVector,
    by_edge: IntVector,
    before: IntVector,
    queue: IntVector,
) -> tuple[bool, int]:
    """Look for a path from a to b of at most `length` edges with capacity, breadth first.

    `reached` holds the number of the search that last came by; `by_edge` and `before` lead back.
    """
    reached[a] = search
    queue[0] = a
    low, high, looked = 0, 1, 0
    for _ in range(length):
        end = high
        while low < end:
            p = queue[low]
            low += 1
            for at in range(first[p], first[p + 1]):
                looked += 1
                q = neighbours[at]
                if reached[q] == search or capacity[edges[at]] == 0:
                    continue
                reached[q] = search
                by_edge[q] = edges[at]
                before[q] = p
                if q == b:
                    return True, looked
                queue[high] = q
                high += 1
        if low == high:
            break
    return False, looked
