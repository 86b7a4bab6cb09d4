"""CP-SAT of OR-Tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.errors import InfeasibleError
from coalitions.game import FloatVector
from solvers.ilp.back_end import Ending, IlpSolver, ProgramAnswer
from solvers.ilp.child_process import in_thread
from solvers.ilp.program import Program
from solvers.reductions import integer_weights
from solvers.solver import SOLVERS, Limits

ENDINGS: dict[str, Ending] = {
    "OPTIMAL": "optimal",
    "INFEASIBLE": "infeasible",
    "FEASIBLE": "stopped",
}
"""What CP-SAT calls its status, and what that means; otherwise it found nothing."""

ROWS_AT_ONCE = 10_000
"""Rows handed over between two looks at the clock: a tenth of a second."""

MAX_OBJECTIVE = 2**46
"""CP-SAT works in int64 and multiplies; this leaves it room."""


@SOLVERS.register("cp-sat")
@dataclass(frozen=True)
class CpSat(IlpSolver):
    """Clause learning with linear relaxations by OR-Tools' CP-SAT [Perron2023]_.

    Attributes
    ----------
    linearization_level
        How much of the model goes into the linear relaxation. Level 2 proves in a tenth of a
        second what the default, 1, does not in a minute.
    """

    linearization_level: int = 2

    seconds_per_row: ClassVar[float] = 1e-5
    own_process_above: ClassVar[int | None] = 50_000
    needs: ClassVar[tuple[str, ...]] = ("ortools",)

    def maximize(
        self, program: Program, *, limits: Limits, start: FloatVector | None
    ) -> ProgramAnswer:
        """Pass integer weights; a triangle of binaries is a clause, other rows are sums."""
        from ortools.sat.python import cp_model

        weights, unit, slack = _integers(program)
        model = cp_model.CpModel()
        x = [model.new_bool_var("") for _ in range(program.n_variables)]
        rows = program.rows
        for row in range(rows.shape[0]):
            if row % ROWS_AT_ONCE == 0 and limits.expired:
                return ProgramAnswer(None, np.inf)
            span = slice(rows.indptr[row], rows.indptr[row + 1])
            columns, values = rows.indices[span].tolist(), rows.data[span].tolist()
            low, high = program.lower[row], program.upper[row]
            if values == [1.0, 1.0, -1.0] and high == 1.0 and low == -np.inf:
                # x_ij + x_jk - x_ik <= 1: both of the first two imply the third
                model.add_bool_or(~x[columns[0]], ~x[columns[1]], x[columns[2]])
                continue
            total = sum(
                int(value) * x[column] for value, column in zip(values, columns, strict=True)
            )
            if np.isfinite(high):
                model.add(total <= int(high))
            if np.isfinite(low):
                model.add(total >= int(low))
        model.maximize(cp_model.LinearExpr.weighted_sum(x, weights))
        if start is not None:
            for variable, value in zip(x, start.tolist(), strict=False):
                model.add_hint(variable, int(value))

        solver = cp_model.CpSolver()
        parameters = solver.parameters
        parameters.num_workers = limits.threads or 1
        parameters.linearization_level = self.linearization_level
        parameters.random_seed = limits.seed % 2**31
        parameters.relative_gap_limit = limits.gap
        parameters.absolute_gap_limit = 0.0
        if limits.deadline is not None:
            parameters.max_time_in_seconds = max(0.01, limits.seconds_left)
        parameters.catch_sigint_signal = False  # it would keep Ctrl-C for itself
        status = in_thread(lambda: solver.solve(model), solver.stop_search, limits)
        ending = ENDINGS.get(solver.status_name(status), "nothing")
        if ending == "infeasible":
            raise InfeasibleError("no structure meets the demands")
        found = ending != "nothing"
        point = np.array([solver.value(variable) for variable in x], float) if found else None
        return ProgramAnswer(
            point,
            # Stopped before it began to search, CP-SAT reports a bound of 0 that means nothing.
            bound=solver.best_objective_bound * unit + slack if found else np.inf,
            stats={"branches": solver.num_branches, "conflicts": solver.num_conflicts},
        )


def _integers(program: Program) -> tuple[list[int], float, float]:
    """Return integer weights, their unit on the objective, and what rounding may hide."""
    if program.integral:
        return program.objective.astype(np.int64).tolist(), 1.0, 0.0
    scaled = integer_weights(program.objective)
    integers, unit = scaled.integers, float(scaled.unit)
    total = int(np.abs(integers).sum())
    coarser = max(0, total.bit_length() - MAX_OBJECTIVE.bit_length())
    if coarser:
        integers = np.rint(np.ldexp(integers.astype(np.float64), -coarser)).astype(np.int64)
        unit = float(np.ldexp(unit, coarser))
    short = np.maximum(program.objective - integers * unit, 0.0).sum()
    return integers.tolist(), unit, float(short) * (1 + 1e-9)
