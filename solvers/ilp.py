"""IlpSolver: what every integer-programming back-end shares; each adds only its translation."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coalitions.errors import InfeasibleError, InvalidInputError
from coalitions.game import FloatVector, IntVector
from coalitions.graph import SynergyGraph
from solvers.program import FORMULATIONS, Formulation, Program, build
from solvers.solver import Answer, Limits, Sizes, Solver


@dataclass(frozen=True)
class Incumbent:
    """What a back-end brings home: a point, if it found one, and a bound on the objective."""

    point: FloatVector | None
    bound: float
    stats: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class IlpSolver(Solver):
    """A solver that hands the clique-partition program to somebody else's optimiser."""

    formulation: Formulation = "rp-star"

    def __post_init__(self) -> None:
        if self.formulation not in FORMULATIONS:
            raise InvalidInputError(
                f"formulation is {self.formulation!r}; it must be {' or '.join(FORMULATIONS)}"
            )

    @property
    def takes_sizes(self) -> bool:
        """Only a transitive point has sizes: the full formulation."""
        return self.formulation == "full"

    def search(
        self,
        graph: SynergyGraph,
        *,
        limits: Limits,
        warm_start: IntVector | None = None,
        sizes: Sizes | None = None,
    ) -> Answer:
        """Build the program, let the back-end maximise it, and decode its point."""
        program = build(graph, self.formulation, sizes)
        start = None if warm_start is None or sizes is not None else program.encode(warm_start)
        found = self.maximise(program, limits=limits, start=start)
        stats = {
            "formulation": self.formulation,
            "rows": int(program.rows.shape[0]),
            "variables": program.n_variables,
            **found.stats,
        }
        # A back-end that was stopped early may know less than the sum of all gains.
        gains = math.fsum(program.weights[program.weights > 0].tolist())
        bound = min(program.graph_bound(found.bound), gains)
        return Answer(self._labels(program, found, warm_start, sizes), bound, stats)

    @staticmethod
    def _labels(
        program: Program, found: Incumbent, warm_start: IntVector | None, sizes: Sizes | None
    ) -> IntVector:
        if found.point is not None:
            return program.decode(found.point)
        if sizes is not None:
            raise InfeasibleError("no structure was found that meets the demands in the time given")
        # Being alone, and what we started from, are always allowed.
        return np.arange(program.n_players) if warm_start is None else warm_start

    @abstractmethod
    def maximise(self, program: Program, *, limits: Limits, start: FloatVector | None) -> Incumbent:
        """Return the best point the back-end finds and its bound on the objective.

        Raises
        ------
        InfeasibleError
            The back-end proved that no point meets the rows.
        """
