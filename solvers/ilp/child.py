"""A back-end in a Python process of its own, for models that nobody can stop inside of it.

Presolving 350 000 triangles takes HiGHS four seconds, and it looks at no clock meanwhile.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from coalitions.errors import InfeasibleError, NoSolutionError
from solvers.ilp.attended import run_program
from solvers.solver import Limits, heeding_ctrl_c

if TYPE_CHECKING:
    from coalitions.game import FloatVector
    from solvers.ilp.back_end import IlpSolver, ProgramAnswer
    from solvers.ilp.program import Program

# The child imports from where we do, and from nowhere else: not from the working folder.
STARTER = (
    "import sys; sys.path[:] = sys.argv[2:]; from solvers.ilp.child import main; main(sys.argv[1])"
)


def maximise_in_child(
    solver: IlpSolver, program: Program, limits: Limits, start: FloatVector | None
) -> ProgramAnswer | None:
    """Return what the solver brings home from a process of its own; None if that was ended."""
    # No kernels are made ready in the child, so its clock is `time.monotonic`, which agrees between
    # the processes of a machine.
    left = limits.seconds_left
    deadline = None if limits.deadline is None else time.monotonic() + left
    with tempfile.TemporaryDirectory(prefix="coalitions-") as folder:
        task = {
            "solver": solver,
            "program": program,
            "start": start,
            "deadline": deadline,
            "gap": limits.gap,
            "threads": limits.threads,
            "seed": limits.seed,
        }
        with Path(folder, "task").open("wb") as file:
            pickle.dump(task, file, protocol=pickle.HIGHEST_PROTOCOL)
        command = [sys.executable, "-P", "-c", STARTER, folder, *sys.path]
        code, output = run_program(command, limits)
        answer = Path(folder, "answer")
        if answer.exists():
            found: ProgramAnswer | str = pickle.loads(answer.read_bytes())
            if isinstance(found, str):
                raise InfeasibleError(found)
            return found
    if code and not limits.expired:
        lines = output.strip().splitlines() or ["no message"]
        raise NoSolutionError(f"the back-end's process ended with code {code}: {lines[-1]}")
    return None


def main(folder: str) -> None:
    """Solve the task in a folder and leave the answer beside it, complete or not at all."""
    with Path(folder, "task").open("rb") as file:
        task = pickle.load(file)
    limits = Limits(task["deadline"], task["gap"], task["threads"], task["seed"])
    with heeding_ctrl_c(limits):
        try:
            found = task["solver"].maximise(task["program"], limits=limits, start=task["start"])
        except InfeasibleError as error:
            found = str(error)
    partial = Path(folder, "answer.partial")
    partial.write_bytes(pickle.dumps(found))
    partial.rename(Path(folder, "answer"))
