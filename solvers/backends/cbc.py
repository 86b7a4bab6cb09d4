"""CBC: the model goes to its executable as an MPS file."""

from __future__ import annotations

import importlib.util
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from coalitions.errors import InfeasibleError, MissingDependencyError, NoSolutionError
from coalitions.extras import install_command
from coalitions.game import FloatVector
from solvers.ilp.back_end import Ending, IlpSolver, ProgramAnswer
from solvers.ilp.child_process import run_program
from solvers.ilp.program import Program
from solvers.solver import SOLVERS, Limits

COLUMNS_AT_ONCE = 100
"""Columns written between two looks at the clock."""


@SOLVERS.register("cbc")
@dataclass(frozen=True)
class Cbc(IlpSolver):
    """Branch and cut by COIN-OR's CBC [Forrest2005]_.

    It is asked to stop as by Ctrl-C, and then writes its best point; if it does not listen, as in
    its first linear relaxation, it is ended. The executable is the one that PuLP ships, else a
    ``cbc`` on the path (Debian's coinor-cbc), else that of the package cbcbox.
    """

    seconds_per_row: ClassVar[float] = 1e-5

    @classmethod
    def missing(cls) -> str | None:
        """Return why there is no CBC here; nothing is imported to find out."""
        packaged = any(importlib.util.find_spec(package) for package in ("pulp", "cbcbox"))
        return None if packaged or shutil.which("cbc") else NOT_FOUND

    def maximize(
        self, program: Program, *, limits: Limits, start: FloatVector | None
    ) -> ProgramAnswer:
        """Write the model for the CBC executable, and read its bound from the log."""
        executable = _executable()
        with tempfile.TemporaryDirectory(prefix="coalitions-cbc-") as folder:
            model, solution = Path(folder) / "model.mps", Path(folder) / "solution.txt"
            with model.open("w", encoding="ascii") as file:
                for number, lines in enumerate(_mps(program)):
                    if number % COLUMNS_AT_ONCE == 0 and limits.expired:
                        return ProgramAnswer(None, np.inf)
                    file.write(lines)
            command = [executable, str(model), *_options(limits)]
            if start is not None:
                given = Path(folder) / "start.txt"
                given.write_text(_point_file(start), encoding="ascii")
                command += ["-mips", str(given)]
            command += ["-solve", "-solution", str(solution)]
            code, log = run_program(command, limits)
            text = solution.read_text(encoding="ascii") if solution.exists() else ""
        if not text and not limits.expired:
            raise NoSolutionError(f"cbc ended without an answer (exit code {code})")
        ended = _how_it_ended(text)
        if ended == "infeasible" and not limits.expired:
            raise InfeasibleError("no structure meets the demands")
        # Stopped while it prepares its cuts, CBC calls the model infeasible, which proves nothing.
        if ended in ("infeasible", "nothing"):
            return ProgramAnswer(None, _logged_bound(log))
        point = _read_point(text, program.n_variables)
        if ended == "stopped":
            return ProgramAnswer(point, _logged_bound(log))
        bound = float(program.objective @ np.rint(point))
        return ProgramAnswer(point, bound + limits.gap * abs(bound))


NOT_FOUND = f"there is no CBC here: {install_command('pulp')}"


def _executable() -> str:
    """Return the path of a CBC; PuLP has none for some platforms."""
    for find in (_of_pulp, lambda: "cbc", _of_cbcbox):
        path = shutil.which(find() or "")
        if path:
            return path
    raise MissingDependencyError(f"cbc cannot run: {NOT_FOUND}")


def _of_pulp() -> str | None:
    try:
        from pulp.apis import coin_api
    except ImportError:
        return None
    return getattr(coin_api, "pulp_cbc_path", None)


def _of_cbcbox() -> str | None:
    try:
        import cbcbox
    except ImportError:
        return None
    path: str = cbcbox.cbc_bin_path()
    return path


ENDINGS: dict[str, Ending] = {
    "Optimal": "optimal",
    "Infeasible": "infeasible",
    "Integer infeasible": "infeasible",
    "Stopped on": "stopped",
}
"""How the first line of CBC's solution begins, and what that means."""


