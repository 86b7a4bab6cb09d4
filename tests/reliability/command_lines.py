"""Hostile command lines: the arguments of every command, some replaced by what nobody should type.

They are run in this process, by the entry point, and must end with an exit code and a sentence.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

VALUES = [
    "", " ", "-", "--", ".", "..", "/", "\0", "a\0b", "nan", "inf", "-inf", "1e400", "1e300", "-1",
    "0", "0.5", "1e-320", "9" * 30, "9" * 400, "9" * 5000, "x" * 300, "x" * 5000, "é", "\ud800",
    "[bold]", "$(x)", "a,b", ",", "=", "a=b", "graph.csv", "s.json", "/dev/null", "true", "none",
]  # fmt: skip

COMMANDS = {
    "solve": (
        ["graph.csv"],
        "solver formulation time-limit gap seed threads warm-start must-link cannot-link n-groups"
        " min-size max-size symmetrise threshold format output plot certificate plugin",
    ),
    "verify": (["graph.csv", "s.json"], "certificate symmetrise threshold format"),
    "shapley": (
        ["graph.csv"],
        "method budget target-error seed symmetrise threshold format plugin",
    ),
    "value": (
        ["graph.csv"],
        "concept method budget seed alpha beta structure links symmetrise threshold format",
    ),
    "stability": (["graph.csv", "s.json"], "notion symmetrise threshold format"),
    # The data set does not exist: what is wrong is said, and nothing is ever trained.
    "run": (
        ["--dataset", "nowhere"],
        "algorithm aggregation rounds participation data-dir clients partition train-size poison"
        " model local-epochs batch-size optimizer lr noise clip epsilon delta dp seed device engine"
        " workers set plugin",
    ),
    "options": ([], "plugin"),
    "report": (["nothing"], "output"),
}


def line(number: int) -> list[str]:
    """Return a command line: the same for the same number."""
    rng = random.Random(f"line {number}")
    command = rng.choice(list(COMMANDS))
    arguments, options = COMMANDS[command]
    typed = [command, *arguments]
    for _ in range(rng.randint(0, 3)):
        typed += [f"--{rng.choice(options.split())}", rng.choice(VALUES)]
    if rng.random() < 0.2:
        typed[rng.randrange(1, len(typed)) if len(typed) > 1 else 0] = rng.choice(VALUES)
    return typed


def ended(
    typed: list[str], capsys: pytest.CaptureFixture[str], codes: tuple[int, ...] = (0, 1, 2)
) -> str:
    """Run a command line; return what is wrong with its end, or nothing."""
    from cli.app import main

    before, path = sys.argv, list(sys.path)
    sys.argv = ["coalitions", *typed]
    try:
        main()
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        return f"{typed!r:.300}: {type(error).__name__}: {error}"
    finally:
        sys.argv, sys.path[:] = before, path
    said = capsys.readouterr().err
    if code not in codes or "Internal error" in said or "Traceback" in said:
        return f"{typed!r:.300}: exit {code}: {said[-300:]}"
    return ""


def prepare(folder: Path) -> None:
    """Write the files that the command lines name."""
    (folder / "graph.csv").write_text(",ann,bob,cleo\nann,0,1,-2\nbob,1,0,3\ncleo,-2,3,0\n")
    (folder / "s.json").write_text('{"coalitions": [["ann"], ["bob", "cleo"]], "value": 3}')
