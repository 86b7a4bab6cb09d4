r"""An interaction index as a sum over coalitions, each with a weight that depends on sizes.

.. math:: I(S) = \sum_U (-1)^{|S|-l}\,p_{|U|-l}\,v(U), \quad l = |U \cap S|,\;
          p_r = P_r \binom{n-s}{r}^{-1}.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np

from coalitions.game import BoolMatrix, FloatMatrix, FloatVector, IntMatrix
from coalitions.joint.index import Index

CHUNK = 4_000_000
"""Numbers in memory at a time."""


def coefficients(masses: FloatVector, size: int, n_players: int) -> FloatMatrix:
    """Return the weight of all U of u players together if l of S are in it [size + 1, n + 1].

    It is that of a single U times the number of coalitions of its size, so that it stays in
    range; a mean over coalitions of the size times this is their sum.
    """
    table = np.zeros((size + 1, n_players + 1))
    for inside in range(size + 1):
        for others in range(n_players - size + 1):
            u = others + inside
            ratio = comb(n_players, u) / comb(n_players - size, others)
            table[inside, u] = (-1.0) ** (size - inside) * masses[others] * ratio
    return table


def counting_sizes(index: Index, n_players: int) -> list[int]:
    """Return the sizes of coalitions whose values the index depends on."""
    sizes: set[int] = set()
    for size, masses in index.masses(n_players).items():
        for others in np.flatnonzero(masses):
            sizes.update(range(int(others), int(others) + size + 1))
    return sorted(sizes)


def blocks_of_weights(
    table: FloatMatrix, coalitions: IntMatrix, rows: BoolMatrix
) -> Iterator[tuple[slice, FloatMatrix]]:
    """Yield the weights of the rows [rows, some] for one part of the coalitions after another."""
    sizes = rows.sum(axis=1)
    step = max(1, CHUNK // max(1, len(rows)))
    columns = np.ascontiguousarray(rows.T.astype(np.int8))
    for start in range(0, len(coalitions), step):
        part = slice(start, start + step)
        inside = np.zeros((len(rows), len(coalitions[part])), np.int8)
        for place in range(coalitions.shape[1]):
            inside += columns[coalitions[part, place]].T
        yield part, table[inside, sizes[:, None]]


def weighted_sums(
    masses: FloatVector, coalitions: IntMatrix, rows: BoolMatrix, values: FloatVector
) -> FloatVector:
    """Return the sums over the rows: the index itself, if these are all that count."""
    n, size = rows.shape[1], coalitions.shape[1]
    table = coefficients(masses, size, n)
    # Of so many coalitions a few make no difference: 1e300 is as good as the number itself.
    there = np.array([min(comb(n, u), 10**300) for u in range(n + 1)], float)
    shares = values / there[rows.sum(axis=1)]
    total = np.empty(len(coalitions))
    for part, weights in blocks_of_weights(table, coalitions, rows):
        total[part] = shares @ weights
    return total
