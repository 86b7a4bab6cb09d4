"""Interaction indices of a game whose values are all known."""

from __future__ import annotations

import numpy as np

from coalitions.game import FloatVector
from coalitions.joint.coalitions import Parts, gathered, listed
from coalitions.joint.index import Index


def indices_of_table(table: FloatVector, index: Index) -> Parts:
    """Return the index of all coalitions up to the order from the 2^n values.

    Each point of the measures takes n 2^n operations, and there are about n/2 of them, or one.
    """
    n = len(table).bit_length() - 1
    places = {size: (1 << listed(n, size)).sum(axis=1) for size in index.sizes()}
    plain = {size: np.zeros(len(places[size])) for size in index.sizes()}
    weights: dict[float, dict[int, float]] = {}
    for size in index.sizes():
        for point, weight in zip(*index.measure(size, n), strict=True):
            weights.setdefault(float(point), {})[size] = float(weight)
    values = table - table[0]  # a constant cancels; rounding is relative to what remains
    for point, by_size in weights.items():
        expected = expected_contributions(values, point)
        for size, weight in by_size.items():
            plain[size] += weight * expected[places[size]]
    if 0 in plain:
        plain[0] += table[0]
    return gathered(index, plain, n)


def expected_contributions(table: FloatVector, p: float) -> FloatVector:
    """Return the expected joint contribution of every S if others join with probability p.

    It is a product transform: each player replaces the two halves (a, b) of the table by
    ((1 − p) a + p b, b − a).
    """
    result = table.copy()
    half = 1
    while half < len(table):
        blocks = result.reshape(-1, 2, half)
        difference = blocks[:, 1] - blocks[:, 0]
        blocks[:, 0] += p * difference
        blocks[:, 1] = difference
        half *= 2
    return result
