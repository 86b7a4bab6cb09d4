r"""The bound that multipliers prove, in whole numbers.

With multipliers y ≥ 0 and the reduced weights r = w − Aᵀy, no structure is worth more than

.. math:: U = \sum_c y_c + \sum_{\text{undecided } e} \max(0, r_e),

and none in which the pair e is decided against the sign of r_e is worth more than U − |r_e|. All
numbers are integers in units of 2^−bits of a weight, so neither can be wrong by a rounding.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from coalitions.game import BoolMatrix, FloatVector, IntMatrix, IntVector
from solvers.branch_and_cut.dual.multipliers import Multipliers
from solvers.branch_and_cut.dual.tools import Tools
from solvers.branch_and_cut.problem import Problem

MAX_BITS = 20
HEADROOM = 2.0**60
"""Sums of scaled weights and multipliers stay below this, far from the end of int64."""


@dataclass(frozen=True)
class ExactBound:
    """What multipliers prove about a problem.

    Attributes
    ----------
    bits
        Weights and multipliers are counted in units of 2^−bits.
    triangle_values, cut_values
        The multipliers as integers.
    scaled
        U, in those units.
    reduced
        r above the diagonal [m, m], in those units; zero where a pair is decided.
    """

    bits: int
    triangle_values: IntVector
    cut_values: IntVector
    scaled: int
    reduced: IntMatrix

    @property
    def level(self) -> float:
        """U in units of a weight, rounded."""
        return float(self.scaled) / 2.0**self.bits

    @property
    def bound(self) -> int:
        """The largest whole number that is not above U."""
        return self.scaled >> self.bits


def exact_bound(problem: Problem, multipliers: Multipliers, tools: Tools) -> ExactBound:
    """Return the bound that the multipliers prove, after rounding them to integers."""
    heaviest = float(np.abs(problem.weights).sum(dtype=np.float64)) + abs(problem.inside)
    heaviest += 3.0 * float(multipliers.triangle_values.sum())
    heaviest += multipliers.cuts.shape[1] ** 2 * float(multipliers.cut_values.sum())
    bits = MAX_BITS
    while bits and heaviest * 2.0**bits >= HEADROOM:
        bits -= 1
    triangle_values = _as_integers(multipliers.triangle_values, bits)
    cut_values = _as_integers(multipliers.cut_values, bits)
    reduced = problem.weights << bits
    total = tools.subtract_rows(
        reduced,
        multipliers.triangles,
        triangle_values,
        multipliers.cuts,
        multipliers.heads,
        cut_values,
    )
    reduced[problem.apart | _below(problem.n_groups)] = 0
    scaled = int(total) + int(np.maximum(reduced, 0).sum()) + (problem.inside << bits)
    return ExactBound(bits, triangle_values, cut_values, scaled, reduced)


@functools.lru_cache(maxsize=8)
def _below(m: int) -> BoolMatrix:
    """Return which cells of a matrix [m, m] are not above the diagonal."""
    return np.tri(m, dtype=np.bool_)


def _as_integers(values: FloatVector, bits: int) -> IntVector:
    return np.floor(np.maximum(values, 0.0) * 2.0**bits).astype(np.int64)
