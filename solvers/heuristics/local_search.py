"""Local search: good structures of graphs up to hundreds of thousands of players."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from coalitions.errors import InvalidInputError
from coalitions.game import IntVector
from coalitions.graph import SynergyGraph
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

    def search(
        self,
        graph: SynergyGraph,
        *,
        limits: Limits,
        warm_start: IntVector | None = None,
        sizes: Sizes | None = None,
    ) -> Answer:
        """Return the best structure found and the cycle-packing bound."""
        from solvers.local_search.bounds import cycle_packing_bound
        from solvers.local_search.search import searched

        bound = cycle_packing_bound(graph, limits=limits.part(SHARE_OF_BOUND))
        labels, slices = searched(graph, limits, warm_start, bound=bound, effort=self.effort)
        return Answer(labels, bound, {"slices": slices})
