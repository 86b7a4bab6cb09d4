"""Local search on a whole graph, as `local-search` does it, until it ends or time is up."""

from __future__ import annotations

import numpy as np

from coalitions.game import IntVector
from coalitions.graph import SynergyGraph
from solvers.local_search import sparse as _sparse
from solvers.local_search.dense_search import search_matrix
from solvers.local_search.descent import improve
from solvers.local_search.random_state import random_state
from solvers.local_search.slices import fits_table, leaving_time_to_close, matrix_of, run_slices
from solvers.local_search.sparse_search import search_edges
from solvers.preparation.components import numbered
from solvers.solver import Limits

EVERYBODY = np.iinfo(np.int64).max


def searched(
    graph: SynergyGraph,
    limits: Limits,
    start: IntVector | None,
    *,
    bound: float,
    effort: float = 1.0,
) -> tuple[IntVector, int]:
    """Return the best labels found from `start`, or from players alone, and the slices it took.

    It ends by itself, at the latest where a value reaches the bound.
    """
    n = graph.n_players
    start = None if start is None else numbered(start)
    first = np.arange(n) if start is None else start
    on_matrix = fits_table(graph)
    hurried = leaving_time_to_close(limits, n) if on_matrix else limits
    if hurried.expired and start is not None:
        return start, 0
    # Whatever ends the search, a last descent leaves nobody who would rather be elsewhere.
    state = random_state(limits.seed, 1)
    if on_matrix:
        weights = matrix_of(graph)
        search = search_matrix(
            weights, start, seed=limits.seed, effort=effort, expired=lambda: hurried.expired
        )
        labels, slices = run_slices(search, (-np.inf, first), bound, hurried)
        _, labels = improve(weights, numbered(labels), 0, state, lambda: limits.expired)
    else:
        rows = _sparse.rows_of(n, *graph.edges)
        search = search_edges(rows, start, seed=limits.seed, effort=effort)
        value = float(_sparse.value_of(rows, first))
        labels, slices = run_slices(search, (value, first), bound, limits)
        labels = labels.copy()
        _sparse.relocate(rows, labels, _sparse.rounding_threshold(rows), EVERYBODY, state)
    return labels, slices
