r"""Separation of 2-partition inequalities with several groups on both sides, by a tabu search.

With b = −1 on S, +1 on T and 0 elsewhere, and ones on the diagonal of x, the inequality of S and T
is :math:`b^T x b \ge \sum_i b_i`. So b is moved towards small values of the difference, one group
at a time: to move i changes it by 2 (xb)_i if b_i grows, and by 2 − 2 (xb)_i if it falls.
"""

from __future__ import annotations

import math

import numpy as np

from coalitions.compiling.kernel import njit
from coalitions.game import BoolVector, FloatVector, IntVector
from solvers.branch_and_cut.dual.multipliers import WIDEST, Singles
from solvers.local_search.random_state import RandomState, below

MOST_HEADS = 8
"""Most groups that a search begins with in S."""

MOVES = 40
"""Moves of a search; the best inequality on the way is taken."""

REST = 3
"""Moves for which a group that was moved is left alone, and up to twice as many more at random."""


@njit(cache=True)
def grow_partitions(
    x: Singles, violation: float, starts: int, state: RandomState
) -> tuple[IntVector, IntVector, BoolVector, FloatVector]:
    """Return sides of violated inequalities: rows, groups, which are in S [cells], and depths.

    A depth is the distance of the point to the hyperplane of the cut.
    """
    m = len(x)
    full = x.astype(np.float64)
    for i in range(m):
        full[i, i] = 1.0
    found = np.zeros((starts, m), np.int8)
    depths = np.zeros(starts)
    n_found = 0
    b, best_b = np.zeros(m, np.int8), np.zeros(m, np.int8)
    product = np.zeros(m)
    free_from = np.zeros(m, np.int64)
    for _ in range(starts):
        b[:] = 0
        product[:] = 0.0
        free_from[:] = 0
        heads = 1 + below(state, MOST_HEADS)
        size, twice = 0, 0.0
        for _ in range(heads):
            # Of some groups the one that is least with those of S: they count against it.
            chosen = -1
            for _ in range(4):
                i = below(state, m)
                if b[i] == 0 and (chosen < 0 or product[i] > product[chosen]):
                    chosen = i
            if chosen >= 0:
                twice += 2.0 - 2.0 * product[chosen]
                b[chosen] = -1
                size += 1
                for i in range(m):
                    product[i] -= full[chosen, i]
        best = 0.0
        for move in range(MOVES):
            chosen, way, least = -1, 0, math.inf
            for i in range(m):
                if free_from[i] > move or (b[i] == 0 and size == WIDEST):
                    continue
                if b[i] < 1 and 2.0 * product[i] < least:
                    chosen, way, least = i, 1, 2.0 * product[i]
                if b[i] > -1 and 2.0 - 2.0 * product[i] < least:
                    chosen, way, least = i, -1, 2.0 - 2.0 * product[i]
            if chosen < 0:
                break
            size += abs(b[chosen] + way) - abs(b[chosen])
            b[chosen] += way
            twice += least
            for i in range(m):
                product[i] += way * full[chosen, i]
            free_from[chosen] = move + 1 + REST + below(state, 2 * REST)
            if twice < best:
                best = twice
                best_b[:] = b
        if -best > 2.0 * violation:
            size = np.abs(best_b).sum()
            found[n_found] = best_b
            depths[n_found] = -best / (2.0 * math.sqrt(size * (size - 1) / 2.0))
            n_found += 1
    row, group = np.nonzero(found[:n_found])
    is_head = np.empty(len(row), np.bool_)
    for cell in range(len(row)):
        is_head[cell] = found[row[cell], group[cell]] < 0
    return row, group, is_head, depths[:n_found]
