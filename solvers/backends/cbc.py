"""CBC through PuLP."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from coalitions.errors import InfeasibleError, NoSolutionError
from coalitions.game import FloatVector
from solvers.ilp import IlpSolver, Incumbent
from solvers.program import Program
from solvers.solver import SOLVERS, Limits


@SOLVERS.register("cbc")
@dataclass(frozen=True)
class Cbc(IlpSolver):
    """Branch and cut by COIN-OR's CBC [Forrest2005]_."""

    needs: ClassVar[tuple[str, ...]] = ("pulp", "cbcbox")

    def maximise(self, program: Program, *, limits: Limits, start: FloatVector | None) -> Incumbent:
        """Write the model for the CBC executable, and read its bound from the log."""
        import cbcbox
        import pulp

        model = pulp.LpProblem("clique_partition", pulp.LpMaximize)
        x = [
            model.add_variable(f"x{k}", lowBound=0, upBound=1, cat=pulp.LpBinary)
            for k in range(program.n_variables)
        ]
        model.setObjective(pulp.LpAffineExpression(zip(x, program.objective.tolist(), strict=True)))
        _add_rows(model, x, program)
        with tempfile.TemporaryDirectory(prefix="coalitions-cbc-") as folder:
            log = Path(folder) / "cbc.log"
            solver = pulp.COIN_CMD(
                path=cbcbox.cbc_bin_path(),
                msg=False,
                logPath=str(log),
                threads=limits.threads or 1,
                timeLimit=None if limits.deadline is None else max(0.1, limits.seconds_left),
                gapRel=limits.gap,
                gapAbs=0.0,
                # Without this CBC ignores what is less than 1e-5 better than its incumbent.
                options=["increment 1e-9", f"randomCbcSeed {limits.seed % 2**31}"],
                warmStart=start is not None,
            )
            solver.tmpDir = folder
            if start is not None:
                for variable, value in zip(x, start.tolist(), strict=False):
                    variable.setInitialValue(value)
            try:
                model.solve(solver)
            except pulp.PulpSolverError as error:
                raise NoSolutionError(f"cbc: {error}") from None
            text = log.read_text(errors="replace") if log.exists() else ""
        if model.sol_status == pulp.LpSolutionInfeasible:
            raise InfeasibleError("no structure meets the demands")
        values = [variable.varValue for variable in x]
        found = model.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible)
        # PuLP leaves out of the answer what is not in the objective and is zero.
        point = np.array([value or 0.0 for value in values]) if found else None
        if found and model.sol_status == pulp.LpSolutionOptimal and point is not None:
            bound = float(program.objective @ np.rint(point))
            bound += limits.gap * abs(bound)
        else:
            bound = _logged_bound(text)
        return Incumbent(point, bound)


def _add_rows(model: object, x: list[object], program: Program) -> None:
    import pulp

    rows = program.rows
    for row in range(rows.shape[0]):
        span = slice(rows.indptr[row], rows.indptr[row + 1])
        expression = pulp.LpAffineExpression(
            zip((x[k] for k in rows.indices[span]), rows.data[span].tolist(), strict=True)
        )
        if np.isfinite(program.upper[row]):
            model += expression <= float(program.upper[row])
        if np.isfinite(program.lower[row]):
            model += expression >= float(program.lower[row])


def _logged_bound(log: str) -> float:
    """Return the bound CBC prints when it is stopped; infinite if it never got to one.

    PuLP turns the maximum into a minimum of the negated objective, so CBC's lower bound is ours
    with the sign changed.
    """
    match = re.search(r"^Lower bound:\s+(\S+)", log, re.MULTILINE)
    return -float(match.group(1)) if match else float("inf")
