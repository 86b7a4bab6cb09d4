"""The best value of a small graph without any rounding, by a dynamic program over subsets.

Floats are whole numbers of some power of two, so sums of them are exact in Python's integers. This
shares no code with any solver.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from coalitions import CoalitionStructure, SynergyGraph

Pairs = Iterable[tuple[int, int]]


def exact_value(graph: SynergyGraph, structure: CoalitionStructure) -> Fraction:
    """Return what a structure is worth."""
    labels = structure.labels.tolist()
    i, j, weight = (column.tolist() for column in graph.edges)
    pairs = zip(i, j, weight, strict=True)
    return sum((Fraction(w) for a, b, w in pairs if labels[a] == labels[b]), Fraction(0))


def positive_sum(graph: SynergyGraph) -> Fraction:
    """Return the sum of the positive weights: the scale of "optimal"."""
    return sum((Fraction(w) for w in graph.edges.weight.tolist() if w > 0), Fraction(0))


def meets(structure: CoalitionStructure, must_link: Pairs = (), cannot_link: Pairs = ()) -> bool:
    """Tell whether a structure has the demanded pairs together and the forbidden ones apart."""
    labels = structure.labels.tolist()
    together = all(labels[a] == labels[b] for a, b in must_link)
    return together and all(labels[a] != labels[b] for a, b in cannot_link)


def exact_optimum(graph: SynergyGraph, must_link: Pairs = (), cannot_link: Pairs = ()) -> Fraction:
    r"""Return the largest value of all structures that meet the demands.

    With v(T) the value of coalition T, and T running over the subsets that hold the first player
    of S,

    .. math:: best(S) = \max_T v(T) + best(S \setminus T).
    """
    n = graph.n_players
    weights, unit = _integers(graph)
    # Worse than all else together: a structure that breaks a demand is never the best.
    broken = -(2 * sum(abs(w) for row in weights for w in row) + 1)
    value = _values(weights, n)
    masks = np.arange(1 << n)
    for a, b in must_link:
        value[(masks >> a & 1) != (masks >> b & 1)] = broken
    for a, b in cannot_link:
        value[(masks >> a & masks >> b & 1) == 1] = broken
    best: Any = np.zeros(1 << n, object)
    for sets, parts, starts in _levels(n):
        worth = value[parts] + best[np.repeat(sets, np.diff([*starts, len(parts)])) ^ parts]
        best[sets] = np.maximum.reduceat(worth, starts)
    assert 2 * best[-1] > broken, "no structure meets the demands"
    return best[-1] * unit


def _integers(graph: SynergyGraph) -> tuple[list[list[int]], Fraction]:
    """Return the weights as whole numbers of a unit, exactly."""
    n = graph.n_players
    exact = [[Fraction(0)] * n for _ in range(n)]
    for a, b, w in zip(*(column.tolist() for column in graph.edges), strict=True):
        exact[a][b] = exact[b][a] = Fraction(w)
    # Denominators are powers of two: the largest is a multiple of all others.
    scale = max(w.denominator for row in exact for w in row)
    return [[int(w * scale) for w in row] for row in exact], Fraction(1, scale)


def _values(weights: list[list[int]], n: int) -> Any:  # object[2^n]
    """Return what each set of players is worth as one coalition; player i is bit i."""
    value: Any = np.zeros(1, object)
    for i in range(n):
        gain: Any = np.zeros(1, object)
        for j in range(i):
            gain = np.concatenate([gain, gain + weights[i][j]])
        value = np.concatenate([value, value + gain])
    return value


@functools.cache
def _levels(n: int) -> list[tuple[Any, Any, Any]]:
    """Return for each size: sets, their subsets with the first player, and where these begin."""
    levels = []
    for size in range(1, n + 1):
        sets, parts, starts = [], [], []
        for whole in range(1, 1 << n):
            if whole.bit_count() != size:
                continue
            first = whole & -whole
            rest = part = whole ^ first
            sets.append(whole)
            starts.append(len(parts))
            parts.append(whole)
            while part:
                part = (part - 1) & rest
                parts.append(part | first)
        levels.append((np.array(sets), np.array(parts), np.array(starts)))
    return levels
