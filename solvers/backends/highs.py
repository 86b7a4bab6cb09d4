"""HiGHS through highspy, with all triangles at once or separated when they are violated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from coalitions.errors import InfeasibleError
from coalitions.game import FloatVector, IntVector
from solvers.ilp.back_end import Ending, IlpSolver, ProgramAnswer
from solvers.ilp.child_process import in_thread
from solvers.ilp.program import Program
from solvers.solver import SOLVERS, Limits

ENDINGS: dict[str, Ending] = {
    "kOptimal": "optimal",
    "kInfeasible": "infeasible",
    "kUnboundedOrInfeasible": "infeasible",  # between 0 and 1 nothing is unbounded
}
"""What HiGHS calls its status, and what that means; whatever else it is, it was stopped."""

VIOLATION = 1e-6
ROWS_PER_ROUND = 20
"""Rows added a round, per player: enough to move the relaxation, few enough to keep it small."""


@SOLVERS.register("highs")
@dataclass(frozen=True)
class Highs(IlpSolver):
    """Branch and cut by HiGHS [Huangfu2018]_.

    Attributes
    ----------
    lazy
        Start without triangles and add those that the relaxation, and then the integer optimum,
        violates. Pays where few triangles matter: well-separated coalitions, larger graphs.
    """

    lazy: bool = False

    seconds_per_row: ClassVar[float] = 1.5e-6
    own_process_above: ClassVar[int | None] = 50_000  # of which presolve takes half a second
    needs: ClassVar[tuple[str, ...]] = ("highspy",)

    def maximize(
        self, program: Program, *, limits: Limits, start: FloatVector | None
    ) -> ProgramAnswer:
        """Pass the rows as they are; HiGHS maximises."""
        if self.lazy:
            return _maximise_lazily(program, limits, start)
        model = _Model(program, limits)
        model.add(np.arange(program.rows.shape[0]))
        model.require_integers()
        model.start_from(start)
        return model.run()


def _maximise_lazily(program: Program, limits: Limits, start: FloatVector | None) -> ProgramAnswer:
    """Solve relaxations of a growing part of the rows until the integer optimum meets them all.

    Every relaxation's bound is valid, so the last one before the time limit is the answer's.
    """
    model = _Model(program, limits)
    rounds, integral, bound = 0, False, np.inf
    last: FloatVector | None = None
    chosen = np.zeros(program.rows.shape[0], bool)
    while True:
        found = model.run()
        rounds += 1
        bound = min(bound, found.bound)
        if found.point is None:
            return ProgramAnswer(last, bound, {"rounds": rounds, "separated": int(chosen.sum())})
        if not program.transitive:  # then any point, also a fractional one, decodes to a structure
            last = found.point
        excess = _excess(program, found.point)
        excess[chosen] = 0.0
        violated = np.flatnonzero(excess > VIOLATION)
        stats = {"rounds": rounds, "separated": int(chosen.sum()), **found.stats}
        if integral and not len(violated):
            return ProgramAnswer(found.point, bound, stats)
        if limits.expired:
            return ProgramAnswer(last, bound, stats)
        if not len(violated):  # the linear relaxation is done: now integers
            integral = True
            model.require_integers()
            model.start_from(start)
            continue
        most = ROWS_PER_ROUND * program.n_players
        worst = violated[np.argsort(-excess[violated], kind="stable")[:most]]
        chosen[worst] = True
        model.add(worst)


def _excess(program: Program, point: FloatVector) -> FloatVector:
    """Return by how much each row is violated."""
    activity = program.rows @ point
    return np.asarray(np.maximum(activity - program.upper, program.lower - activity))


class _Model:
    """The program inside HiGHS, with the rows added so far."""

    def __init__(self, program: Program, limits: Limits) -> None:
        import highspy

        self._program, self._limits = program, limits
        self._integral = False
        highs: Any = highspy.Highs()
        highs.HandleUserInterrupt = True  # so that `cancelSolve` is heard
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("random_seed", limits.seed % 2**31)
        highs.setOptionValue("threads", limits.threads or 1)
        # HiGHS stops at a relative gap of 1e-4 and an absolute one of 1e-6 unless told otherwise.
        highs.setOptionValue("mip_rel_gap", limits.gap)
        highs.setOptionValue("mip_abs_gap", 0.0)
        n = program.n_variables
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = n, 0
        model.sense_ = highspy.ObjSense.kMaximize
        model.col_cost_ = program.objective
        model.col_lower_, model.col_upper_ = np.zeros(n), np.ones(n)
        model.a_matrix_.start_ = np.zeros(n + 1, np.int32)
        highs.passModel(model)
        self._highs = highs

    def add(self, rows: IntVector) -> None:
        """Add rows of the program."""
        program = self._program
        part = program.rows[rows]
        self._highs.addRows(
            len(rows),
            program.lower[rows],
            program.upper[rows],
            part.nnz,
            part.indptr[:-1].astype(np.int32),
            part.indices.astype(np.int32),
            part.data,
        )

    def require_integers(self) -> None:
        """Make every variable binary."""
        import highspy

        n = self._program.n_variables
        self._integral = True
        self._highs.changeColsIntegrality(
            n,
            np.arange(n, dtype=np.int32),
            np.full(n, int(highspy.HighsVarType.kInteger), dtype=np.uint8),
        )

    def start_from(self, point: FloatVector | None) -> None:
        """Offer a point to start from."""
        import highspy

        if point is not None:
            solution = highspy.HighsSolution()
            solution.col_value = point.tolist()
            self._highs.setSolution(solution)

    def run(self) -> ProgramAnswer:
        """Solve what is there."""
        import highspy

        highs, limits = self._highs, self._limits
        if limits.deadline is not None:
            # HiGHS counts its run time over all calls.
            highs.setOptionValue("time_limit", highs.getRunTime() + limits.seconds_left)
        in_thread(highs.run, highs.cancelSolve, limits)
        ending = ENDINGS.get(highs.getModelStatus().name, "stopped")
        if ending == "infeasible":
            raise InfeasibleError("no structure meets the demands")
        info = highs.getInfo()
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        point = np.array(highs.getSolution().col_value) if found else None
        if self._integral:
            return ProgramAnswer(point, info.mip_dual_bound, {"nodes": int(info.mip_node_count)})
        proven = ending == "optimal"
        return ProgramAnswer(point, info.objective_function_value if proven else np.inf)
