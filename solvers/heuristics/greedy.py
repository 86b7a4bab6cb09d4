"""Greedy unions: the fastest structure worth looking at, with a cheap bound."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.game import IntVector
from coalitions.graph import SynergyGraph
from solvers.demands import Sizes
from solvers.solver import (
    ALWAYS_DENSE,
    DENSE_PLAYERS,
    SOLVERS,
    Answer,
    Limits,
    Solver,
    matrix_of,
    refuse_if_no_table,
    synergies_between,
)

MATRIX_SHARE = 0.02
"""With fewer of the pairs than this, unions by edges beat those on a matrix."""

GRACE = 0.5
"""Seconds of CPU time that unions may take in any case: at n = 5000 all of them take half of it,
and a descent from players who are alone, the only other way to an answer, takes all of it."""

SECONDS_PER_EDGE = 3.2e-6
"""What all unions by edges take, per edge, which nobody can stop; measured on a million of them
(`python -m benchmarks.constants SECONDS_PER_EDGE --edges 1000000`)."""


@SOLVERS.register("greedy")
@dataclass(frozen=True)
class Greedy(Solver):
    """Unite the two coalitions with the highest synergy until no union gains [Keuper2015]_.

    Everybody starts alone, or in `warm_start`. In the end players may still go over to a coalition
    they gain more in. No randomness: the seed makes no difference.
    """

    exact: ClassVar[bool] = False

    @property
    def takes_sizes(self) -> bool:
        """Players move and change places towards the demands first, then towards value."""
        return True

    def search(
        self,
        graph: SynergyGraph,
        *,
        limits: Limits,
        warm_start: IntVector | None = None,
        sizes: Sizes | None = None,
    ) -> Answer:
        """Return the structure and the cycle-packing bound; with sizes, see `sized_start`."""
        from solvers.heuristics.bounds import cycle_packing_bound

        if sizes is not None:
            from solvers.heuristics.bounds import sized_bound

            labels = sized_start(graph, sizes, limits, warm_start)
            return Answer(labels, sized_bound(graph, sizes, limits=limits))
        labels = united(graph, limits, warm_start)
        return Answer(labels, cycle_packing_bound(graph, limits=limits))


def sized_start(
    graph: SynergyGraph, sizes: Sizes, limits: Limits, start: IntVector | None = None
) -> IntVector:
    """Return a structure that meets demands, worth no less than `start` if that meets them.

    Raises
    ------
    InfeasibleError
        No structure meets the demands.
    NoSolutionError
        None was found.
    """
    from solvers.heuristics.sized_search import improved, repaired

    refuse_if_no_table(graph)
    weights = matrix_of(graph)
    if start is not None and sizes.met_by(start):
        return improved(weights, sizes, start, rounds=0, expired=lambda: limits.expired)
    return repaired(weights, sizes, start, expired=lambda: limits.expired)


def united(graph: SynergyGraph, limits: Limits, start: IntVector | None = None) -> IntVector:
    """Return the labels that greedy answers with; everybody alone, or `start`, is the beginning."""
    from solvers.reductions import numbered

    labels = np.arange(graph.n_players) if start is None else numbered(start)
    unite = _on_matrix if _has_many_edges(graph) else _on_edges
    return unite(graph, labels, limits)


def _has_many_edges(graph: SynergyGraph) -> bool:
    """Tell whether unions are faster on a matrix: at n = 5000 from 2 % of the pairs on."""
    n = graph.n_players
    enough = len(graph.edges.weight) >= MATRIX_SHARE * n * (n - 1) / 2
    return n <= ALWAYS_DENSE or (n <= DENSE_PLAYERS and enough)


def _on_matrix(graph: SynergyGraph, start: IntVector, limits: Limits) -> IntVector:
    from solvers.heuristics import _dense_kernels as _dense
    from solvers.heuristics import _greedy_kernels as _greedy
    from solvers.heuristics.random_numbers import random_state

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
    highest = between[np.arange(n), partner]
    # A union looks at all pairs at worst: less than a tenth of a second between two glances.
    steps = 1 + 20_000_000 // (n * n)
    began = time.thread_time()
    while not limits.expired or (
        time.thread_time() - began < GRACE and not limits.interrupted.is_set()
    ):
        if _greedy.unite_on_matrix(between, highest, partner, labels, steps) < steps:
            break
    table = _dense.tabulate(weights, labels)
    _dense.relocate(table, _dense.rounding_threshold(weights), random_state(0))
    slots: IntVector = table.slots
    return slots


def _on_edges(graph: SynergyGraph, start: IntVector, limits: Limits) -> IntVector:
    from solvers.heuristics import _greedy_kernels as _greedy
    from solvers.heuristics import _sparse_kernels as _sparse
    from solvers.heuristics.random_numbers import random_state

    rows = _sparse.rows_of(graph.n_players, *graph.edges)
    labels = start.copy()
    seconds = 0.0 if limits.interrupted.is_set() else max(GRACE, limits.seconds_left)
    if seconds > SECONDS_PER_EDGE * len(graph.edges.weight):
        between = _sparse.edges_of(_sparse.contracted(rows, start))
        labels = _greedy.unite_on_edges(int(start.max()) + 1, *between)[start]
    threshold = _sparse.rounding_threshold(rows)
    _sparse.relocate(rows, labels, threshold, np.iinfo(np.int64).max, random_state(0))
    return labels
