"""Greedy unions: the fastest structure worth looking at, with a cheap bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.game import IntVector
from coalitions.graph import SynergyGraph
from solvers.solver import SOLVERS, Answer, Limits, Sizes, Solver


@SOLVERS.register("greedy")
@dataclass(frozen=True)
class Greedy(Solver):
    """Unite the two coalitions with the highest synergy until no union gains [Keuper2015]_.

    Everybody starts alone, or in `warm_start`. In the end players may still go over to a coalition
    they gain more in. No randomness: the seed makes no difference.
    """

    exact: ClassVar[bool] = False

    def search(
        self,
        graph: SynergyGraph,
        *,
        limits: Limits,
        warm_start: IntVector | None = None,
        sizes: Sizes | None = None,
    ) -> Answer:
        """Return the structure and the cycle-packing bound."""
        from solvers.local_search.bounds import cycle_packing_bound
        from solvers.local_search.slices import fits_table
        from solvers.preparation.components import numbered

        start = np.arange(graph.n_players) if warm_start is None else numbered(warm_start)
        unite = _on_matrix if fits_table(graph) else _on_edges
        labels = unite(graph, start, limits)
        return Answer(labels, cycle_packing_bound(graph, limits=limits))


def _on_matrix(graph: SynergyGraph, start: IntVector, limits: Limits) -> IntVector:
    from solvers.heuristics import _greedy
    from solvers.local_search import dense as _dense
    from solvers.local_search.random_state import random_state
    from solvers.local_search.slices import matrix_of, synergies_between

    weights = matrix_of(graph)
    n = len(weights)
    blocks = int(start.max()) + 1
    if np.array_equal(start, np.arange(n)):
        between = weights.copy()
    else:
        between = np.full((n, n), -np.inf)
        between[:blocks, :blocks] = synergies_between(weights, start)
    np.fill_diagonal(between, -np.inf)
    labels = start.copy()
    partner = between.argmax(axis=1)
    # A union looks at all pairs at worst: less than a tenth of a second between two glances.
    steps = 1 + 20_000_000 // (n * n)
    while not limits.expired:
        if _greedy.unite_on_matrix(between, partner, labels, steps) < steps:
            break
    table = _dense.tabulate(weights, labels)
    _dense.relocate(table, _dense.rounding_threshold(weights), random_state(0))
    slots: IntVector = table.slots
    return slots


def _on_edges(graph: SynergyGraph, start: IntVector, limits: Limits) -> IntVector:
    from solvers.heuristics import _greedy
    from solvers.local_search import sparse as _sparse
    from solvers.local_search.random_state import random_state

    rows = _sparse.rows_of(graph.n_players, *graph.edges)
    if limits.expired:
        return start
    between = _sparse.edges_of(_sparse.contracted(rows, start))
    labels: IntVector = _greedy.unite_on_edges(int(start.max()) + 1, *between)[start]
    threshold = _sparse.rounding_threshold(rows)
    _sparse.relocate(rows, labels, threshold, np.iinfo(np.int64).max, random_state(0))
    return labels
