"""Integer weights for a graph's floats, with an account of what rounding leaves out.

Whole numbers, and decimals such as 0.25 or -0.1, become the smallest integers that stand in the
same ratio, so that a bound on them can be rounded down to the next whole number. Anything else is
rounded to a grid so fine that the sum of all roundings is far below the tolerance of a proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from coalitions.game import FloatVector, IntVector
from solvers.optimality import rounded_up

MAX_DECIMALS = 9
EXACT_BITS = 50
"""Decimals are taken as they are as long as their integers stay below 2^50 in sum."""

GAIN_BITS, GRID_BITS = 53, 58
"""In a rounded graph the positive integers stay below 2^53 in sum, so that multipliers have room in
int64, and all of them below 2^58. In a graph of few friends and many foes nearly all of the slack
comes from the foes, who hardly need room: there the second number makes it small."""

LEAST_EXPONENT = -1074
"""Every float is a multiple of 2^−1074."""

SAMPLE = 1000
"""So many weights tell at once that a graph does not consist of decimals."""


@dataclass(frozen=True)
class ScaledWeights:
    r"""Integers k and a unit u with w ≈ u·k.

    For every set of pairs E, :math:`\sum_E w_e \le u \sum_E k_e + \text{slack}`: a bound on the
    integers is a bound on the weights.
    """

    integers: IntVector
    unit: Fraction
    slack: float

    def bound(self, integer_bound: int) -> float:
        """Return the bound on the weights that a bound on the integers implies, rounded up."""
        return rounded_up(self.unit * integer_bound + Fraction(self.slack))


def integer_weights(weights: FloatVector) -> ScaledWeights:
    """Return integers in the ratio of `weights`, exactly if they are decimals, else nearly.

    Each integer is the whole number nearest to weight / unit, ties to even.

    Examples
    --------
    >>> integer_weights(np.array([0.3, -0.1])).integers
    array([ 3, -1])
    """
    largest = float(np.abs(weights).max(initial=0.0))
    if largest == 0.0:
        return ScaledWeights(np.zeros(len(weights), np.int64), Fraction(1), 0.0)
    decimals = decimals_of(weights)
    if decimals is not None:
        grid = np.rint(weights * 10.0**decimals)
        return _reduced(weights, grid, Fraction(1, 10**decimals))
    # Near the end of the floats only the ratio to the largest has a sum.
    size = math.frexp(largest)[1]
    ratio = np.ldexp(weights, -size)
    gains, total = float(ratio[ratio > 0].sum()), float(np.abs(ratio).sum())
    exponent = max(math.frexp(gains)[1] - GAIN_BITS, math.frexp(total)[1] - GRID_BITS) + size
    exponent = max(exponent, LEAST_EXPONENT)
    grid = np.rint(np.ldexp(weights, -exponent))
    return _reduced(weights, grid, Fraction(2) ** exponent)


def decimals_of(weights: FloatVector) -> int | None:
    """Return how many decimals all weights have, or None if they have more than fit.

    Examples
    --------
    >>> decimals_of(np.array([0.25, -3.0])), decimals_of(np.array([1 / 3]))
    (2, None)
    """
    with np.errstate(over="ignore"):
        total = float(np.abs(weights).sum())  # a rounding off is far within what is left
    first = float(weights[0]) if len(weights) else 0.0
    for decimals in range(MAX_DECIMALS + 1):
        scale = 10.0**decimals
        if total * scale >= 2.0**EXACT_BITS:
            return None
        if round(first * scale) / scale != first:  # one number tells most odd floats at once
            continue
        # Division rounds correctly, so equality says: these floats are those decimals.
        if all(
            np.array_equal(np.rint(some * scale) / scale, some)
            for some in (weights[:SAMPLE], weights[SAMPLE:])
        ):
            return decimals
    return None


def _reduced(weights: FloatVector, grid: FloatVector, unit: Fraction) -> ScaledWeights:
    """Divide the integers by what they have in common, and bound what they fall short of."""
    integers = grid.astype(np.int64)
    common = int(np.gcd.reduce(integers)) or 1
    if unit.denominator & (unit.denominator - 1):
        # Each weight is the float nearest to its decimal: at most half a spacing away from it, and
        # not at all if the decimal is a fraction of a power of two, as 0.25 is.
        fives = 5 ** (len(str(unit.denominator)) - 1)
        short = np.where(integers % fives == 0, 0.0, np.spacing(np.abs(weights)) / 2)
    else:
        # Floats and grid are both multiples of a power of two, so this difference is exact.
        short = np.maximum(weights - grid * float(unit), 0.0)
    # Rounded up by far more than a sum of floats can be off.
    slack = float(short.sum()) * (1.0 + 1e-9)
    return ScaledWeights(integers // common, unit * common, slack)
