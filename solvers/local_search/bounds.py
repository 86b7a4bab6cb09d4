"""Cheap upper bounds on the value of every structure.

Joining all positive pairs and no negative one would be worth Σ w⁺. A *conflict cycle* has one
negative pair, and its other pairs are positive: a structure must separate one of the positive pairs
or join the negative one. Cycles that share no weight can all be charged their smallest |weight|.
"""

from __future__ import annotations

import numpy as np

from coalitions.graph import SynergyGraph
from solvers.preparation.scaling import integer_weights
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


def positive_weight_bound(graph: SynergyGraph) -> float:
    r"""Return the sum of all positive synergies, :math:`\sum_{i<j} \max(0, w_{ij})`.

    Examples
    --------
    >>> positive_weight_bound(SynergyGraph([[0, 2, -1], [2, 0, 3], [-1, 3, 0]]))
    5.0
    """
    return graph.positive_weight


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
    from solvers.local_search._cycle_packing import adjacency, pack

    i, j, weight = graph.edges
    if limits is not None and limits.seconds_left < SECONDS_PER_EDGE * len(weight):
        return positive_weight_bound(graph)
    scaled = integer_weights(weight)
    capacity = np.abs(scaled.integers)
    positive = np.flatnonzero(scaled.integers > 0)
    negative = np.flatnonzero(scaled.integers < 0)
    negative = negative[np.argsort(-capacity[negative], kind="stable")]
    total = int(capacity[positive].sum())
    if not len(positive) or not len(negative):
        return min(scaled.bound(total), positive_weight_bound(graph))
    first, neighbours, edges = adjacency(graph.n_players, i, j, positive)
    packed, steps = 0, 0
    for length in range(2, LONGEST_PATH + 1):
        served = 0
        while served < len(negative) and steps < STEPS:
            if limits is not None and limits.expired:
                return min(scaled.bound(total - packed), positive_weight_bound(graph))
            gain, served, looked = pack(
                first, neighbours, edges, i, j, capacity, negative, served, length, SLICE
            )
            packed += gain
            steps += looked
        negative = negative[capacity[negative] > 0]
    return min(scaled.bound(total - packed), positive_weight_bound(graph))
