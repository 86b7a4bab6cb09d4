"""Small problems without a compiler: all allowed coalitions in a list, and NumPy.

To load compiled kernels takes a second, to compile them several. Up to twenty nodes the coalitions
that are allowed can often be listed in less.
"""

from __future__ import annotations

import math

import numpy as np

from coalitions.game import BoolMatrix, FloatMatrix, FloatVector, IntVector
from solvers.branch_and_price.problem import Problem

MOST_NODES = 20
MOST_COALITIONS = 30_000
"""A longer list is not made."""


def all_coalitions(problem: Problem) -> BoolMatrix | None:
    """Return every coalition that meets the demands [c, n], or None if there may be too many."""
    n, sizes = problem.n, problem.sizes
    sets = sum(math.comb(n, size) for size in range(1, problem.places + 1))
    if n > MOST_NODES or sets > MOST_COALITIONS:
        return None
    # By size: a set is one that is a node smaller, and a node behind its last.
    known = [np.eye(n, dtype=np.bool_)]
    last = np.arange(n)
    for _ in range(problem.places - 1):
        behind = n - 1 - last
        parent = np.repeat(np.arange(len(last)), behind)
        start = np.repeat(np.cumsum(behind) - behind, behind)
        last = last[parent] + 1 + np.arange(len(parent)) - start
        grown = known[-1][parent]
        grown[np.arange(len(parent)), last] = True
        known.append(grown)
    columns = np.concatenate(known)
    players = columns @ sizes.players
    allowed = (players >= sizes.min_size) & (players <= sizes.max_size)
    allowed &= columns @ problem.loads <= sizes.max_load
    for role in sizes.roles:
        allowed &= columns[:, list(role)].any(axis=1)
    for a, b in sizes.apart:
        allowed &= ~(columns[:, a] & columns[:, b])
    listed: BoolMatrix = columns[allowed]
    return listed


def price_listed(
    columns: BoolMatrix, excess: IntVector, order: IntVector, keep: int
) -> tuple[IntVector, IntVector]:
    """Return what prices must rise by, and the numbers of some columns that exceed theirs.

    Parameters
    ----------
    columns
        Coalitions of groups [c, g].
    excess
        By how much each exceeds its prices.
    order
        Groups; each pays for the coalitions of it and those before it.
    keep
        Columns for each group.
    """
    n_groups = columns.shape[1]
    raised = np.zeros(n_groups, np.int64)
    place = np.full(n_groups, -1, np.int64)
    place[order] = np.arange(len(order))
    # Groups that are left out count as infinitely late: their coalitions are nobody's.
    turn = np.where(columns, np.where(place < 0, len(order), place), -1).max(axis=1)
    found = [np.zeros(0, np.int64)]
    for number, group in enumerate(order.tolist()):
        own = np.flatnonzero(turn == number)
        over = excess[own] - columns[own] @ raised
        best = np.argsort(-over, kind="stable")[:keep]
        best = best[over[best] > 0]
        if len(best):
            raised[group] = over[best[0]]
            found.append(own[best])
    return raised, np.concatenate(found)


def plain_pivots(
    matrix: FloatMatrix,
    costs: FloatVector,
    senses: IntVector,
    basis: IntVector,
    numbers: IntVector,
    inverse: FloatMatrix,
    levels: FloatVector,
    duals: FloatVector,
    tolerance: float,
    most: int,
) -> int:
    """Do what `solvers.branch_and_price._simplex.pivots` does, on a dense matrix [columns, rows].

    `numbers` are the numbers of the columns that may enter.
    """
    limits = np.flatnonzero(senses)
    for count in range(most):
        best, entering = tolerance, None
        if len(numbers):
            reduced = costs - matrix @ duals
            place = int(np.argmax(reduced))
            if reduced[place] > best:
                best, entering = float(reduced[place]), int(numbers[place])
                direction = matrix[place] @ inverse
        if len(limits):
            slack = -senses[limits] * duals[limits]
            place = int(np.argmax(slack))
            if slack[place] > best:
                row = int(limits[place])
                best, entering = float(slack[place]), -2 - 2 * row
                direction = senses[row] * inverse[row]
        if entering is None:
            return count
        steep = np.flatnonzero(direction > 1e-9)
        if not len(steep):
            return count
        ratios = levels[steep] / direction[steep]
        near = steep[ratios <= ratios.min() + 1e-12]
        leaving = int(near[np.argmax(direction[near])])
        step = max(0.0, float(levels[leaving] / direction[leaving]))
        np.maximum(levels - step * direction, 0.0, out=levels)
        levels[leaving] = step
        basis[leaving] = entering
        factor = inverse[:, leaving] / direction[leaving]
        inverse -= factor[:, None] * direction
        inverse[:, leaving] = factor
        duals += best * factor
    return most
