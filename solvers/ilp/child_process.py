"""How a back-end is stopped: when time is up, or at Ctrl-C.

A back-end that can be asked to stop runs in a thread of its own, because a main thread inside
compiled code does not hear of Ctrl-C. One that cannot be asked, or takes too long to hear it, runs
in a process of its own and is ended: presolving 350 000 triangles takes HiGHS four seconds, and it
looks at no clock meanwhile.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from coalitions.errors import InfeasibleError, NoSolutionError
from coalitions.runtime import clock
from solvers.solver import Limits, heeding_ctrl_c

if TYPE_CHECKING:
    from coalitions.game import FloatVector
    from solvers.ilp.back_end import IlpSolver, ProgramAnswer
    from solvers.ilp.program import Program

# ----------------------------------------------------------------------------------------
# Threads and programs under supervision.

T = TypeVar("T")

GLANCE = 0.02
"""Seconds between two looks at the clock and for Ctrl-C."""

OVERTIME = 0.1
"""Seconds after the deadline in which a program that has its own may end by itself."""

LAST_WORDS = 0.5
"""Seconds from the request to stop to the end of a program that does not follow it."""

# Asks Linux to end this process with its parent (PR_SET_PDEATHSIG, SIGKILL), then becomes the
# program; a parent that is gone already is another one now.
_GUARD = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


def in_thread(work: Callable[[], T], stop: Callable[[], None], limits: Limits) -> T:
    """Return what `work` returns; Ctrl-C calls `stop`, which must make it return soon.

    The deadline is for `work` itself to keep.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(GLANCE)
            if limits.interrupted.is_set():
                stop()
    except BaseException:  # somebody has an own way to treat Ctrl-C, and it raises
        stop()
        raise
    if errors:
        raise errors[0]
    return results[0]


def run_program(command: list[str], limits: Limits) -> tuple[int | None, str]:
    """Run a program within the limits; return its exit code, None if it was ended, and its output.

    At the deadline, or at Ctrl-C, it is asked to stop by the signal that Ctrl-C sends. It has
    a process group of its own, so that a terminal does not send it the same signal once more. On
    Linux it ends with this process, however that ends: ``kill -9`` leaves no solver behind.
    """
    if sys.platform == "linux" and sys.executable:
        command = [sys.executable, "-I", "-S", "-c", _GUARD, str(os.getpid()), *command]
    own_group: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **own_group,
    )
    asked: float | None = None
    try:
        while True:
            try:
                output = process.communicate(timeout=GLANCE)[0]
                return process.returncode, output.decode(errors="replace")
            except subprocess.TimeoutExpired:
                pass
            now = clock()
            late = limits.deadline is not None and now > limits.deadline + OVERTIME
            if asked is None and (late or limits.interrupted.is_set()):
                asked = now
                process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
            elif asked is not None and now > asked + LAST_WORDS:
                break
        process.kill()
        return None, process.communicate()[0].decode(errors="replace")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


# ----------------------------------------------------------------------------------------
# A back-end in a Python process of its own.

# The child imports from where we do, and from nowhere else: not from the working folder.
STARTER = (
    "import sys; sys.path[:] = sys.argv[2:]; from solvers.ilp.child_process import main;"
    " main(sys.argv[1])"
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
            found = task["solver"].maximize(task["program"], limits=limits, start=task["start"])
        except InfeasibleError as error:
            found = str(error)
    partial = Path(folder, "answer.partial")
    partial.write_bytes(pickle.dumps(found))
    partial.rename(Path(folder, "answer"))
