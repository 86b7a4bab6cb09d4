r"""Multipliers: a non-negative number for each of some valid inequalities.

Every inequality here is a 2-partition inequality with one player on the first side
[Groetschel1990]_: for a centre c and a set T,

.. math:: \sum_{t \in T} x_{ct} - \sum_{t < t' \in T} x_{tt'} \le 1,

where x_ij says whether i and j are together. With two players in T this is a triangle inequality:
if c is with both, they are with each other.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from coalitions.game import FloatVector, IntVector
from solvers.branch_and_cut.problem import IntMatrix


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of triangles and of larger cuts, in units of the integer weights.

    Attributes
    ----------
    triangles
        Centre and the two other groups, the smaller first [t, 3].
    triangle_values
        Their multipliers [t].
    pointer, members
        Cut number k has the groups members[pointer[k]:pointer[k + 1]], its centre first.
    cut_values
        The multipliers of the cuts.
    """

    triangles: IntMatrix
    triangle_values: FloatVector
    pointer: IntVector
    members: IntVector
    cut_values: FloatVector

    @classmethod
    def none(cls) -> Multipliers:
        """Return no multipliers at all."""
        return cls(
            np.empty((0, 3), np.int64),
            np.empty(0),
            np.zeros(1, np.int64),
            np.empty(0, np.int64),
            np.empty(0),
        )

    @property
    def cuts(self) -> list[tuple[int, ...]]:
        """The cuts, centre first."""
        ends = self.pointer.tolist()
        members = self.members.tolist()
        return [tuple(members[a:b]) for a, b in itertools.pairwise(ends)]

    def mapped(self, merge: IntVector) -> Multipliers:
        """Return the multipliers after each group g became part of group merge[g].

        An inequality two of whose groups meet says nothing new and is left out.
        """
        t = merge[self.triangles]
        low, high = np.minimum(t[:, 1], t[:, 2]), np.maximum(t[:, 1], t[:, 2])
        proper = (t[:, 0] != low) & (t[:, 0] != high) & (low != high)
        m = int(merge.max()) + 1
        keys = ((t[:, 0] * m + low) * m + high)[proper]
        keys, where = np.unique(keys, return_inverse=True)
        values = np.bincount(where, self.triangle_values[proper], len(keys)).astype(np.float64)
        triangles = np.stack([keys // (m * m), keys // m % m, keys % m], axis=1)
        sums: dict[tuple[int, ...], float] = {}
        new_number = merge.tolist()
        for cut, value in zip(self.cuts, self.cut_values.tolist(), strict=True):
            image = [new_number[g] for g in cut]
            if len(set(image)) == len(image):
                row = (image[0], *sorted(image[1:]))
                sums[row] = sums.get(row, 0.0) + value
        pointer, members = packed(list(sums))
        return Multipliers(triangles, values, pointer, members, np.array(list(sums.values())))


def packed(cuts: list[tuple[int, ...]]) -> tuple[IntVector, IntVector]:
    """Return cuts of different lengths as a pointer and one vector of members."""
    pointer = np.zeros(len(cuts) + 1, np.int64)
    np.cumsum([len(cut) for cut in cuts], out=pointer[1:])
    members = np.array([g for cut in cuts for g in cut], np.int64)
    return pointer, members
