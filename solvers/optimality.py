"""When a bound proves a value: one scale for the solvers, the verifier and the command line."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np

from coalitions.game import IntVector
from coalitions.graph import Edges, SynergyGraph, weight_sum

OPTIMALITY_TOLERANCE = 1e-9
"""How far value and bound may be apart in a proven optimum, relative to what is at stake:
all that can be gained, and where sizes are demanded also what the structure loses."""

EXACT_TOLERANCE = Fraction(OPTIMALITY_TOLERANCE)
"""The same number, for comparisons of fractions."""


def positive_weight(graph: SynergyGraph) -> float:
    """Return the sum of the positive weights: nothing on this graph can be worth more.

    Negative weights do not count. Whoever writes −1e16 for "never" does not ask for less care with
    the rest.

    Raises
    ------
    InvalidInputError
        The sum is larger than a float can be.

    Examples
    --------
    >>> positive_weight(SynergyGraph([[0, 3, -1e16], [3, 0, 2], [-1e16, 2, 0]]))
    5.0
    """
    return graph.positive_weight


def losses(graph: SynergyGraph, labels: IntVector) -> float:
    """Return the sum of the negative weights that a structure joins, without the sign.

    Where sizes are demanded, losses are part of what is at stake: sizes may force pairs together,
    and then the best value is a sum of losses, known to the precision of its terms. Pairs that the
    structure has apart do not count, so −1e16 for "never" still asks for no less care.

    Examples
    --------
    >>> import numpy as np
    >>> graph = SynergyGraph([[0, -3, -1e16], [-3, 0, 2], [-1e16, 2, 0]])
    >>> losses(graph, np.array([0, 0, 1]))
    3.0
    """
    i, j, weight = graph.edges
    return -weight_sum(weight[(labels[i] == labels[j]) & (weight < 0)]) + 0.0


def advantage(edges: Edges, one: IntVector, other: IntVector) -> float:
    """Return what one structure is worth more than another, correctly rounded.

    Pairs that both have together do not count: beside −1e16 two values may be the same float.

    Examples
    --------
    >>> import numpy as np
    >>> edges = SynergyGraph([[0, -1e16, 5e-12], [-1e16, 0, 0], [5e-12, 0, 0]]).edges
    >>> advantage(edges, np.array([0, 0, 0]), np.array([0, 0, 1]))
    5e-12
    """
    i, j, weight = edges
    first, second = one[i] == one[j], other[i] == other[j]
    return weight_sum(np.append(weight[first & ~second], -weight[second & ~first])) + 0.0


def at_stake(positive_weight: float, losses: float) -> float:
    """Return the scale of a comparison: all that can be gained, and what sizes make one lose."""
    return min(positive_weight + losses, sys.float_info.max)


def is_optimal(value: float, bound: float, at_stake: float) -> bool:
    """Tell whether `bound` proves `value` where that much is at stake.

    There is no absolute floor: weights of 1e-11 are compared as strictly as weights of 1. Where
    nothing is at stake, value and bound must be equal.
    """
    return bound - value <= OPTIMALITY_TOLERANCE * at_stake


def rounded_up(number: Fraction) -> float:
    """Return the smallest float that is not below a number.

    Examples
    --------
    >>> rounded_up(Fraction(1, 10)) == 0.1, rounded_up(Fraction(3, 10)) > 0.3
    (True, True)
    """
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf if number > 0 else -sys.float_info.max
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def reported_bound(value: float, bound: Fraction, gap: Fraction, at_stake: float) -> float:
    """Return the float to report for an exact bound that is `gap` above the exact value.

    Far from zero floats are coarse: beside players who must be together at −1e16, 3 and 4 are one
    number. Whether value and bound meet follows from the gap, not from two roundings, so the float
    is the next one above the bound unless that would tell another story.
    """
    reported = max(value, rounded_up(bound))
    if gap <= EXACT_TOLERANCE * Fraction(at_stake):
        return reported if is_optimal(value, reported, at_stake) else value
    while is_optimal(value, reported, at_stake):
        reported = math.nextafter(reported, math.inf)
    return reported
