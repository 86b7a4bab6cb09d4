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

MAX_DECIMALS = 9
GRID_BITS = 50
"""Σ|k| of a rounded graph stays below 2^51, so that sums of its weights never overflow int64."""


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
        exact = self.unit * integer_bound + Fraction(self.slack)
        nearest = float(exact)
        return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def integer_weights(weights: FloatVector) -> ScaledWeights:
    """Return integers in the ratio of `weights`, exactly if they are decimals, else nearly.

    Examples
    --------
    >>> integer_weights(np.array([0.3, -0.1])).integers
    array([ 3, -1])
    """
    total = float(np.abs(weights).sum())  # a rounding off is far within what 2^51 leaves room for
    if total == 0.0:
        return ScaledWeights(np.zeros(len(weights), np.int64), Fraction(1), 0.0)
    for decimals in range(MAX_DECIMALS + 1):
        if total * 10.0**decimals >= 2.0**GRID_BITS:
            break
        grid = np.rint(weights * 10.0**decimals)
        # Division rounds correctly, so equality says: these floats are those decimals.
        if np.array_equal(grid / 10.0**decimals, weights):
            return _reduced(weights, grid, Fraction(1, 10**decimals))
    exponent = math.frexp(total)[1] - GRID_BITS
    grid = np.rint(np.ldexp(weights, -exponent))
    return _reduced(weights, grid, Fraction(2) ** exponent)


def _reduced(weights: FloatVector, grid: FloatVector, unit: Fraction) -> ScaledWeights:
    """Divide the integers by what they have in common, and bound what they fall short of."""
    integers = grid.astype(np.int64)
    common = int(np.gcd.reduce(integers)) or 1
    if unit.denominator & (unit.denominator - 1):
        # Each weight is the float nearest to its decimal: at most half a spacing away from it.
        short = np.spacing(np.abs(weights)) / 2
    else:
        # Floats and grid are both multiples of a power of two, so this difference is exact.
        short = np.maximum(weights - grid * float(unit), 0.0)
    # Rounded up by far more than a sum of floats can be off.
    slack = float(short.sum()) * (1.0 + 1e-9)
    return ScaledWeights(integers // common, unit * common, slack)
