"""The kernels of the dual once more, in NumPy, for few groups: nothing has to be compiled.

The functions are those of `solvers.branch_and_cut._cut_kernels`, with the same arguments. Their
roundings differ, so a search uses one or the other from its root on, by the number of groups there:
a certificate is the same whether or not kernels are at hand.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from coalitions.game import FloatVector, IntMatrix, IntVector
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
from solvers.solver import RandomState


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
    """Take accelerated gradient steps on the smoothed dual; return U, μ and the momentum."""
    pairs, y, previous_y, steps = triangles
    pointer, cut_pairs, signs, sides, cut_y, previous_cut_y, cut_steps = cuts
    reduced, previous_reduced, x = point
    t, size = len(y), len(weights)
    # Triangles and cuts are rows alike: cells of pairs with signs, one row after the other.
    cells = np.concatenate([pairs.ravel(), cut_pairs]).astype(np.intp)
    sign = np.concatenate([np.tile(np.array([1.0, 1.0, -1.0]), t), signs])
    starts = np.concatenate([np.arange(0, 3 * t, 3), 3 * t + pointer[:-1]])
    row = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(cells)))
    values = np.concatenate([y, cut_y]).astype(np.float64)
    before = np.concatenate([previous_y, previous_cut_y]).astype(np.float64)
    lengths = np.concatenate([steps, cut_steps]).astype(np.float64)
    right = np.concatenate([np.ones(t), sides])
    w, r, r_old = (each.astype(np.float64) for each in (weights, reduced, previous_reduced))
    soft = x.astype(np.float64)
    for _ in range(iterations):
        following = (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
        beta = (momentum - 1.0) / following
        v = (r + beta * (r - r_old)) / -mu
        soft = undecided / (1.0 + np.exp(np.minimum(v, 30.0)))
        turned = 0.0
        if len(values):
            ahead = values + beta * (values - before)
            slack = right - np.add.reduceat(sign * soft.take(cells), starts)
            new = np.maximum(ahead - mu * lengths * slack, 0.0)
            turned = float(((ahead - new) * (new - values)).sum())
            before, values = values, new
        r_old, r = r, w - np.bincount(cells, sign * values.take(row), minlength=size)
        # Momentum that points uphill is dropped.
        momentum = following if turned <= 0.0 else 1.0
        mu *= decay
    x[:], reduced[:], previous_reduced[:] = soft, r, r_old
    y[:], cut_y[:] = values[:t], values[t:]
    previous_y[:], previous_cut_y[:] = before[:t], before[t:]
    bound = float((right * values).sum() + (undecided * np.maximum(r, 0.0)).sum())
    return bound, mu, momentum


def violated_triangles(
    x: Singles, first: int, last: int, tolerance: float, at_most: int
) -> IntVector:
    """Return the keys (c·m + i)·m + k of violated triangles, ascending; few groups have few."""
    del at_most
    m = len(x)
    some = x[first:last]
    depth = some[:, :, None] + some[:, None, :] - x
    c, i, k = np.nonzero((depth > 1.0 + tolerance) & np.triu(np.ones((m, m), np.bool_), 1))
    keys: IntVector = ((c + first) * m + i) * m + k
    return keys


def merge_rows(
    keys: IntVector,
    y: Singles,
    previous_y: Singles,
    idle: Ages,
    patience: int,
    new_keys: IntVector,
) -> tuple[IntVector, Singles, Singles, Ages]:
    """Return the triangles that work or rested for less than `patience`, and the new ones."""
    rests = (y == 0.0) & (previous_y == 0.0) & ~np.isin(keys, new_keys)
    resting = np.where(rests, idle + 1, 0).astype(np.int16)
    kept = resting < patience
    fresh = new_keys[~np.isin(new_keys, keys)]
    all_keys = np.concatenate([keys[kept], fresh])
    order = np.argsort(all_keys)
    none = np.zeros(len(fresh), np.float32)
    return (
        all_keys[order],
        np.concatenate([y[kept], none])[order],
        np.concatenate([previous_y[kept], none])[order],
        np.concatenate([resting[kept], none.astype(np.int16)])[order],
    )


def triangle_pairs(keys: IntVector, m: int) -> tuple[Smalls, Smalls]:
    """Return the three pairs of each triangle [t, 3], and how many triangles each pair is in."""
    c, i, k = keys // (m * m), keys // m % m, keys % m
    sides = [(np.minimum(c, i), np.maximum(c, i)), (np.minimum(c, k), np.maximum(c, k)), (i, k)]
    pairs = np.stack([low * m + high for low, high in sides], axis=1).astype(np.int32)
    return pairs, np.bincount(pairs.ravel(), minlength=m * m).astype(np.int32)


def step_lengths(pairs: Smalls, degree: Smalls, longest: float) -> Singles:
    """Return `longest` over the rows at all pairs of each triangle together [t]."""
    lengths: Singles = (longest / degree[pairs].sum(axis=1)).astype(np.float32)
    return lengths


def cut_pairs(cuts: IntMatrix, heads: IntVector, m: int) -> tuple[IntVector, Smalls, Singles]:
    """Return a pointer, the pairs of each cut, and their signs: +1 between its sides, else −1."""
    one, two = _places(cuts.shape[1])
    i, j = cuts[:, one], cuts[:, two]
    there = j >= 0
    pointer = np.concatenate([[0], np.cumsum(np.count_nonzero(there, axis=1))])
    pairs = (np.minimum(i, j) * m + np.maximum(i, j))[there].astype(np.int32)
    between = (one < heads[:, None]) & (two >= heads[:, None])
    return pointer, pairs, np.where(between, 1.0, -1.0)[there].astype(np.float32)


@functools.lru_cache(maxsize=2)
def _places(width: int) -> tuple[IntVector, IntVector]:
    """Return the pairs of places q < p in a cut, by p."""
    two, one = np.tril_indices(width, -1)
    return one, two


def subtract_rows(
    reduced: IntMatrix,
    triangles: IntMatrix,
    triangle_values: IntVector,
    cuts: IntMatrix,
    heads: IntVector,
    cut_values: IntVector,
) -> int:
    """Subtract Aᵀy above the diagonal and return the sum of y times the right-hand sides."""
    m = len(reduced)
    flat = reduced.ravel()
    keys = (triangles[:, 0] * m + triangles[:, 1]) * m + triangles[:, 2]
    sides, _ = triangle_pairs(keys, m)
    for column, sign in ((0, 1), (1, 1), (2, -1)):
        np.subtract.at(flat, sides[:, column], sign * triangle_values)
    pointer, cells, signs = cut_pairs(cuts, heads, m)
    spread = np.repeat(cut_values, np.diff(pointer)) * signs.astype(np.int64)
    np.subtract.at(flat, cells, spread)
    return int(triangle_values.sum()) + int(heads @ cut_values)


def grow_cuts(
    x: Singles, violation: float, starts: int, state: RandomState
) -> tuple[IntMatrix, FloatVector]:
    """Grow a set T from every pair of a centre and a neighbour, all at once; nothing is random."""
    del starts, state
    m = len(x)
    x = x.astype(np.float64)
    # Whole values cannot be in a violated cut that no triangle implies.
    near = (x > 0.03) & (x < 0.97)
    np.fill_diagonal(near, val=False)
    near &= np.count_nonzero(near, axis=1)[:, None] >= 3
    centre, member = np.nonzero(near)
    cut = np.arange(len(centre))
    inside = np.zeros((len(centre), m), np.bool_)
    gain = np.where(near[centre], x[centre], -math.inf)
    left = np.zeros(len(centre))
    for _ in range(LONGEST):
        left[cut] += gain[cut, member]
        inside[cut, member] = True
        gain[cut] -= x[member]
        gain[cut, member] = -math.inf
        member = gain[cut].argmax(axis=1) if len(cut) else member
        grows = gain[cut, member] > 1e-3
        cut, member = cut[grows], member[grows]
        if not len(cut):
            break
    length = np.count_nonzero(inside, axis=1)
    good = np.flatnonzero((length >= 3) & (left > 1.0 + violation))
    rows = np.full((len(good), WIDEST), -1, np.int64)
    rows[:, 0] = centre[good]
    which, nodes = np.nonzero(inside[good])
    place = np.arange(len(which)) - np.repeat(np.cumsum(length[good]) - length[good], length[good])
    rows[which, 1 + place] = nodes
    depths = (left[good] - 1.0) / np.sqrt(length[good] * (length[good] + 1) / 2.0)
    return rows, depths
