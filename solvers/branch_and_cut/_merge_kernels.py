"""One pass of the merging rules of `solvers.branch_and_cut.merges` over all pairs, compiled."""

from __future__ import annotations

from coalitions.compiling.kernel import njit
from coalitions.game import BoolVector, IntMatrix, IntVector


@njit(cache=True)
def merge_pass(weights: IntMatrix, sizes: IntVector, alive: BoolVector, pairs: IntMatrix) -> int:
    """Merge every pair that a rule puts together at its turn; return how many were merged.

    `weights`, their row sums of absolute values `sizes`, and `alive` are changed in place; row k of
    `pairs` receives the k-th merged pair (i, j), of which i stays.
    """
    n = len(weights)
    found = 0
    for i in range(n):
        for j in range(i + 1, n):
            w = weights[i, j]
            if w < 0 or not alive[i] or not alive[j]:
                continue
            if 2 * w < min(sizes[i], sizes[j]) and not _are_twins(weights, i, j, 2 * w):
                continue
            for k in range(n):
                if k not in (i, j):
                    total = weights[i, k] + weights[j, k]
                    change = abs(total) - abs(weights[i, k])
                    sizes[k] += change - abs(weights[j, k])
                    sizes[i] += change
                    weights[i, k] = weights[k, i] = total
                weights[j, k] = weights[k, j] = 0
            sizes[i] -= abs(w)
            sizes[j] = 0
            alive[j] = False
            pairs[found, 0] = i
            pairs[found, 1] = j
            found += 1
    return found


@njit(cache=True)
def _are_twins(weights: IntMatrix, i: int, j: int, most: int) -> bool:
    """Tell whether the rows i and j differ by at most `most` in sum, apart from w_ij itself."""
    one, two = weights[i], weights[j]
    # |w_ij| counts in both rows, for j in that of i and for i in that of j.
    left = most + 2 * abs(one[j])
    for k in range(len(one)):
        left -= abs(one[k] - two[k])
        if left < 0:
            return False
    return True
