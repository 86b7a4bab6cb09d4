r"""What can be decided without search: pairs that some best structure has together.

If i and j are apart in a structure, i could move to j's coalition or j to i's. The two changes of
value add up to at least :math:`2 w_{ij} - \sum_{k \ne i,j} |w_{ik} - w_{jk}|`, and the first alone
is at least :math:`w_{ij} - \sum_{k \ne i,j} |w_{ik}|`. So some best structure has
them together if

.. math:: 2 w_{ij} \ge \sum_{k \ne i,j} |w_{ik} - w_{jk}|
   \quad\text{or}\quad w_{ij} \ge \min_{a \in \{i,j\}} \sum_{k \ne i,j} |w_{ak}|.

The first rule unites players that are as good as twins, the second a player with the only partner
that matters to it. A merged pair is one node with the sums of both rows, and the rules apply again.
Weights far below what any coalition can make up for are raised to the least that still keeps a pair
apart: no best structure changes, and numbers stay small.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from solvers.branch_and_cut.problem import IntMatrix

BoolVector: TypeAlias = NDArray[np.bool_]


def trimmed(weights: IntMatrix) -> IntMatrix:
    r"""Return the weights with those below −(min(P_i, P_j) + 1) raised to that.

    P_i is the sum of the positive weights of i. A coalition with a pair of such a weight gains if
    one of the two leaves, before and after. Weights only grow, so a bound on the trimmed graph is
    a bound on the graph.
    """
    gains = np.maximum(weights, 0).sum(axis=1)
    least = -(np.minimum(gains[:, None], gains[None, :]) + 1)
    return cast(IntMatrix, np.maximum(weights, least))


def may_merge(weights: IntMatrix, i: int, j: int) -> bool:
    """Tell whether a rule puts nodes i and j together, in exact arithmetic."""
    w = int(weights[i, j])
    if w < 0:
        return False
    one: Any = weights[i].copy()
    two: Any = weights[j].copy()
    one[[i, j]] = 0
    two[[i, j]] = 0
    if 2 * w >= int(np.abs(one - two).sum()):
        return True
    return w >= min(int(np.abs(one).sum()), int(np.abs(two).sum()))


def merge(weights: IntMatrix, i: int, j: int) -> None:
    """Add row and column j to those of i, in place, and clear them."""
    weights[i] += weights[j]
    weights[:, i] += weights[:, j]
    weights[j] = 0
    weights[:, j] = 0
    weights[i, i] = 0


def merges(weights: IntMatrix) -> list[tuple[int, int]]:
    """Return pairs of nodes that the rules put together, in an order in which they apply.

    Node j of a pair (i, j) is part of node i from then on.
    """
    left = weights.copy()
    alive = np.ones(len(weights), np.bool_)
    found: list[tuple[int, int]] = []
    while True:
        pairs = _mergeable(left, alive)
        before = len(found)
        for i, j in pairs:
            # A merger changes the rows of others, so each pair is looked at again.
            if alive[i] and alive[j] and may_merge(left, i, j):
                merge(left, i, j)
                alive[j] = False
                found.append((i, j))
        if len(found) == before:
            return found


def _mergeable(weights: IntMatrix, alive: BoolVector) -> list[tuple[int, int]]:
    """Return the pairs that a rule puts together."""
    n = len(weights)
    size = np.abs(weights).sum(axis=1)
    pendant = 2 * weights >= np.minimum(size[:, None], size[None, :])
    # Sums over some players, then over all: few pairs get that far. |w_ij| counts twice in them.
    room = 4 * weights
    for column in weights.T[:32]:
        room -= np.abs(column[:, None] - column[None, :])
    possible = np.triu((weights >= 0) & (pendant | (room >= 0)), 1)
    first, second = np.nonzero(possible & alive[:, None] & alive[None, :])
    fits = pendant[first, second]
    at_once = max(1, 4_000_000 // n)
    for start in range(0, len(first), at_once):
        i, j = first[start : start + at_once], second[start : start + at_once]
        apart = np.abs(weights[i] - weights[j]).sum(axis=1)
        fits[start : start + at_once] |= 4 * weights[i, j] >= apart
    return list(zip(first[fits].tolist(), second[fits].tolist(), strict=True))
