"""Separation of 2-partition inequalities on a fractional point."""

from __future__ import annotations

import math

import numpy as np

from coalitions.compiling.kernel import njit
from coalitions.game import FloatVector, IntMatrix
from solvers.branch_and_cut.dual.kernels import Singles
from solvers.branch_and_cut.dual.multipliers import LONGEST, row_keys
from solvers.local_search.random_state import RandomState, below, uniform


def violated_cuts(
    x: Singles, *, violation: float, starts: int, at_most: int, state: RandomState
) -> IntMatrix:
    """Return violated cuts [k, 1 + LONGEST] as in `Multipliers`, the most violated first.

    Parameters
    ----------
    x
        A symmetric matrix with entries in [0, 1].
    violation
        Smallest violation worth a cut.
    starts
        Greedy constructions for each centre.
    at_most
        How many cuts to return.
    state
        Source of randomness.
    """
    rows, depths = _grow_cuts(x, violation, starts, state)
    rows = rows[np.argsort(-depths, kind="stable")]
    first = np.unique(row_keys(rows), return_index=True)[1]
    chosen: IntMatrix = rows[np.sort(first)[:at_most]]
    return chosen


@njit(cache=True)
def _grow_cuts(
    x: Singles, violation: float, starts: int, state: RandomState
) -> tuple[IntMatrix, FloatVector]:
    """Grow a set T for each centre: always add whoever raises the left-hand side most.

    A depth is the distance of the point to the hyperplane of the cut.
    """
    m = len(x)
    rows = np.full((m * starts, LONGEST + 1), -1, np.int64)
    depths = np.zeros(m * starts)
    found = 0
    near = np.empty(m, np.int64)
    gain = np.empty(m)
    for c in range(m):
        count = 0
        for i in range(m):
            # Whole values cannot be in a violated cut that no triangle implies.
            if i != c and 0.03 < x[c, i] < 0.97:
                near[count] = i
                count += 1
        if count < 3:
            continue
        for start in range(min(starts, count)):
            first = start if count <= starts else below(state, count)
            for p in range(count):
                # A little noise makes several starts give several cuts.
                shake = 1.0 + 0.1 * uniform(state)
                gain[p] = (x[c, near[p]] - x[near[first], near[p]]) * shake
            gain[first] = -math.inf
            rows[found, 0] = c
            rows[found, 1] = near[first]
            length = 1
            left = x[c, near[first]]
            while length < LONGEST:
                best = 0
                for p in range(1, count):
                    if gain[p] > gain[best]:
                        best = p
                if gain[best] <= 1e-3:
                    break
                new = near[best]
                raises = x[c, new]
                for p in range(length):
                    raises -= x[rows[found, 1 + p], new]
                gain[best] = -math.inf
                if raises <= 1e-4:
                    continue
                left += raises
                length += 1
                rows[found, length] = new
                for p in range(count):
                    gain[p] -= x[new, near[p]]
            if length >= 3 and left > 1.0 + violation:
                depths[found] = (left - 1.0) / math.sqrt(length * (length + 1) / 2.0)
                rows[found, 1 : length + 1].sort()
                found += 1
            else:
                rows[found] = -1
    return rows[:found], depths[:found]
