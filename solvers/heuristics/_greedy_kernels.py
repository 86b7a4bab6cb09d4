"""Kernels that unite the two blocks with the highest synergy until no union gains."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from coalitions.compiling import njit, types
from coalitions.game import FloatMatrix, FloatVector, IntVector
from coalitions.runtime import making_ready

with making_ready():
    from numba.typed import Dict


@njit(cache=True)
def unite_on_matrix(
    between: FloatMatrix, highest: FloatVector, partner: IntVector, labels: IntVector, steps: int
) -> int:
    """Make at most `steps` unions on the matrix of synergies between blocks; return their number.

    All arrays are changed in place. The row of a block in `between` stays where its label is, with
    −inf on the diagonal; a block that is gone is −inf in `highest` and in everybody's row. Nothing
    in row c is above `highest[c]`. `partner` names the column that it stands in, or is −1 if that
    one has changed: then the row is looked through when its turn comes, and for most rows it never
    does.
    """
    n = len(between)
    for step in range(steps):
        a = np.argmax(highest)
        while partner[a] < 0 and highest[a] > 0.0:
            partner[a] = np.argmax(between[a])
            highest[a] = between[a, partner[a]]
            a = np.argmax(highest)
        if not highest[a] > 0.0:
            return step
        b = partner[a]
        highest[b] = -np.inf
        united, gone = between[a], between[b]
        for c in range(n):
            united[c] += gone[c]
        for c in range(n):
            if highest[c] == -np.inf:
                continue
            between[c, b] = -np.inf
            between[c, a] = united[c]
            if united[c] > highest[c]:
                highest[c] = united[c]
                partner[c] = a
            elif partner[c] == a or partner[c] == b:
                partner[c] = -1
        partner[a] = np.argmax(united)
        highest[a] = united[partner[a]]
        for i in range(len(labels)):
            if labels[i] == b:
                labels[i] = a
    return steps


@njit(cache=True)
def _find(parent: IntVector, block: int) -> int:
    while parent[block] != block:
        parent[block] = parent[parent[block]]
        block = parent[block]
    return block


@njit(cache=True)
def unite_on_edges(n: int, i: IntVector, j: IntVector, weight: FloatVector) -> IntVector:
    """Return the labels after all unions on a graph of edges i < j.

    Blocks keep linked lists of their neighbours; the list of the smaller one is appended to the
    other's, and a heap of candidate unions is cleaned of outdated ones as they come up.
    """
    synergy = Dict.empty(types.int64, types.float64)
    link = np.empty(2 * len(i), np.int64)
    head = np.full(n, -1, np.int64)
    tail = np.full(n, -1, np.int64)
    degree = np.zeros(n, np.int64)
    heap = [(0.0, np.int64(0), np.int64(0)) for _ in range(0)]
    for e in range(len(i)):
        synergy[i[e] * n + j[e]] = weight[e]
        if weight[e] > 0.0:
            heap.append((-weight[e], i[e], j[e]))
        # Node 2e stands in the list of i and names j, node 2e + 1 the other way round.
        for node, p in ((2 * e, i[e]), (2 * e + 1, j[e])):
            link[node] = head[p]
            if head[p] < 0:
                tail[p] = node
            head[p] = node
            degree[p] += 1
    heapify(heap)
    parent = np.arange(n)
    while len(heap) > 0:
        lowest, a, b = heappop(heap)
        if parent[a] != a or parent[b] != b:
            continue
        if synergy.get(min(a, b) * n + max(a, b), 0.0) != -lowest:
            continue
        if degree[a] < degree[b]:
            a, b = b, a
        parent[b] = a
        node = head[b]
        while node >= 0:
            e = node // 2
            c = _find(parent, j[e] if node % 2 == 0 else i[e])
            old = min(b, c) * n + max(b, c)
            if c != a and old in synergy:
                key = min(a, c) * n + max(a, c)
                total = synergy.get(key, 0.0) + synergy[old]
                synergy[key] = total
                del synergy[old]
                if total > 0.0:
                    heappush(heap, (-total, min(a, c), max(a, c)))
            node = link[node]
        if head[b] >= 0:
            link[tail[b]] = head[a]
            if head[a] < 0:
                tail[a] = tail[b]
            head[a] = head[b]
            degree[a] += degree[b]
    for p in range(n):
        parent[p] = _find(parent, p)
    return parent
