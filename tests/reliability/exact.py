"""The best structure of a small graph in exact arithmetic, by looking at all of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from coalitions import CoalitionStructure, SynergyGraph

_PARTITIONS: dict[int, np.ndarray] = {}


def partitions(n: int) -> np.ndarray:
    """Return the labels of all partitions [k, n]."""
    if n not in _PARTITIONS:
        _PARTITIONS[n] = np.array(list(all_labels(n)), np.int8)
    return _PARTITIONS[n]


def exact_value(graph: SynergyGraph, structure: CoalitionStructure) -> Fraction:
    """Return the value of a structure without any rounding."""
    labels, (i, j, weight) = structure.labels, graph.edges
    return sum(map(Fraction, weight[labels[i] == labels[j]].tolist()), Fraction(0))


def exact_optimum(graph: SynergyGraph, must_link=(), cannot_link=(), allowed=None) -> Fraction:
    """Return the value of the best structure that meets the demands, without any rounding."""
    labels = partitions(graph.n_players)
    if allowed is not None:
        labels = labels[[allowed(row) for row in labels]]
    for a, b in must_link:
        labels = labels[labels[:, a] == labels[:, b]]
    for a, b in cannot_link:
        labels = labels[labels[:, a] != labels[:, b]]
    i, j, weight = graph.edges
    exact = list(map(Fraction, weight.tolist()))
    common = max((number.denominator for number in exact), default=1)  # a power of two
    whole = [int(number * common) for number in exact]
    together = labels[:, i] == labels[:, j]
    values = np.zeros(len(labels), object)
    for shift in range(0, max((abs(k).bit_length() for k in whole), default=0), 40):
        digits = [(abs(k) >> shift & (1 << 40) - 1) * (1 if k > 0 else -1) for k in whole]
        values = values + (together @ np.array(digits, np.int64)).astype(object) * (1 << shift)
    return Fraction(int(max(values)), common)


def assert_honest(graph: SynergyGraph, solution, optimum: Fraction, *, exact: bool) -> None:
    """Assert that value, bound and `optimal` are right, and that an exact method found the best."""
    value, tolerance = exact_value(graph, solution.structure), Fraction(1e-9)
    allowed = tolerance * Fraction(solution.positive_weight)
    assert solution.value == float(value)
    assert Fraction(solution.bound) >= optimum or solution.bound == float(optimum)
    if solution.optimal or exact:
        assert optimum - value <= allowed
    if exact:
        assert solution.optimal


def all_labels(n, prefix=()):
    """Give every partition of n players, as block numbers in the order of first appearance."""
    if len(prefix) == n:
        yield prefix
        return
    for block in range(max(prefix, default=-1) + 2):
        yield from all_labels(n, (*prefix, block))
