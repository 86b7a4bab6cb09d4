"""Local search: good structures of graphs up to hundreds of thousands of players."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import IntVector
from coalitions.graph import SynergyGraph, weight_sum
from solvers.sizes import Sizes
from solvers.solver import SOLVERS, Answer, Limits, Solver

SHARE_OF_BOUND = 0.25
"""Part of the time that the bound may take."""


@SOLVERS.register("local-search")
@dataclass(frozen=True)
class LocalSearch(Solver):
    """Move, swap, merge and split; disturb, or anneal and cross over; keep the best.

    Up to 150 players this is an iterated local search, and above 40 then annealing with the
    merge–divide crossover of [Lu2021]_; above 150 only that. A graph with few edges is searched by
    its edges, on several levels, without a matrix. The bound is that of `cycle_packing_bound`.

    Attributes
    ----------
    effort
        How long to go on without success, as a multiple of the default.
    """

    exact: ClassVar[bool] = False
    effort: float = 1.0

    def __post_init__(self) -> None:
        if not self.effort > 0:
            raise InvalidInputError(f"effort is {self.effort}; it must be a positive number")

    @property
    def takes_sizes(self) -> bool:
        """Annealing pays for every step away from the demands."""
        return True

    def search(
        self,
        graph: SynergyGraph,
        *,
        limits: Limits,
        warm_start: IntVector | None = None,
        sizes: Sizes | None = None,
    ) -> Answer:
        """Return the best structure found and the cycle-packing bound."""
        if sizes is not None:
            return self._search_sized(graph, limits, warm_start, sizes)
        from solvers.local_search import sparse as _sparse
        from solvers.local_search.bounds import cycle_packing_bound
        from solvers.local_search.dense_search import search_matrix
        from solvers.local_search.descent import improve
        from solvers.local_search.random_state import random_state
        from solvers.local_search.slices import (
            fits_table,
            leaving_time_to_close,
            matrix_of,
            run_slices,
        )
        from solvers.local_search.sparse_search import search_edges
        from solvers.preparation.components import numbered

        n = graph.n_players
        start = None if warm_start is None else numbered(warm_start)
        first = np.arange(n) if start is None else start
        bound = cycle_packing_bound(graph, limits=limits.part(SHARE_OF_BOUND))
        hurried = leaving_time_to_close(limits, n) if fits_table(graph) else limits
        if hurried.expired and start is not None:
            return Answer(start, bound, {"slices": 0})
        # Whatever ends the search, a last descent leaves nobody who would rather be elsewhere.
        state = random_state(limits.seed, 1)
        if fits_table(graph):
            weights = matrix_of(graph)
            search = search_matrix(
                weights,
                start,
                seed=limits.seed,
                effort=self.effort,
                expired=lambda: hurried.expired,
            )
            labels, slices = run_slices(search, (-np.inf, first), bound, hurried)
            _, labels = improve(weights, numbered(labels), 0, state, lambda: limits.expired)
        else:
            rows = _sparse.rows_of(n, *graph.edges)
            search = search_edges(rows, start, seed=limits.seed, effort=self.effort)
            value = float(_sparse.value_of(rows, first))
            labels, slices = run_slices(search, (value, first), bound, limits)
            labels = labels.copy()
            everybody = np.iinfo(np.int64).max
            _sparse.relocate(rows, labels, _sparse.rounding_threshold(rows), everybody, state)
        return Answer(labels, bound, {"slices": slices})

    def _search_sized(
        self, graph: SynergyGraph, limits: Limits, warm_start: IntVector | None, sizes: Sizes
    ) -> Answer:
        """Begin with what greedy finds; anneal, several times, and keep the best."""
        from solvers.heuristics.greedy import sized_start
        from solvers.local_search.sized import search_sized
        from solvers.local_search.sized_bound import sized_bound
        from solvers.local_search.slices import matrix_of, run_slices

        start = sized_start(graph, sizes, limits, warm_start)
        bound = sized_bound(graph, sizes, limits=limits.part(SHARE_OF_BOUND))
        value = _worth(graph, start)
        search = search_sized(matrix_of(graph), sizes, start, seed=limits.seed, effort=self.effort)
        if limits.expired:
            return Answer(start, bound, {"slices": 0})
        labels, slices = run_slices(search, (value, start), bound, limits)
        # What the search adds up may be a rounding off.
        return Answer(labels if _worth(graph, labels) > value else start, bound, {"slices": slices})


def _worth(graph: SynergyGraph, labels: IntVector) -> float:
    i, j, weight = graph.edges
    return weight_sum(weight[labels[i] == labels[j]])
