r"""Whole numbers for the weights between the nodes of a proof, worked out from the graph alone.

A node stands for players that must be together. The weight of two nodes is the float nearest to the
exact sum of the edges between their players, and k = round(weight / unit). Whatever the integers
fall short of is added to the bound: for every set E of pairs,

.. math:: \sum_{e \in E} w_e \le \text{unit} \cdot \sum_{e \in E} k_e + \text{slack}.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from coalitions.game import BoolVector, FloatVector, IntVector
from coalitions.graph import SynergyGraph

SAFE = 1 << 61
"""Sums below this are exact in int64; above, Python's own integers are used."""

_CERTAIN = 2.0**50
"""Quotients below this are off by less than 1/4, whatever was rounded on the way."""

Whole = Any
"""An array of whole numbers: int64 where sums are safe, else Python's own in an object array."""


@dataclass(frozen=True, eq=False)
class NodePairs:
    """Pairs of nodes that edges join, or that must be apart.

    Attributes
    ----------
    one, two
        The nodes, the smaller number first, in lexicographic order.
    weight
        The float nearest to the exact sum of the edges between them.
    above
        At least how far the exact sum is above that float; 0 if it is not.
    forbidden
        Pairs that must be apart, whatever they weigh.
    """

    one: IntVector
    two: IntVector
    weight: FloatVector
    above: FloatVector
    forbidden: BoolVector

    def __getitem__(self, chosen: Any) -> NodePairs:  # noqa: ANN401 (what NumPy takes as an index)
        """Return some of the pairs."""
        return NodePairs(
            self.one[chosen],
            self.two[chosen],
            self.weight[chosen],
            self.above[chosen],
            self.forbidden[chosen],
        )

    def __len__(self) -> int:
        return len(self.one)


def exact_sum(numbers: list[float]) -> Fraction:
    """Return the sum of floats without any rounding."""
    total, terms = Fraction(0), list(numbers)
    try:
        while part := math.fsum(terms):  # what is left shrinks by 53 bits each time
            total += Fraction(part)
            terms.append(-part)
    except OverflowError:
        return sum(map(Fraction, numbers), Fraction(0))
    return total


