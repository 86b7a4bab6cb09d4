r"""The compiled loops of branch-and-cut; importing this file imports numba.

**Merges.** One pass of the rules of `solvers.branch_and_cut.partition_problem` over all pairs.

**Russian dolls.** Players have an order. :math:`V_k` is the value of the best structure of the
players k … n−1 alone. It is found for k = n−1 down to 0; each search uses what the smaller ones
found [Verfaillie1996]_. A search puts players into blocks one after the other. With the blocks of
the players before k chosen, worth v, and :math:`g_{bj}` what player j gains in block b, nothing
that follows is worth more than

.. math:: v + V_k + \sum_{j \ge k} \max(0, \max_b g_{bj}).

All numbers are integers, so a search that ends within its steps has proven its answer.

**The dual.** A pair i < j of m groups is number i·m + j; vectors over pairs have m² cells, of which
those above the diagonal are used. Everything in these kernels is single precision: what a bound is
worth is settled afterwards, in whole numbers, by `solvers.branch_and_cut.lagrangian_dual`.

**Partitions.** With b = −1 on S, +1 on T and 0 elsewhere, and ones on the diagonal of x, the
2-partition inequality of S and T is :math:`b^T x b \ge \sum_i b_i`. A tabu search moves b towards
small values of the difference, one group at a time: to move i changes it by 2 (xb)_i if b_i grows,
and by 2 − 2 (xb)_i if it falls.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from coalitions.compiling import copy_into, njit
from coalitions.game import BoolVector, FloatVector, IntMatrix, IntVector
from solvers.branch_and_cut.lagrangian_dual import (
    LONGEST,
    WIDEST,
    Ages,
    CutRows,
    DualPoint,
    Singles,
    Smalls,
    TriangleRows,
)
from solvers.heuristics.random_numbers import RandomState, below, uniform

# ----------------------------------------------------------------------------------------
# Merges


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
            # w ≥ Σ_{k≠i,j} |w_ak| is 2w ≥ Σ_k |w_ak| = sizes[a], because w ≥ 0 is in that sum.
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
            # Row j is now part of row i; the pair itself has become weight inside a node.
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


# ----------------------------------------------------------------------------------------
# Russian dolls


@njit(cache=True)
def russian_dolls(
    weights: IntMatrix, start: IntVector, floor: int, most_steps: int
) -> tuple[bool, IntVector]:
    """Return whether the search came to its end, and labels.

    If it did, the labels are of a best structure, unless none is worth more than `floor`.

    Parameters
    ----------
    weights
        Synergies in the order in which players are placed [n, n], with a zero diagonal.
    start
        Labels of a structure, 0 … n−1.
    floor
        Structures of this value or less are of no interest.
    most_steps
        The search is given up after this many changes of a bound.
    """
    n = len(weights)
    best_value = np.zeros(n + 1, np.int64)
    best = np.zeros(n, np.int64)
    gains = np.zeros((n + 1, n), np.int64)
    caps = np.zeros((n + 1, n), np.int64)
    block = np.zeros(n, np.int64)
    blocks = np.zeros(n + 1, np.int64)
    value = np.zeros(n + 1, np.int64)
    choices = np.zeros((n + 1, n + 1), np.int64)
    turn = np.zeros(n + 1, np.int64)
    steps = 0
    given = np.int64(0)
    for first in range(n - 1, -1, -1):
        # A value to beat: the best structure of the later players with `first` where it gains most,
        # or the start, or what the caller knows.
        known = _extended(weights, best, first, best_value[first + 1])
        for j in range(first + 1, n):
            if start[first] == start[j]:
                given += weights[first, j]
        if given > known:
            known = given
            copy_into(best[first:], start[first:])
        if first == 0:
            known = max(known, floor)
        depth = first
        blocks[first] = 0
        turn[first] = 0
        choices[first, 0] = 0
        caps[first] = 0
        while True:
            b = block[depth]
            if turn[depth] > 0 and depth + 1 < n:
                # Take back the choice made here last.
                for j in range(depth + 1, n):
                    gains[b, j] -= weights[depth, j]
            if turn[depth] > blocks[depth]:
                if depth == first:
                    break
                depth -= 1
                continue
            b = choices[depth, turn[depth]]
            turn[depth] += 1
            block[depth] = b
            # Player `depth` joins block b. Then bound the rest: v + V_new + Σ_j caps[new, j].
            worth = value[depth] + gains[b, depth]
            new = depth + 1
            if new == n:
                if worth > known:
                    known = worth
                    copy_into(best[first:], block[first:])
                continue
            bound = worth + best_value[new]
            used = max(blocks[depth], b + 1)
            for j in range(new, n):
                w = weights[depth, j]
                old = gains[b, j]
                gains[b, j] = old + w
                # caps[d, j] = max(0, max_b gains[b, j]). Only block b changed, so the maximum is
                # looked for again only where b had it and fell.
                cap = caps[depth, j]
                if w > 0:
                    cap = max(cap, old + w)
                elif w < 0 and old == cap and cap > 0:
                    cap = np.int64(0)
                    for c in range(used):
                        cap = max(cap, gains[c, j])
                caps[new, j] = cap
                bound += cap
            steps += n - new
            if bound <= known:
                continue
            if steps > most_steps:
                return False, best
            depth = new
            value[depth] = worth
            blocks[depth] = used
            turn[depth] = 0
            # The most attractive block first; the empty one is number `used`.
            for c in range(used + 1):
                p = c
                while p > 0 and gains[choices[depth, p - 1], depth] < gains[c, depth]:
                    choices[depth, p] = choices[depth, p - 1]
                    p -= 1
                choices[depth, p] = c
        best_value[first] = known
    return True, best


@njit(cache=True)
def _extended(weights: IntMatrix, best: IntVector, first: int, value: int) -> Any:  # noqa: ANN401 (int64)
    """Put player `first` where it gains the most in the best structure of those after it."""
    n = len(weights)
    gain = np.zeros(n, np.int64)
    size = np.zeros(n, np.int64)
    for j in range(first + 1, n):
        gain[best[j]] += weights[first, j]
        size[best[j]] += 1
    choice = 0
    while size[choice] > 0:
        choice += 1
    for b in range(n):
        if gain[b] > gain[choice]:
            choice = b
    best[first] = choice
    return value + gain[choice]


# ----------------------------------------------------------------------------------------
# The dual: accelerated steps, and the triangles that are violated.

FINITE = {"nnan", "ninf", "nsz"}
"""What the compiler may assume. It may not reorder sums: it would in one way in fresh code and
in another in code from the cache, and a first run would not take the path of the next."""


@njit(cache=True, fastmath=FINITE)
def ascend(
    weights: Singles,
    undecided: Singles,
    triangles: TriangleRows,
    cuts: CutRows,
    point: DualPoint,
    mu: float,
    decay: float,
    momentum: float,
    iterations: int,
) -> tuple[float, float, float]:
    """Take accelerated gradient steps on the smoothed dual; return U, μ and the momentum.

    The values of `triangles` and `cuts`, and `point`, are changed in place.
    """
    pairs, y, previous_y, steps = triangles
    pointer, cut_pairs, signs, sides, cut_y, previous_cut_y, cut_steps = cuts
    reduced, previous_reduced, x = point
    size = len(weights)
    m = int(math.sqrt(size) + 0.5)
    one, zero = np.float32(1.0), np.float32(0.0)
    r, r_old, r_new = reduced.copy(), previous_reduced.copy(), np.empty_like(reduced)
    total = 0.0
    for _ in range(iterations):
        following = (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
        beta = np.float32((momentum - 1.0) / following)
        # x = 1 / (1 + exp(−r / μ)) at the point that momentum looks ahead to, r + β (r − r_old).
        sharp = np.float32(1.0 / mu)
        for i in range(m):
            for e in range(i * m + i + 1, i * m + m):
                v = (r[e] + beta * (r[e] - r_old[e])) * sharp
                v = min(max(v, np.float32(-30.0)), np.float32(30.0))
                x[e] = undecided[e] / (one + np.exp(-v))
        # One gradient step on each multiplier, kept ≥ 0; r_new = w − Aᵀy is summed up beside it.
        copy_into(r_new, weights)
        scale = np.float32(mu)
        turned = 0.0
        total = 0.0
        for t in range(len(y)):
            a, b, c = pairs[t, 0], pairs[t, 1], pairs[t, 2]
            old = y[t]
            ahead = old + beta * (old - previous_y[t])
            new = max(zero, ahead - steps[t] * scale * (one - x[a] - x[b] + x[c]))
            previous_y[t] = old
            y[t] = new
            turned += (ahead - new) * (new - old)
            if new > zero:
                total += new
                r_new[a] -= new
                r_new[b] -= new
                r_new[c] += new
        # The same for cuts, whose rows have many pairs.
        for k in range(len(cut_y)):
            slack = sides[k]
            for p in range(pointer[k], pointer[k + 1]):
                slack -= signs[p] * x[cut_pairs[p]]
            old = cut_y[k]
            ahead = old + beta * (old - previous_cut_y[k])
            new = max(zero, ahead - cut_steps[k] * scale * slack)
            previous_cut_y[k] = old
            cut_y[k] = new
            turned += (ahead - new) * (new - old)
            if new > zero:
                total += sides[k] * new
                for p in range(pointer[k], pointer[k + 1]):
                    r_new[cut_pairs[p]] -= signs[p] * new
        r_old, r, r_new = r, r_new, r_old
        # Momentum that points uphill is dropped (adaptive restart, O'Donoghue and Candès 2015).
        momentum = following if turned <= 0.0 else 1.0
        mu *= decay
    copy_into(reduced, r)
    copy_into(previous_reduced, r_old)
    # U(y) = bᵀy + Σ_e max(0, r_e), without the smoothing; pairs that are decided do not count.
    bound = total
    for i in range(m):
        for e in range(i * m + i + 1, i * m + m):
            if r[e] > zero:
                bound += undecided[e] * r[e]
    return bound, mu, momentum


@njit(cache=True, fastmath=FINITE)
def _how_many(one: Singles, other: Singles, start: int, need: float) -> np.int32:
    """Count how often one[k] − other[k] > need from `start` on (a loop that vectorises)."""
    count = np.int32(0)
    limit = np.float32(need)
    for k in range(start, len(one)):
        count += np.int32(1) if one[k] - other[k] > limit else np.int32(0)
    return count


@njit(cache=True)
def violated_triangles(
    x: Singles, first: int, last: int, tolerance: float, at_most: int
) -> IntVector:
    """Return the keys (c·m + i)·m + k of violated triangles, ascending, the worst if too many.

    `x` is the full symmetric matrix [m, m] with a zero diagonal; centres run from `first` to
    `last` − 1.
    """
    m = len(x)
    total = 0
    for c in range(first, last):
        for i in range(m):
            if x[c, i] > tolerance:
                total += _how_many(x[c], x[i], i + 1, 1.0 + tolerance - x[c, i])
    quota, lowest, crowd = 0, 0, 1
    if total > at_most:
        # How deep the worst are is seen well enough on some of the centres.
        sample = max(1, (last - first) // 8)
        bins = np.zeros(256, np.int64)
        for c in range(first, last, sample):
            for i in range(m):
                need = 1.0 + tolerance - x[c, i]
                if x[c, i] > tolerance and _how_many(x[c], x[i], i + 1, need):
                    for k in range(i + 1, m):
                        if x[c, k] - x[i, k] > need:
                            depth = x[c, i] + x[c, k] - x[i, k] - 1.0
                            bins[min(255, int(depth * 256.0))] += 1
        bins *= sample
        total = 0
        for b in range(255, -1, -1):
            if total + bins[b] > at_most:
                lowest, quota, crowd = b, at_most - total, bins[b]
                break
            total += bins[b]
        tolerance = max(tolerance, lowest / 256.0)
    # Second pass: all that are deeper than the lowest bin, and every so many of that bin.
    keys = np.empty(total + quota, np.int64)
    found, passed = 0, 0
    for c in range(first, last):
        for i in range(m):
            need = 1.0 + tolerance - x[c, i]
            if x[c, i] <= tolerance or not _how_many(x[c], x[i], i + 1, need):
                continue
            for k in range(i + 1, m):
                if x[c, k] - x[i, k] <= need:
                    continue
                if quota and int((x[c, i] + x[c, k] - x[i, k] - 1.0) * 256.0) <= lowest:
                    # Of those that are equally bad, every so many are taken.
                    passed += 1
                    if passed * quota // crowd == (passed - 1) * quota // crowd:
                        continue
                if found < len(keys):
                    keys[found] = (c * m + i) * m + k
                    found += 1
    return keys[:found]


@njit(cache=True)
def merge_rows(
    keys: IntVector,
    y: Singles,
    previous_y: Singles,
    idle: Ages,
    patience: int,
    new_keys: IntVector,
) -> tuple[IntVector, Singles, Singles, Ages]:
    """Return the triangles that work or rested for less than `patience`, and the new ones."""
    size = len(keys) + len(new_keys)
    out_keys = np.empty(size, np.int64)
    out_y = np.zeros(size, np.float32)
    out_previous = np.zeros(size, np.float32)
    out_idle = np.zeros(size, np.int16)
    # Both lists of keys ascend: a merge of two sorted lists. A triangle that rests too long goes,
    # unless it is violated again.
    a = b = n = 0
    while a < len(keys) or b < len(new_keys):
        if b == len(new_keys) or (a < len(keys) and keys[a] <= new_keys[b]):
            wanted = b < len(new_keys) and keys[a] == new_keys[b]
            if wanted:
                b += 1
            resting = idle[a] + 1 if y[a] == 0.0 and previous_y[a] == 0.0 and not wanted else 0
            if resting < patience:
                out_keys[n] = keys[a]
                out_y[n] = y[a]
                out_previous[n] = previous_y[a]
                out_idle[n] = resting
                n += 1
            a += 1
        else:
            out_keys[n] = new_keys[b]
            n += 1
            b += 1
    return out_keys[:n].copy(), out_y[:n].copy(), out_previous[:n].copy(), out_idle[:n].copy()


@njit(cache=True)
def triangle_pairs(keys: IntVector, m: int) -> tuple[Smalls, Smalls]:
    """Return the three pairs of each triangle [t, 3], and how many triangles each pair is in."""
    pairs = np.empty((len(keys), 3), np.int32)
    degree = np.zeros(m * m, np.int32)
    for t in range(len(keys)):
        c, i, k = keys[t] // (m * m), keys[t] // m % m, keys[t] % m
        pairs[t, 0] = min(c, i) * m + max(c, i)
        pairs[t, 1] = min(c, k) * m + max(c, k)
        pairs[t, 2] = i * m + k
        for s in range(3):
            degree[pairs[t, s]] += 1
    return pairs, degree


@njit(cache=True)
def step_lengths(pairs: Smalls, degree: Smalls, longest: float) -> Singles:
    """Return `longest` over the rows at all pairs of each triangle together [t]."""
    steps = np.empty(len(pairs), np.float32)
    for t in range(len(pairs)):
        crowd = degree[pairs[t, 0]] + degree[pairs[t, 1]] + degree[pairs[t, 2]]
        steps[t] = longest / crowd
    return steps


@njit(cache=True)
def cut_pairs(cuts: IntMatrix, heads: IntVector, m: int) -> tuple[IntVector, Smalls, Singles]:
    """Return a pointer, the pairs of each cut, and their signs: +1 between its sides, else −1."""
    pointer = np.zeros(len(cuts) + 1, np.int64)
    for k in range(len(cuts)):
        length = 0
        while length < cuts.shape[1] and cuts[k, length] >= 0:
            length += 1
        pointer[k + 1] = pointer[k] + length * (length - 1) // 2
    pairs = np.empty(pointer[-1], np.int32)
    signs = np.empty(pointer[-1], np.float32)
    at = 0
    for k in range(len(cuts)):
        for p in range(cuts.shape[1]):
            for q in range(p):
                if cuts[k, p] >= 0:
                    i, j = cuts[k, q], cuts[k, p]
                    pairs[at] = min(i, j) * m + max(i, j)
                    signs[at] = 1.0 if q < heads[k] <= p else -1.0
                    at += 1
    return pointer, pairs, signs


@njit(cache=True)
def subtract_rows(
    reduced: IntMatrix,
    triangles: IntMatrix,
    triangle_values: IntVector,
    cuts: IntMatrix,
    heads: IntVector,
    cut_values: IntVector,
) -> np.int64:
    """Subtract Aᵀy above the diagonal and return the sum of y times the right-hand sides."""
    total = np.int64(0)
    for t in range(len(triangles)):
        y = triangle_values[t]
        if y == 0:
            continue
        c, i, k = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        reduced[min(c, i), max(c, i)] -= y
        reduced[min(c, k), max(c, k)] -= y
        reduced[i, k] += y
        total += y
    for row in range(len(cut_values)):
        y = cut_values[row]
        if y == 0:
            continue
        for p in range(1, cuts.shape[1]):
            t = cuts[row, p]
            if t < 0:
                break
            for q in range(p):
                s = cuts[row, q]
                reduced[min(s, t), max(s, t)] += -y if q < heads[row] <= p else y
        total += heads[row] * y
    return total


@njit(cache=True)
def grow_cuts(
    x: Singles, violation: float, starts: int, state: RandomState
) -> tuple[IntMatrix, FloatVector]:
    """Grow a set T for each centre: always add whoever raises the left-hand side most.

    A depth is the distance of the point to the hyperplane of the cut.
    """
    m = len(x)
    rows = np.full((m * starts, WIDEST), -1, np.int64)
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


# ----------------------------------------------------------------------------------------
# Partitions: inequalities with several groups on both sides, by a tabu search.

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
