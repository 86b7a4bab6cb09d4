"""Cheap upper bounds on the value of every structure.

Joining all positive pairs and no negative one would be worth Σ w⁺. A *conflict cycle* has one
negative pair, and its other pairs are positive: a structure must separate one of the positive pairs
or join the negative one. Cycles that share no weight can all be charged their smallest |weight|.
Where sizes are demanded, no player has more partners than fit into its coalition.
"""

from __future__ import annotations

import math

import numpy as np

from coalitions.graph import SynergyGraph, matrix_of_pairs
from solvers.demands import Sizes
from solvers.reductions import integer_weights
from solvers.solver import Limits

STEPS = 100_000_000
"""How many edges a packing looks at before it is content: about a second."""

SLICE = 5_000_000
"""Edges looked at between two glances at the clock."""

SECONDS_PER_EDGE = 2.5e-7
"""What it takes before the first cycle is packed: sorting, mostly; measured on 12.5 million edges.
Where there is not even time for that, nothing is packed."""

LONGEST_PATH = 6
"""Positive pairs in the longest conflict cycle that is looked for."""


def cycle_packing_bound(graph: SynergyGraph, *, limits: Limits | None = None) -> float:
    r"""Return the positive weight less a packing of conflict cycles [Lange2018]_.

    For a packing that gives cycle :math:`C` the weight :math:`y_C \ge 0`, such that the cycles
    through a pair together have at most its :math:`|w_{ij}|`, every structure is worth at most

    .. math:: \sum_{i<j} \max(0, w_{ij}) - \sum_C y_C.

    Negative pairs are served from the most negative on: first by triangles, then, where triangles
    leave something, by ever longer cycles, each by a shortest path of positive pairs that have
    weight left. The work is limited and the sums are made of whole numbers, so the bound is cheap
    and holds exactly; it may depend on the order of equal weights.

    Parameters
    ----------
    graph
        The players and their synergies.
    limits
        A deadline ends the packing early; what is packed by then counts.

    Examples
    --------
    >>> cycle_packing_bound(SynergyGraph([[0, 2, -1], [2, 0, 3], [-1, 3, 0]]))
    4.0
    """
    from solvers.heuristics._cycle_kernels import adjacency, pack

    i, j, weight = graph.edges
    if limits is not None and limits.seconds_left < SECONDS_PER_EDGE * len(weight):
        return graph.positive_weight
    scaled = integer_weights(weight)
    capacity = np.abs(scaled.integers)
    positive = np.flatnonzero(scaled.integers > 0)
    negative = np.flatnonzero(scaled.integers < 0)
    negative = negative[np.argsort(-capacity[negative], kind="stable")]
    total = int(capacity[positive].sum())
    if not len(positive) or not len(negative):
        return min(scaled.bound(total), graph.positive_weight)
    first, neighbours, edges = adjacency(graph.n_players, i, j, positive)
    packed, steps = 0, 0
    for length in range(2, LONGEST_PATH + 1):
        served = 0
        while served < len(negative) and steps < STEPS:
            if limits is not None and limits.expired:
                return min(scaled.bound(total - packed), graph.positive_weight)
            gain, served, looked = pack(
                first, neighbours, edges, i, j, capacity, negative, served, length, SLICE
            )
            packed += gain
            steps += looked
        negative = negative[capacity[negative] > 0]
    return min(scaled.bound(total - packed), graph.positive_weight)


# ----------------------------------------------------------------------------------------
# With sizes: the best partners that fit in.

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
    matrix = matrix_of_pairs(n, i, j, scaled.integers)
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
