"""Local search and multilevel search: good structures of graphs up to millions of players."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

from coalitions.errors import InvalidInputError
from coalitions.game import IntVector
from coalitions.graph import SynergyGraph, weight_sum
from solvers.demands import Sizes
from solvers.solver import SOLVERS, Answer, Limits, Solver, matrix_of, run_slices

SHARE_OF_BOUND = 0.25
"""Part of the time that the bound may take."""

SHORT, SHORT_SHARE = 4.0, 0.1
"""In fewer seconds multilevel search leaves this part to the bound, which takes about a second."""


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
        from solvers.heuristics.bounds import cycle_packing_bound
        from solvers.heuristics.dense_search import searched

        bound = cycle_packing_bound(graph, limits=limits.part(SHARE_OF_BOUND))
        labels, slices = searched(graph, limits, warm_start, bound=bound, effort=self.effort)
        return Answer(labels, bound, {"slices": slices})

    def _search_sized(
        self, graph: SynergyGraph, limits: Limits, warm_start: IntVector | None, sizes: Sizes
    ) -> Answer:
        """Begin with what greedy finds; anneal, several times, and keep the best."""
        from solvers.heuristics.bounds import sized_bound
        from solvers.heuristics.greedy import sized_start
        from solvers.heuristics.sized_search import search_sized

        start = sized_start(graph, sizes, limits, warm_start)
        bound = sized_bound(graph, sizes, limits=limits.part(SHARE_OF_BOUND))
        value = _worth(graph, start)
        search = search_sized(matrix_of(graph), sizes, start, seed=limits.seed, effort=self.effort)
        if limits.expired:
            return Answer(start, bound, {"slices": 0})
        labels, slices = run_slices(search, (value, start), bound, limits)
        # What the search adds up may be a rounding off.
        return Answer(labels if _worth(graph, labels) > value else start, bound, {"slices": slices})


@SOLVERS.register("multilevel")
@dataclass(frozen=True)
class Multilevel(Solver):
    """Move players, then groups, then groups of groups; cross structures, or anneal them.

    For graphs with few edges: pairs without one are worth nothing and cost nothing. The search is a
    row of steps that depend on the graph and the seed alone. A time limit ends it after the last
    step that was completed, so equal numbers of steps give equal answers on every machine. The
    bound is that of `cycle_packing_bound`.

    Attributes
    ----------
    effort
        How long to go on without success, as a multiple of the default.
    steps
        Most steps to make; None to go on until the search ends by itself. ``stats["steps"]`` of a
        solution says how many were completed.
    """

    exact: ClassVar[bool] = False
    at_once: ClassVar[int] = sys.maxsize  # the first step takes no longer than greedy does
    effort: float = 1.0
    steps: int | None = None

    def __post_init__(self) -> None:
        if not self.effort > 0:
            raise InvalidInputError(f"effort is {self.effort}; it must be a positive number")
        if self.steps is not None and not self.steps >= 1:
            raise InvalidInputError(f"steps is {self.steps}; it must be at least 1, or None")

    def search(
        self,
        graph: SynergyGraph,
        *,
        limits: Limits,
        warm_start: IntVector | None = None,
        sizes: Sizes | None = None,
    ) -> Answer:
        """Return the best structure found and the cycle-packing bound."""
        from solvers.heuristics.bounds import cycle_packing_bound
        from solvers.heuristics.multilevel import searched

        share = SHARE_OF_BOUND if limits.seconds_left >= SHORT else SHORT_SHARE
        bound = cycle_packing_bound(graph, limits=limits.part(share))
        labels, steps = searched(
            graph, limits, warm_start, bound=bound, effort=self.effort, steps=self.steps
        )
        return Answer(labels, bound, {"steps": steps})


def _worth(graph: SynergyGraph, labels: IntVector) -> float:
    i, j, weight = graph.edges
    return weight_sum(weight[labels[i] == labels[j]])
