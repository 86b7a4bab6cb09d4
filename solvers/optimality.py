"""When a bound proves a value: one scale for the solvers, the verifier and the command line."""

from __future__ import annotations

import math

import numpy as np

from coalitions.graph import SynergyGraph

OPTIMALITY_TOLERANCE = 1e-9
"""How far value and bound may be apart in a proven optimum, relative to all that can be gained."""


def positive_weight(graph: SynergyGraph) -> float:
    """Return the sum of the positive weights: nothing on this graph can be worth more.

    Negative weights do not count. Whoever writes −1e16 for "never" does not ask for less care with
    the rest.

    Examples
    --------
    >>> positive_weight(SynergyGraph([[0, 3, -1e16], [3, 0, 2], [-1e16, 2, 0]]))
    5.0
    """
    return math.fsum(np.maximum(graph.edges.weight, 0.0).tolist())


def is_optimal(value: float, bound: float, positive_weight: float) -> bool:
    """Tell whether `bound` proves `value` where that much could be gained in all.

    There is no absolute floor: weights of 1e-11 are compared as strictly as weights of 1. Where
    nothing is positive, value and bound must be equal.
    """
    return bound - value <= OPTIMALITY_TOLERANCE * positive_weight
