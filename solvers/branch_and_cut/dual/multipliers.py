r"""Multipliers: a non-negative number for each of some valid inequalities.

Every inequality here is a 2-partition inequality with one player on the first side
[Groetschel1990]_: for a centre c and a set T,

.. math:: \sum_{t \in T} x_{ct} - \sum_{t < t' \in T} x_{tt'} \le 1,

where x_ij says whether i and j are together. With two players in T this is a triangle inequality:
if c is with both, they are with each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalitions.game import FloatVector, IntMatrix, IntVector

Singles = NDArray[np.float32]
Smalls = NDArray[np.int32]
Ages = NDArray[np.int16]

LONGEST = 12
"""Most groups in the set T of a cut."""


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
        Centre and T in ascending order, filled up with −1 [k, 1 + LONGEST].
    cut_values
        Their multipliers [k].
    """

    triangles: IntMatrix
    triangle_values: FloatVector
    cuts: IntMatrix
    cut_values: FloatVector

    @classmethod
    def none(cls) -> Multipliers:
        """Return no multipliers at all."""
        return cls(
            np.empty((0, 3), np.int64),
            np.empty(0),
            np.empty((0, 1 + LONGEST), np.int64),
            np.empty(0),
        )

    def mapped(self, merge: IntVector) -> Multipliers:
        """Return the multipliers after each group g became part of group merge[g].

        Groups of T that meet count once; an inequality that becomes trivial is left out.
        """
        m = int(merge.max()) + 1
        t = merge[self.triangles]
        low, high = np.minimum(t[:, 1], t[:, 2]), np.maximum(t[:, 1], t[:, 2])
        proper = (t[:, 0] != low) & (t[:, 0] != high) & (low != high)
        keys = ((t[:, 0] * m + low) * m + high)[proper]
        keys, values = _summed(keys, self.triangle_values[proper])
        triangles = np.stack([keys // (m * m), keys // m % m, keys % m], axis=1)

        cuts = np.where(self.cuts >= 0, merge[self.cuts], np.iinfo(np.int64).max)
        outer = np.sort(cuts[:, 1:], axis=1)
        repeated = np.zeros(outer.shape, np.bool_)
        repeated[:, 1:] = outer[:, 1:] == outer[:, :-1]
        outer = np.sort(np.where(repeated | (outer >= m), m, outer), axis=1)
        proper = (outer[:, 2] < m) & (outer != cuts[:, :1]).all(axis=1)
        cuts = np.concatenate([cuts[proper, :1], np.where(outer < m, outer, -1)[proper]], axis=1)
        names, first, where = np.unique(row_keys(cuts), return_index=True, return_inverse=True)
        cut_values = np.bincount(where, self.cut_values[proper], len(names)).astype(np.float64)
        return Multipliers(triangles, values, cuts[first], cut_values)


def row_keys(cuts: IntMatrix) -> IntVector:
    """Return a number for each cut that another cut hardly ever has (a 64-bit hash).

    Two cuts with one number only cost one of them: multipliers of either are valid.
    """
    keys = np.zeros(len(cuts), np.uint64)
    for column in cuts.T:
        keys = (keys ^ (column + 2).astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    return keys.view(np.int64)


def _summed(keys: IntVector, values: FloatVector) -> tuple[IntVector, FloatVector]:
    """Return the different keys in ascending order, and the sums of their values."""
    names, where = np.unique(keys, return_inverse=True)
    return names, np.bincount(where, values, len(names)).astype(np.float64)
