"""CBC: the model goes to its executable as an MPS file."""

from __future__ import annotations

import re
import subprocess
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
    """Branch and cut by COIN-OR's CBC [Forrest2005]_.

    PuLP tells how a run ended. The model is written here: 0.05 s for 17 000 rows, of which PuLP
    makes 0.7 s.
    """

    needs: ClassVar[tuple[str, ...]] = ("pulp", "cbcbox")

    def maximise(self, program: Program, *, limits: Limits, start: FloatVector | None) -> Incumbent:
        """Write the model for the CBC executable, and read its bound from the log."""
        import cbcbox
        import pulp

        with tempfile.TemporaryDirectory(prefix="coalitions-cbc-") as folder:
            model, point = Path(folder) / "model.mps", Path(folder) / "solution.txt"
            model.write_text(_mps(program), encoding="ascii")
            command = [cbcbox.cbc_bin_path(), str(model), *_options(limits)]
            if start is not None:
                given = Path(folder) / "start.txt"
                given.write_text(_point_file(start), encoding="ascii")
                command += ["-mips", str(given)]
            command += ["-solve", "-solution", str(point)]
            run = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
            )
            if run.returncode or not point.exists():
                raise NoSolutionError(f"cbc ended without an answer (exit code {run.returncode})")
            status = pulp.COIN_CMD().get_status(str(point))[1]
            values = _read_point(point, program.n_variables)
        if status == pulp.LpSolutionInfeasible:
            raise InfeasibleError("no structure meets the demands")
        if status == pulp.LpSolutionOptimal:
            bound = float(program.objective @ np.rint(values))
            return Incumbent(values, bound + limits.gap * abs(bound))
        found = values if status == pulp.LpSolutionIntegerFeasible else None
        return Incumbent(found, _logged_bound(run.stdout))


def _options(limits: Limits) -> list[str]:
    options: dict[str, float | str] = {
        "threads": limits.threads or 1,
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


def _mps(program: Program) -> str:
    """Return the program as the text of an MPS file: minimise the negated objective.

    A row with two limits is written twice, once for each; there are few of them.
    """
    upper, lower = np.isfinite(program.upper), np.isfinite(program.lower)
    kinds = ["L"] * int(upper.sum()) + ["G"] * int(lower.sum())
    limits = np.concatenate((program.upper[upper], program.lower[lower])).tolist()
    number = {"upper": np.cumsum(upper) - 1, "lower": upper.sum() + np.cumsum(lower) - 1}
    columns = program.rows.tocsc()
    lines = ["NAME clique_partition", "ROWS", " N objective"]
    lines += [f" {kind} r{row}" for row, kind in enumerate(kinds)]
    lines += ["COLUMNS", " m0 'MARKER' 'INTORG'"]
    entry_row, entry = columns.indices, columns.data.tolist()
    above, below = upper[entry_row].tolist(), lower[entry_row].tolist()
    above_row, below_row = number["upper"][entry_row].tolist(), number["lower"][entry_row].tolist()
    pointer, cost = columns.indptr.tolist(), (-program.objective).tolist()
    for column in range(program.n_variables):
        lines.append(f" x{column} objective {cost[column]!r}")
        for k in range(pointer[column], pointer[column + 1]):
            if above[k]:
                lines.append(f" x{column} r{above_row[k]} {entry[k]!r}")
            if below[k]:
                lines.append(f" x{column} r{below_row[k]} {entry[k]!r}")
    lines += [" m1 'MARKER' 'INTEND'", "RHS"]
    lines += [f" limits r{row} {limit!r}" for row, limit in enumerate(limits)]
    lines.append("BOUNDS")
    lines += [f" UP bounds x{column} 1" for column in range(program.n_variables)]
    lines.append("ENDATA\n")
    return "\n".join(lines)


def _point_file(point: FloatVector) -> str:
    """Return a point in CBC's own format, to start from."""
    lines = [f"{k} x{k} {value!r} 0" for k, value in enumerate(point.tolist())]
    return "\n".join(["Stopped on time - objective value 0", *lines, ""])


def _read_point(path: Path, n_variables: int) -> FloatVector:
    """Return the point in a file of CBC, which leaves out what is zero."""
    point = np.zeros(n_variables)
    for line in path.read_text(encoding="ascii").splitlines()[1:]:
        words = line.replace("**", " ").split()
        if len(words) > 2 and words[1][0] == "x":
            point[int(words[1][1:])] = float(words[2])
    return point


def _logged_bound(log: str) -> float:
    """Return the bound CBC prints when it is stopped; infinite if it never got to one.

    What CBC minimises is the negated objective, so its lower bound is ours with the sign changed.
    """
    match = re.search(r"^Lower bound:\s+(\S+)", log, re.MULTILINE)
    return -float(match.group(1)) if match else float("inf")
