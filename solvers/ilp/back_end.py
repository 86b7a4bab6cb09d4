"""IlpSolver: what every integer-programming back-end shares; each adds only its translation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

from coalitions.errors import InvalidInputError, NoSolutionError
from coalitions.game import FloatVector, IntVector
from coalitions.graph import SynergyGraph
from solvers.demands import Sizes
from solvers.ilp.program import (
    FORMULATIONS,
    Formulation,
    Program,
    build,
    estimated_rows,
    fits,
)
from solvers.solver import Answer, Limits, Solver, TimeIsUp

SHARE_TO_BUILD = 0.5
"""Part of the time that is left for the first bound, and then for the program to be built."""


Ending = Literal["optimal", "infeasible", "stopped", "nothing"]
"""How a back-end ended: with a proof, with one that there is no point, early with a point, or early
without. Each has a table from its own words to these."""


@dataclass(frozen=True)
class ProgramAnswer:
    """What a back-end brings home: a point, if it found one, and a bound on the objective."""

    point: FloatVector | None
    bound: float
    stats: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class IlpSolver(Solver):
    """A solver that hands the clique-partition program to somebody else's optimiser."""

    formulation: Formulation = "rp-star"

    seconds_per_row: ClassVar[float] = 2e-6
    """What it takes until the back-end can begin, per row: building and handing over; measured."""

    own_process_above: ClassVar[int | None] = None
    """From this many rows on, the back-end does not hear in time that it should stop."""

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
        """Start from what a heuristic finds; let the back-end maximise the program.

        The answer is never worse than the heuristic's structure or `warm_start`, whatever becomes
        of the back-end. With a time limit, a program that cannot be built in half of what is left
        of it is not built; the answer is then that of the heuristic.
        """
        known = _known(graph, limits, warm_start, sizes)
        rows = estimated_rows(graph, self.formulation)
        stats: dict[str, Any] = {"formulation": self.formulation, "rows": rows}
        labels, bound = known.labels, known.bound
        to_build = rows * self.seconds_per_row
        if limits.deadline is not None and (
            to_build > SHARE_TO_BUILD * limits.seconds_left or not fits(rows)
        ):
            stats["model"] = "too large for the time limit"
            return Answer(_given(labels, limits), bound, stats)
        try:
            program = build(graph, self.formulation, sizes, partial(_check, limits))
            stats |= {"rows": int(program.rows.shape[0]), "variables": program.n_variables}
            found = self._maximise(program, limits, labels)
        except KeyboardInterrupt:  # where `heeding_ctrl_c` has no say
            limits.interrupted.set()
            found = None
        except TimeIsUp:
            found = None
        if found is None:
            stats["model"] = "stopped before the back-end had an answer"
            return Answer(_given(labels, limits), bound, stats)
        if found.point is not None:
            decoded = program.decode(found.point)
            if sizes is not None and not sizes.met_by(decoded):
                stats["model"] = "the back-end's point meets the demands only by its tolerances"
            elif labels is None or _worth(graph, decoded) >= _worth(graph, labels):
                labels = decoded
        # A back-end that was stopped early may know less than the heuristic.
        bound = min(program.graph_bound(found.bound), bound)
        return Answer(_given(labels, limits), bound, {**stats, **found.stats})

    def _maximise(
        self, program: Program, limits: Limits, labels: IntVector | None
    ) -> ProgramAnswer | None:
        """Have the program maximised, here or, if it is large, in a process that can be ended."""
        start = None if labels is None else program.encode(labels)
        _check(limits)
        if self.own_process_above is None or program.rows.shape[0] <= self.own_process_above:
            return self.maximize(program, limits=limits, start=start)
        from solvers.ilp.child_process import maximise_in_child

        return maximise_in_child(self, program, limits, start)

    @abstractmethod
    def maximize(
        self, program: Program, *, limits: Limits, start: FloatVector | None
    ) -> ProgramAnswer:
        """Return the best point the back-end finds and its bound on the objective.

        Raises
        ------
        InfeasibleError
            The back-end proved that no point meets the rows.
        """


@dataclass(frozen=True)
class _Known:
    """What is known before the back-end starts: a structure, if there is one, and a bound."""

    labels: IntVector | None
    bound: float


def _known(
    graph: SynergyGraph, limits: Limits, warm_start: IntVector | None, sizes: Sizes | None
) -> _Known:
    """Return the better of the greedy structure and `warm_start`, and a bound.

    With sizes there may be no such structure, or none that is easily found.
    """
    from solvers.heuristics.bounds import cycle_packing_bound, sized_bound
    from solvers.heuristics.greedy import sized_start, united

    if sizes is not None:
        try:
            found = sized_start(graph, sizes, limits.part(SHARE_TO_BUILD), warm_start)
        except NoSolutionError:
            found = None
        return _Known(found, sized_bound(graph, sizes, limits=limits.part(SHARE_TO_BUILD)))
    labels: IntVector
    if warm_start is not None and limits.deadline is not None:
        labels = warm_start  # the front door began with greedy
    else:
        labels = united(graph, limits)
        if warm_start is not None and _worth(graph, warm_start) > _worth(graph, labels):
            labels = warm_start
    return _Known(labels, cycle_packing_bound(graph, limits=limits.part(SHARE_TO_BUILD)))


def _worth(graph: SynergyGraph, labels: IntVector) -> float:
    i, j, weight = graph.edges
    return float(weight[labels[i] == labels[j]].sum())


def _check(limits: Limits) -> None:
    if limits.expired:
        raise TimeIsUp


def _given(labels: IntVector | None, limits: Limits) -> IntVector:
    """Return the labels; where sizes are demanded there may be none."""
    if labels is None and limits.interrupted.is_set():
        raise KeyboardInterrupt
    if labels is None:
        raise NoSolutionError("no structure was found that meets the demands in the time given")
    return labels
