r"""Multipliers: a non-negative number for each of some valid inequalities.

Every inequality here is a 2-partition inequality [Groetschel1990]_: for disjoint sets S and T,

.. math:: \sum_{s \in S, t \in T} x_{st} - \sum_{s < s' \in S} x_{ss'}
   - \sum_{t < t' \in T} x_{tt'} \le |S|,

where x_ij says whether i and j are together. A coalition with a of S and b of T adds
ab − a(a − 1)/2 − b(b − 1)/2 = a − d(d + 1)/2 ≤ a to the left, with d = a − b whole. With one player
in S, its *centre*, and two in T this is a triangle inequality: if c is with both, they are with
each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalitions.game import BoolVector, FloatVector, IntMatrix, IntVector

Singles = NDArray[np.float32]
Smalls = NDArray[np.int32]
Ages = NDArray[np.int16]

LONGEST = 12
"""Most groups in the set T of a cut with one centre."""

WIDEST = 16
"""Most groups in both sets of a cut."""


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of triangles and of larger cuts, in units of the integer weights.

    Attributes
    ----------
    triangles
        Centre and the two other groups, the smaller first [t, 3].
    triangle_values
        Their multipliers [t].
    cuts
        S, then T, each in ascending order, filled up with −1 [k, WIDEST].
    heads
        How many groups are in S [k]; T has more.
    cut_values
        Their multipliers [k].
    """

    triangles: IntMatrix
    triangle_values: FloatVector
    cuts: IntMatrix
    heads: IntVector
    cut_values: FloatVector

    @classmethod
    def none(cls) -> Multipliers:
        """Return no multipliers at all."""
        return cls(
            np.empty((0, 3), np.int64),
            np.empty(0),
            np.empty((0, WIDEST), np.int64),
            np.empty(0, np.int64),
            np.empty(0),
        )

    def mapped(self, merge: IntVector) -> Multipliers:
        """Return the multipliers after each group g became part of group merge[g].

        Groups of one side that meet count once, those of two sides not at all; an inequality that
        becomes trivial is left out.
        """
        m = int(merge.max()) + 1
        t = merge[self.triangles]
        low, high = np.minimum(t[:, 1], t[:, 2]), np.maximum(t[:, 1], t[:, 2])
        proper = (t[:, 0] != low) & (t[:, 0] != high) & (low != high)
        keys = ((t[:, 0] * m + low) * m + high)[proper]
        keys, values = _summed(keys, self.triangle_values[proper])
        triangles = np.stack([keys // (m * m), keys // m % m, keys % m], axis=1)

        row, place = np.nonzero(self.cuts >= 0)
        side = np.where(place < self.heads[row], -1.0, 1.0)
        cells, where = np.unique(row * m + merge[self.cuts[row, place]], return_inverse=True)
        side = np.sign(np.bincount(where, side, len(cells)))
        cells, side = cells[side != 0.0], side[side != 0.0]
        cuts, heads, kept = cuts_of(cells // m, cells % m, side < 0.0, len(self.cuts))
        names, first, where = np.unique(
            row_keys(cuts, heads), return_index=True, return_inverse=True
        )
        cut_values = np.bincount(where, self.cut_values[kept], len(names)).astype(np.float64)
        return Multipliers(triangles, values, cuts[first], heads[first], cut_values)


def cuts_of(
    row: IntVector, group: IntVector, is_head: BoolVector, n_rows: int
) -> tuple[IntMatrix, IntVector, IntVector]:
    """Return cuts, their heads, and which rows they were; what triangles imply is left out.

    Group group[k] is on one or the other side of row row[k]. The smaller side becomes S.
    """
    heads = np.bincount(row[is_head], minlength=n_rows)
    tails = np.bincount(row[~is_head], minlength=n_rows)
    is_head = is_head ^ (heads > tails)[row]
    heads, tails = np.minimum(heads, tails), np.maximum(heads, tails)
    # Sides of equal size say no more than what is left when one of either is taken away.
    kept = np.flatnonzero((heads > 0) & (tails > np.maximum(heads, 2)))
    order = np.lexsort((group, ~is_head, row))
    row, group = row[order], group[order]
    size = heads + tails
    cuts = np.full((n_rows, WIDEST), -1, np.int64)
    cuts[row, np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)] = group
    return cuts[kept], heads[kept], kept


def row_keys(cuts: IntMatrix, heads: IntVector) -> IntVector:
    """Return a number for each cut that another cut hardly ever has (a 64-bit hash).

    Two cuts with one number only cost one of them: multipliers of either are valid.
    """
    keys = np.zeros(len(cuts), np.uint64)
    for column in (heads, *cuts.T):
        keys = (keys ^ (column + 2).astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    return keys.view(np.int64)


def _summed(keys: IntVector, values: FloatVector) -> tuple[IntVector, FloatVector]:
    """Return the different keys in ascending order, and the sums of their values."""
    names, where = np.unique(keys, return_inverse=True)
    return names, np.bincount(where, values, len(names)).astype(np.float64)
