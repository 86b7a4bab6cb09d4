"""Search on edges: multi-level moves, annealing between levels, and crossover of structures."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coalitions.game import IntVector
from solvers.heuristics._sparse_kernels import (
    Rows,
    anneal,
    annealing,
    contracted,
    relocate,
    renumber,
    rounding_threshold,
    value_of,
)
from solvers.heuristics.random_numbers import random_state
from solvers.reductions import numbered
from solvers.solver import Improvement

# `python benchmarks/heuristics.py sparse` shows what a change of these does.

POPULATION = 6
PATIENCE = 12
"""Crossovers in a row without a new best structure after which the search ends."""

HOT, COLD = 0.05, 0.02
"""First and last temperature of an annealing, in units of the root mean square of Σ_j w_ij²."""

SWEEPS = 150
ASKED = 500_000
"""Players asked between two glances at the clock."""


def search_edges(
    rows: Rows, start: IntVector | None, *, seed: int, effort: float
) -> Iterator[Improvement]:
    """Give ever better partitions of a sparse graph.

    The structures of a small population come from multi-level moving of players and of whole
    blocks [Blondel2008]_ and from annealing on the groups that this forms. Then two structures at a
    time are crossed: players that are together in both become one node, and the search goes on in
    that much smaller graph [Ovelgoenne2012]_. A child takes the place of the worst structure it
    beats. Ends when `PATIENCE` × `effort` children in a row were no new best.
    """
    n = len(rows.first) - 1
    population: list[Improvement] = []
    for member in range(POPULATION):
        first = np.arange(n) if start is None or member else start
        child = _Child(rows, seed, member)
        yield from child.grow(first)
        population.append(child.result)
    choose = np.random.default_rng([seed, POPULATION])
    best = max(value for value, _ in population)
    failures, member = 0, POPULATION
    while failures < PATIENCE * effort:
        a, b = choose.choice(POPULATION, 2, replace=False)
        child = _Child(rows, seed, member)
        yield from child.cross(population[a], population[b])
        member += 1
        value, labels = child.result
        worst = min(range(POPULATION), key=lambda m: population[m][0])
        if value > population[worst][0] and all(value != known for known, _ in population):
            population[worst] = value, labels
        failures = 0 if value > best else failures + 1
        best = max(best, value)


class _Child:
    """A structure in the making; `result` holds the best one it was."""

    def __init__(self, rows: Rows, *seed: int) -> None:
        self._rows = rows
        self._state = random_state(*seed)
        self._threshold = rounding_threshold(rows)
        self.result: Improvement = (-np.inf, np.arange(len(rows.first) - 1))

    def grow(self, labels: IntVector) -> Iterator[Improvement]:
        """Improve a partition from the players up, then anneal it on the groups they form."""
        labels = labels.copy()
        yield from self._settle(labels)
        fine = np.arange(len(labels))
        relocate(self._rows, fine, self._threshold, ASKED, self._state)
        groups = _common(fine, labels)
        yield from self._anneal_groups(groups, labels)
        yield from self._settle(labels)

    def cross(self, one: Improvement, other: Improvement) -> Iterator[Improvement]:
        """Improve the better of two partitions on the groups that are together in both."""
        groups = _common(one[1], other[1])
        labels = max(one, other, key=lambda parent: parent[0])[1].copy()
        yield from self._anneal_groups(groups, labels)
        yield from self._settle(labels)

    def _settle(self, labels: IntVector) -> Iterator[Improvement]:
        """Move players, then blocks, then blocks of blocks …, until no move at any level gains."""
        while True:
            yield from self._relocate(self._rows, labels)
            yield self._keep(labels)
            before = renumber(labels)
            level, top, merged = contracted(self._rows, labels), np.arange(before), before
            while True:
                upper = np.arange(merged)
                yield from self._relocate(level, upper)
                fewer = renumber(upper)
                top = upper[top]
                if fewer == merged:
                    break
                level, merged = contracted(level, upper), fewer
            labels[:] = top[labels]
            if merged == before:
                break

    def _relocate(self, rows: Rows, labels: IntVector) -> Iterator[Improvement]:
        """Relocate in slices."""
        while relocate(rows, labels, self._threshold, ASKED, self._state)[1] >= ASKED:
            yield self.result

    def _anneal_groups(self, groups: IntVector, labels: IntVector) -> Iterator[Improvement]:
        """Anneal `labels`, in place, on the graph of groups that each lie inside a block."""
        level = contracted(self._rows, groups)
        upper = np.zeros(int(groups.max()) + 1, np.int64)
        upper[groups] = numbered(labels)
        n_groups = len(upper)
        n_blocks = int(upper.max()) + 1
        if n_blocks == n_groups or not len(level.weights):
            return
        now = annealing(level, upper)
        scale = float(np.sqrt((level.weights**2).sum() / n_groups))
        at_once = 1 + 20_000_000 * n_groups // (len(level.weights) + n_groups)
        for temperature in scale * np.geomspace(HOT, COLD, SWEEPS):
            proposals = 4 * n_groups
            while proposals > 0:
                # Blocks may grow in number a little: a hot start would dissolve all of them.
                limit = n_blocks + 2 + n_blocks // 8
                anneal(level, now, temperature, min(proposals, at_once), limit, self._state)
                proposals -= at_once
                yield self.result
        labels[:] = now.labels[groups]
        renumber(labels)

    def _keep(self, labels: IntVector) -> Improvement:
        value = value_of(self._rows, labels)
        if value > self.result[0]:
            self.result = value, labels.copy()
        return self.result


def _common(one: IntVector, other: IntVector) -> IntVector:
    """Return the groups of players that are together in both partitions, numbered 0 … k−1."""
    return numbered(numbered(one) * (int(other.max()) + 1) + other)
