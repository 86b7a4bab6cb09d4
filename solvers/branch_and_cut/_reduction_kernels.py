"""Kernel that looks for pairs of nodes that belong together."""

from __future__ import annotations

import numpy as np
from numba import njit

from coalitions.game import IntVector
from solvers.branch_and_cut.problem import IntMatrix


@njit(cache=True)
def candidates(weights: IntMatrix, alive: IntVector) -> IntVector:
    """Return the pairs i < j [p, 2] that a rule of `solvers.reductions` puts together."""
    n = len(weights)
    size = np.zeros(n, np.int64)
    for i in range(n):
        for k in range(n):
            size[i] += abs(weights[i, k])
    found = np.empty((n, 2), np.int64)
    count = 0
    for i in range(n):
        if not alive[i]:
            continue
        for j in range(i + 1, n):
            w = weights[i, j]
            if not alive[j] or w < 0:
                continue
            fits = 2 * w >= min(size[i], size[j])
            if not fits and 4 * w >= abs(size[i] - size[j]):
                room = 4 * w  # the sum below counts |w| at i and at j as well
                for k in range(n):
                    room -= abs(weights[i, k] - weights[j, k])
                    if room < 0:
                        break
                fits = room >= 0
            if fits and count < n:
                found[count, 0] = i
                found[count, 1] = j
                count += 1
    return found[:count]
