"""Gurobi through gurobipy, where it is installed and licensed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.errors import InfeasibleError, NoSolutionError
from coalitions.game import FloatVector
from solvers.ilp.back_end import Ending, IlpSolver, ProgramAnswer
from solvers.ilp.child_process import in_thread
from solvers.ilp.program import Program
from solvers.solver import SOLVERS, Limits

ENDINGS: dict[int, Ending] = {
    2: "optimal",
    3: "infeasible",
    4: "infeasible",  # or unbounded, which nothing is between 0 and 1
}
"""Gurobi's codes of status, and what they mean; whatever else it is, it was stopped."""


@SOLVERS.register("gurobi")
@dataclass(frozen=True)
class Gurobi(IlpSolver):
    """Branch and cut by Gurobi, the solver of the CFFL paper."""

    needs: ClassVar[tuple[str, ...]] = ("gurobipy",)

    def maximize(
        self, program: Program, *, limits: Limits, start: FloatVector | None
    ) -> ProgramAnswer:
        """Pass the sparse rows as a matrix constraint."""
        import gurobipy as gp

        try:
            model = gp.Model()
            model.Params.OutputFlag = 0
            model.Params.MIPGap = limits.gap
            model.Params.MIPGapAbs = 0.0
            model.Params.Seed = limits.seed % 2**31
            model.Params.Threads = limits.threads or 1
            if limits.deadline is not None:
                model.Params.TimeLimit = limits.seconds_left
            x = model.addMVar(program.n_variables, vtype=gp.GRB.BINARY)
            model.setObjective(program.objective @ x, gp.GRB.MAXIMIZE)
            bounded = np.isfinite(program.upper)
            model.addConstr(program.rows[bounded] @ x <= program.upper[bounded])
            bounded = np.isfinite(program.lower)
            if bounded.any():
                model.addConstr(program.rows[bounded] @ x >= program.lower[bounded])
            if start is not None:
                x.Start = np.concatenate((start, np.zeros(program.n_variables - len(start))))
            in_thread(model.optimize, model.terminate, limits)
        except gp.GurobiError as error:
            raise NoSolutionError(f"gurobi: {error}") from None
        if ENDINGS.get(model.Status) == "infeasible":
            raise InfeasibleError("no structure meets the demands")
        point = np.array(x.X) if model.SolCount else None
        return ProgramAnswer(point, bound=model.ObjBound, stats={"nodes": int(model.NodeCount)})