def between_nodes(
    graph: SynergyGraph, node_of: IntVector, n_nodes: int, apart: IntVector
) -> tuple[Fraction, NodePairs]:
    """Return the exact weight inside nodes, and what is between them; `apart` [k, 2] are nodes."""
    i, j, weight = graph.edges
    a, b = node_of[i], node_of[j]
    inside = a == b
    keys = (np.minimum(a, b) * n_nodes + np.maximum(a, b))[~inside]
    forbidden = np.unique(apart.min(axis=1) * n_nodes + apart.max(axis=1))
    # A forbidden pair that no edge joins is there, too.
    keys = np.concatenate((keys, forbidden))
    weights = np.concatenate((weight[~inside], np.zeros(len(forbidden))))
    order = np.argsort(keys, kind="stable")
    keys, weights = keys[order], weights[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    count = np.diff(first, append=len(keys))
    nearest, above = weights[first], np.zeros(len(first))
    for place in np.flatnonzero(count > 1).tolist():
        start = first[place]
        terms = weights[start : start + count[place]].tolist()
        nearest[place], above[place] = _nearest(terms)
    names = keys[first]
    pairs = NodePairs(names // n_nodes, names % n_nodes, nearest, above, np.isin(names, forbidden))
    return exact_sum(weight[inside].tolist()), pairs


def _nearest(terms: list[float]) -> tuple[float, float]:
    """Return the float nearest to a sum, and at least how far the sum is above it."""
    try:
        total = math.fsum(terms)
        rest = math.fsum([*terms, -total])
    except OverflowError:
        return -sys.float_info.max, 0.0  # positive weights are known to have a finite sum
    return total, math.nextafter(rest, math.inf) if rest > 0.0 else 0.0


def rounded(weight: FloatVector, unit: Fraction) -> Whole:
    """Return the whole numbers nearest to weight / unit, ties to even, without any error."""
    try:
        by = float(unit)
    except OverflowError:
        by = 0.0
    if not 2.0**-1000 < by < 2.0**1000:
        return _array([round(Fraction(w) / unit) for w in weight.tolist()])
    with np.errstate(over="ignore"):
        quotient = weight / by
    nearest = np.rint(quotient)
    # Two roundings, of the unit and of the quotient: relative errors of 2^−53 each.
    doubt = np.abs(quotient) * 2.0**-51
    with np.errstate(invalid="ignore"):
        certain = np.abs(quotient - nearest) + doubt < 0.5
    certain &= np.abs(quotient) < _CERTAIN
    whole = np.where(certain, nearest, 0.0).astype(np.int64)
    if certain.all() and float(np.abs(nearest).sum()) < SAFE:
        return whole
    found = whole.tolist()
    for place in np.flatnonzero(~certain).tolist():
        found[place] = round(Fraction(weight[place]) / unit)
    return _array(found)


def _array(numbers: list[int]) -> Whole:
    safe = sum(map(abs, numbers)) < SAFE
    if safe:
        return np.array(numbers, np.int64)
    array = np.empty(len(numbers), object)
    array[:] = numbers
    return array


def trimmed(pairs: NodePairs, whole: Whole, n: int) -> Whole:
    r"""Return the integers with those below −(min(P_i, P_j) + 1), or of forbidden pairs, at that.

    P_i is the sum of the positive weights of node i. Integers of pairs that may be together only
    grow, so a bound on the new ones is a bound on the old; a pair that must be apart is worth
    nothing in any structure that counts.
    """
    gains = np.zeros(n, whole.dtype)
    positive = np.where(pairs.forbidden, 0, np.maximum(whole, 0))
    np.add.at(gains, pairs.one, positive)
    np.add.at(gains, pairs.two, positive)
    least = -(np.minimum(gains[pairs.one], gains[pairs.two]) + 1)
    raised = np.where(pairs.forbidden, least, np.maximum(whole, least))
    # Many forbidden pairs may weigh more in sum than what was there before.
    safe = raised.dtype == np.int64 and float(np.abs(raised).sum(dtype=np.float64)) < SAFE
    return raised if safe else _array(raised.tolist())


def slack(pairs: NodePairs, whole: Whole, unit: Fraction) -> Fraction:
    """Return at least Σ max(0, exact weight − unit · whole) over pairs that may be together."""
    allowed = ~pairs.forbidden
    pairs, whole = pairs[allowed], whole[allowed]
    # unit = top / bottom · 2^shift with odd numbers: a correctly rounded division and a shift.
    top, up = _odd(unit.numerator)
    bottom, down = _odd(unit.denominator)
    shift = up - down
    if max(top, bottom) >= 1 << 53 or abs(shift) > 900 or whole.dtype != np.int64:
        certain = np.zeros(len(whole), np.bool_)
        value = np.zeros(len(whole))
    else:
        product = whole.astype(np.float64) * float(top)
        with np.errstate(over="ignore"):
            value = np.ldexp(product / float(bottom), shift)
        size = np.abs(value)
        normal = (value == 0.0) | ((size > 2.0**-900) & (size < 2.0**900))
        certain = (np.abs(product) < 2.0**53) & normal
    # Now `value` is the float nearest to unit · whole, and it is exact if the bottom is 1.
    rounding = np.zeros(len(whole)) if bottom == 1 else np.spacing(np.abs(value)) / 2
    rounding[value == 0.0] = 0.0
    extra = rounding + pairs.above
    distance = value - pairs.weight
    short = np.where(distance > 2 * extra, 0.0, np.maximum(-distance, 0.0) + extra)
    # No term is negative, so that much covers all roundings in these sums.
    total = Fraction(math.fsum(short[certain].tolist())) * (1 + Fraction(1, 1 << 40))
    for place in np.flatnonzero(~certain).tolist():
        exact = Fraction(pairs.weight[place]) + Fraction(pairs.above[place])
        total += max(Fraction(0), exact - unit * int(whole[place]))
    return total


def gains(pairs: NodePairs) -> Fraction:
    """Return what pairs that may be together can gain in all, and at most a rounding more."""
    positive = (pairs.weight > 0.0) & ~pairs.forbidden
    return exact_sum([*pairs.weight[positive].tolist(), *pairs.above[positive].tolist()])


def _odd(number: int) -> tuple[int, int]:
    """Return an odd number and a power of two whose product is `number`."""
    twos = (number & -number).bit_length() - 1
    return number >> twos, twos
