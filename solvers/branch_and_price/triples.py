r"""Triples: of the coalitions of a structure, at most one has two nodes or more of any three.

.. math:: \sum_{C : |C \cap T| \ge 2} x_C \le 1 \quad\text{for } |T| = 3

are the subset-row inequalities of [Jepsen2008]_. With :math:`y_{ij}` the share of coalitions that
hold i and j, and :math:`t_{ijk}` of those that hold all three, the left side is
:math:`y_{ij} + y_{ik} + y_{jk} - 2\,t_{ijk}`.
"""

from __future__ import annotations

import numpy as np

from coalitions.game import BoolMatrix, FloatVector, IntMatrix

LEAST_VIOLATION = 0.05
AT_ONCE = 40
"""Triples added in a round."""

EACH = 4
"""Triples added in a round that hold the same node."""


def violated(members: BoolMatrix, levels: FloatVector) -> IntMatrix:
    """Return triples whose inequality a solution of the linear program breaks, the worst first.

    Parameters
    ----------
    members
        Columns in use [k, n].
    levels
        How much of each [k].
    """
    used = members.astype(np.float64)
    shared = (used * levels[:, None]).T @ used
    np.fill_diagonal(shared, 0.0)
    i, j = np.nonzero(np.triu((shared > 1e-3) & (shared < 1.0 - 1e-3)))
    all_three = (used[:, i] * used[:, j] * levels[:, None]).T @ used
    excess = shared[i, j][:, None] + shared[i] + shared[j] - 2.0 * all_three - 1.0
    rows = np.arange(len(i))
    excess[rows, i] = excess[rows, j] = 0.0
    row, k = np.nonzero(excess > LEAST_VIOLATION)
    triples = np.sort(np.stack((i[row], j[row], k), axis=1), axis=1)
    triples, place = np.unique(triples, axis=0, return_index=True)
    worst_first = np.argsort(-excess[row, k][place], kind="stable")
    chosen: list[list[int]] = []
    holding = np.zeros(members.shape[1], np.int64)
    for triple in triples[worst_first].tolist():
        if len(chosen) < AT_ONCE and holding[triple].max() < EACH:
            holding[triple] += 1
            chosen.append(triple)
    return np.array(chosen, np.int64).reshape(-1, 3)
