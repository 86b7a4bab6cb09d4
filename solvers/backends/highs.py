"""HiGHS through highspy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.errors import InfeasibleError
from coalitions.game import FloatVector
from solvers.ilp import IlpSolver, Incumbent
from solvers.program import Program
from solvers.solver import SOLVERS, Limits


@SOLVERS.register("highs")
@dataclass(frozen=True)
class Highs(IlpSolver):
    """Branch and cut by HiGHS [Huangfu2018]_."""

    needs: ClassVar[tuple[str, ...]] = ("highspy",)

    def maximise(self, program: Program, *, limits: Limits, start: FloatVector | None) -> Incumbent:
        """Pass the rows as they are; HiGHS maximises."""
        import highspy

        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("random_seed", limits.seed % 2**31)
        highs.setOptionValue("threads", limits.threads or 1)
        # HiGHS stops at a relative gap of 1e-4 and an absolute one of 1e-6 unless told otherwise.
        highs.setOptionValue("mip_rel_gap", limits.gap)
        highs.setOptionValue("mip_abs_gap", 0.0)
        if limits.deadline is not None:
            highs.setOptionValue("time_limit", limits.seconds_left)

        n_rows, n_columns = program.rows.shape
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = n_columns, n_rows
        model.sense_ = highspy.ObjSense.kMaximize
        model.col_cost_ = program.objective
        model.col_lower_, model.col_upper_ = np.zeros(n_columns), np.ones(n_columns)
        model.row_lower_, model.row_upper_ = program.lower, program.upper
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = program.rows.indptr
        model.a_matrix_.index_ = program.rows.indices
        model.a_matrix_.value_ = program.rows.data
        model.integrality_ = [highspy.HighsVarType.kInteger] * n_columns
        highs.passModel(model)
        if start is not None:
            solution = highspy.HighsSolution()
            solution.col_value = start.tolist()
            highs.setSolution(solution)
        highs.run()

        status = highs.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            raise InfeasibleError("no structure meets the demands")
        info = highs.getInfo()
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        return Incumbent(
            np.array(highs.getSolution().col_value) if found else None,
            bound=info.mip_dual_bound,
            stats={"nodes": int(info.mip_node_count)},
        )