def _how_it_ended(solution: str) -> Ending:
    first = solution.partition("\n")[0]
    if "no integer solution" in first:  # what follows is a fractional point
        return "nothing"
    return next((end for words, end in ENDINGS.items() if first.startswith(words)), "nothing")


def _options(limits: Limits) -> list[str]:
    options: dict[str, float | str] = {
        # 1 would be a thread that the main one waits for.
        "threads": 0 if limits.threads in (None, 1) else limits.threads,
        "ratio": limits.gap,
        "allow": 0.0,
        # Without this CBC ignores what is less than 1e-5 better than its incumbent.
        "increment": 1e-9,
        "randomCbcSeed": limits.seed % 2**31,
        "timeMode": "elapsed",  # else the limit is one of CPU-time
    }
    if limits.deadline is not None:
        options["sec"] = max(0.1, limits.seconds_left)
    return [word for name, value in options.items() for word in (f"-{name}", str(value))]


def _mps(program: Program) -> Iterator[str]:
    """Give the program as the text of an MPS file, in pieces: minimise the negated objective.

    A row with two limits is written twice, once for each; there are few of them.
    """
    upper, lower = np.isfinite(program.upper), np.isfinite(program.lower)
    kinds = ["L"] * int(upper.sum()) + ["G"] * int(lower.sum())
    limits = np.concatenate((program.upper[upper], program.lower[lower])).tolist()
    number = {"upper": np.cumsum(upper) - 1, "lower": upper.sum() + np.cumsum(lower) - 1}
    columns = program.rows.tocsc()
    yield "NAME clique_partition\nROWS\n N objective\n"
    yield "".join([f" {kind} r{row}\n" for row, kind in enumerate(kinds)])
    yield "COLUMNS\n m0 'MARKER' 'INTORG'\n"
    pointer, cost = columns.indptr.tolist(), (-program.objective).tolist()
    for column in range(program.n_variables):
        span = slice(pointer[column], pointer[column + 1])
        row, entry = columns.indices[span], columns.data[span]
        lines = [f" x{column} objective {cost[column]!r}\n"]
        for side, given in (("upper", upper[row]), ("lower", lower[row])):
            rows, entries = number[side][row[given]].tolist(), entry[given].tolist()
            lines += [f" x{column} r{r} {e!r}\n" for r, e in zip(rows, entries, strict=True)]
        yield "".join(lines)
    yield " m1 'MARKER' 'INTEND'\nRHS\n"
    yield "".join([f" limits r{row} {limit!r}\n" for row, limit in enumerate(limits)])
    yield "BOUNDS\n"
    yield "".join([f" UP bounds x{column} 1\n" for column in range(program.n_variables)])
    yield "ENDATA\n"


def _point_file(point: FloatVector) -> str:
    """Return a point in CBC's own format, to start from."""
    lines = [f"{k} x{k} {value!r} 0" for k, value in enumerate(point.tolist())]
    return "\n".join(["Stopped on time - objective value 0", *lines, ""])


def _read_point(solution: str, n_variables: int) -> FloatVector:
    """Return the point in a solution of CBC, which leaves out what is zero."""
    point = np.zeros(n_variables)
    for line in solution.splitlines()[1:]:
        words = line.replace("**", " ").split()
        if len(words) > 2 and words[1][0] == "x":
            point[int(words[1][1:])] = float(words[2])
    return point


def _logged_bound(log: str) -> float:
    """Return the bound in CBC's log: its last word, or that of its first relaxation, or infinity.

    What CBC minimises is the negated objective, so its lower bound is ours with the sign changed.
    It prints six digits or three after the point, rounded to either side; old and new versions use
    other words for the first relaxation.
    """
    for pattern in (
        r"^Lower bound:\s+(\S+)",
        r"LP Optimal\b.*\bObj: (\S+)",
        r"^Continuous objective value is (\S+)",
    ):
        match = re.search(pattern, log, re.MULTILINE)
        if match:
            bound = -float(match.group(1))
            return bound + max(1e-5 * abs(bound), 1e-3)
    return float("inf")
