"""Kernels of the Lagrangian dual: accelerated steps, and the triangles worth having.

A pair i < j of m groups is number i·m + j; vectors over pairs have m² cells, of which those above
the diagonal are used. Everything here is single precision: what a bound is worth is settled
afterwards, in whole numbers.
"""

from __future__ import annotations

import math

import numpy as np

from coalitions.compiling.kernel import copy_into, njit
from coalitions.game import FloatVector, IntMatrix, IntVector
from solvers.branch_and_cut.dual.multipliers import LONGEST, WIDEST, Ages, Singles, Smalls
from solvers.local_search.random_state import RandomState, below, uniform

FINITE = {"nnan", "ninf", "nsz"}
"""What the compiler may assume. It may not reorder sums: it would in one way in fresh code and
in another in code from the cache, and a first run would not take the path of the next."""


@njit(cache=True, fastmath=FINITE)
def ascend(
    weights: Singles,
    undecided: Singles,
    pairs: Smalls,
    y: Singles,
    previous_y: Singles,
    steps: Singles,
    pointer: IntVector,
    cut_pairs: Smalls,
    signs: Singles,
    sides: Singles,
    cut_y: Singles,
    previous_cut_y: Singles,
    cut_steps: Singles,
    reduced: Singles,
    previous_reduced: Singles,
    x: Singles,
    mu: float,
    decay: float,
    momentum: float,
    iterations: int,
) -> tuple[float, float, float]:
    """Take accelerated gradient steps on the smoothed dual; return U, μ and the momentum.

    `pairs` [t, 3] are the pairs of each triangle, the one between its two outer groups last;
    `sides` are the right-hand sides of the cuts.
    """
    size = len(weights)
    m = int(math.sqrt(size) + 0.5)
    one, zero = np.float32(1.0), np.float32(0.0)
    r, r_old, r_new = reduced.copy(), previous_reduced.copy(), np.empty_like(reduced)
    total = 0.0
    for _ in range(iterations):
        following = (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
        beta = np.float32((momentum - 1.0) / following)
        sharp = np.float32(1.0 / mu)
        for i in range(m):
            for e in range(i * m + i + 1, i * m + m):
                v = (r[e] + beta * (r[e] - r_old[e])) * sharp
                v = min(max(v, np.float32(-30.0)), np.float32(30.0))
                x[e] = undecided[e] / (one + np.exp(-v))
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
