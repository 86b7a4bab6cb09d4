"""What a reader copies from the README, or from a page on files, works and prints what is said."""

from __future__ import annotations

import doctest
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def blocks(page: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / page).read_text(), re.S | re.M)


BLOCKS = blocks("README.md")
PYTHON = [
    (code, printed)
    for found in (BLOCKS, blocks("docs/formats.md"), blocks("docs/opinions.md"))
    for (kind, code), (after, printed) in itertools.pairwise(found)
    if (kind, after) == ("python", "text")
]
CONSOLE = [code.split("\n", 1) for kind, code in BLOCKS if kind == "console"]


def same(expected: str, printed: str) -> bool:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(expected, printed, flags)


@pytest.mark.parametrize(("code", "expected"), PYTHON)
def test_python_examples_print_what_they_say(code, expected):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    assert same(expected, result.stdout), result.stdout


@pytest.mark.parametrize(("command", "expected"), CONSOLE)
def test_commands_print_what_they_say(command, expected, tmp_path):
    words = command.removeprefix("$ ").split()
    if "run" in words:
        pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    words = [str(tmp_path / "out") if word.startswith("runs/") else word for word in words]
    words[0] = str(Path(sys.executable).with_name("coalitions"))
    result = subprocess.run(
        words, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "COLUMNS": "80"}
    )
    assert result.returncode == 0, result.stderr
    assert same(expected, result.stdout), result.stdout


def test_there_is_an_example_of_each_use():
    assert len(PYTHON) >= 3
    assert len(CONSOLE) >= 2
