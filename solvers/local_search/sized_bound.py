"""A cheap bound where sizes are demanded: nobody has more partners than fit in."""

from __future__ import annotations

import math

import numpy as np

from coalitions.graph import SynergyGraph
from solvers.local_search.bounds import cycle_packing_bound
from solvers.preparation.scaling import integer_weights
from solvers.sizes import Sizes
from solvers.solver import Limits

ROWS_AT_ONCE = 256

SECONDS_PER_CELL = 1e-7
"""What the bound of best partners takes for each pair of players, which nobody can stop."""


def sized_bound(graph: SynergyGraph, sizes: Sizes, *, limits: Limits) -> float:
    """Return the lower of two bounds: that of all structures, and that of the best partners.

    A node with p players has at most max_size − p partners, and if it has fewer than min_size
    players, some. What it gains with its best ones is counted half for each of the two.

    Examples
    --------
    >>> graph = SynergyGraph([[0, 3, 2], [3, 0, 3], [2, 3, 0]])
    >>> pairs = Sizes(np.ones(3, np.int64), min_size=1, max_size=2, fewest=2, most=3)
    >>> sized_bound(graph, pairs, limits=Limits())
    4.0
    """
    bound = math.inf
    if limits.seconds_left > SECONDS_PER_CELL * graph.n_players**2:
        bound = _of_best_partners(graph, sizes)
    return min(bound, cycle_packing_bound(graph, limits=limits))


def _of_best_partners(graph: SynergyGraph, sizes: Sizes) -> float:
    n = graph.n_players
    i, j, weight = graph.edges
    scaled = integer_weights(weight)
    matrix = np.zeros((n, n), np.int64)
    matrix[i, j] = matrix[j, i] = scaled.integers
    most = np.minimum(sizes.max_size - sizes.players, n - 1)
    lacking = np.maximum(sizes.min_size - sizes.players, 0)
    least = np.minimum(-(-lacking // sizes.players.max()), most)
    width, twice = int(most.max()), 0
    if width == 0:
        return 0.0
    places = np.arange(width + 1)
    lowest = np.iinfo(np.int64).min // 4
    for first in range(0, n, ROWS_AT_ONCE):
        rows = slice(first, min(first + ROWS_AT_ONCE, n))
        some = matrix[rows].copy()
        some[np.arange(len(some)), np.arange(rows.start, rows.stop)] = lowest
        some = np.sort(np.partition(some, n - width, axis=1)[:, n - width :], axis=1)[:, ::-1]
        np.maximum(some, -(1 << 58), out=some)  # the node itself, where all others are partners
        sums = np.concatenate((np.zeros((len(some), 1), np.int64), some.cumsum(axis=1)), axis=1)
        allowed = (least[rows, None] <= places) & (places <= most[rows, None])
        twice += sum(np.where(allowed, sums, lowest).max(axis=1).tolist())
    return scaled.bound(twice // 2)
