"""What the heuristics share: how a graph is stored for search, and how a search is run in slices.

A search is a generator that gives (value, labels) every few milliseconds, the best it has so far;
`run_slices` looks at the clock in between. No kernel ever has to.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import FloatMatrix, IntVector
from coalitions.graph import SynergyGraph
from solvers.solver import Limits, Progress, is_ctrl_c

Improvement: TypeAlias = tuple[float, IntVector]

DENSE_PLAYERS = 8192
"""Above this many players the gain table would take more than half a gigabyte."""

ALWAYS_DENSE = 300
"""Up to this many players a table is small, however few edges there are."""

DENSE_SHARE = 0.1
"""With fewer of the pairs than this, summing over neighbours beats a table of gains."""

REPORT_EVERY = 0.2
"""Seconds between two reports of progress."""


CLOSING_PER_PAIR = 3e-8
"""Seconds per n² that come after a search on a matrix: a last descent, and the price."""


def fits_table(graph: SynergyGraph) -> bool:
    """Tell whether a graph is searched on a full matrix rather than on its edges."""
    n = graph.n_players
    if n <= ALWAYS_DENSE:
        return True
    if n > DENSE_PLAYERS:
        return False
    return len(graph.edges.weight) >= DENSE_SHARE * n * (n - 1) / 2


def refuse_if_no_table(graph: SynergyGraph) -> None:
    """Raise if a graph has too many players for a full matrix, and say what to do."""
    if graph.n_players > DENSE_PLAYERS:
        raise InvalidInputError(
            f"demands on coalitions are honoured for at most {DENSE_PLAYERS} players, but there are"
            f" {graph.n_players}; leave out sizes, counts, weights and roles, or split the graph"
        )


def matrix_of(graph: SynergyGraph) -> FloatMatrix:
    """Return the synergies as a fresh matrix [n, n], whatever the graph is made of."""
    if not graph.is_sparse:
        return graph.matrix.copy()
    i, j, weight = graph.edges
    matrix = np.zeros((graph.n_players, graph.n_players))
    matrix[i, j] = matrix[j, i] = weight
    return matrix


def synergies_between(weights: FloatMatrix, groups: IntVector) -> FloatMatrix:
    """Return the synergies between groups numbered 0 … k−1 [k, k], with zeros on the diagonal."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(int(groups.max()) + 1))
    rows = np.add.reduceat(weights[order], starts, axis=0)
    between: FloatMatrix = np.add.reduceat(rows[:, order], starts, axis=1)
    np.fill_diagonal(between, 0.0)
    return between


def leaving_time_to_close(limits: Limits, n_players: int) -> Limits:
    """Return limits that end a little earlier: what comes after a search takes time, too."""
    if limits.deadline is None:
        return limits
    return replace(limits, deadline=limits.deadline - CLOSING_PER_PAIR * n_players**2)


def run_slices(
    search: Iterator[Improvement], start: Improvement, bound: float, limits: Limits
) -> tuple[IntVector, int]:
    """Return the best labels of a search within the limits, and how many slices it took.

    Ends with the search, at the deadline, at Ctrl-C, or when the bound is reached. Never worse than
    `start`.
    """
    began = reported = time.monotonic()
    (value, labels), slices = start, 0
    try:
        for found, partition in search:
            slices += 1
            if found > value:
                value, labels = found, partition.copy()
            now = time.monotonic()
            if limits.report is not None and now - reported > REPORT_EVERY:
                reported = now
                limits.report(Progress(value, bound, now - began))
            if limits.expired or value >= bound:
                break
    except (KeyboardInterrupt, SystemError) as error:
        if not is_ctrl_c(error):
            raise
        limits.interrupted.set()
    return labels, slices
