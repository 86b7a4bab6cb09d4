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

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from coalitions.game import IntMatrix
from solvers.branch_and_cut.plain import is_plain, plain_merges


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


def merges(
    weights: IntMatrix, expired: Callable[[], bool] = lambda: False
) -> list[tuple[int, int]]:
    """Return pairs of nodes that the rules put together, in an order in which they apply.

    Node j of a pair (i, j) is part of node i from then on. Sums of weights must fit int64 with two
    bits to spare. Where time has `expired`, the pairs found so far are the answer.
    """
    if is_plain(len(weights)):
        return plain_merges(weights)
    from solvers.branch_and_cut._merge_kernels import merge_pass

    left = weights.copy()
    sizes = np.abs(weights).sum(axis=1)
    alive = np.ones(len(weights), np.bool_)
    pairs = np.empty((len(weights), 2), np.int64)
    found: list[tuple[int, int]] = []
    # A merger can make a pair fit that was passed before.
    while n_merged := merge_pass(left, sizes, alive, pairs):
        found += [(i, j) for i, j in pairs[:n_merged].tolist()]
        if expired():
            break
    return found
