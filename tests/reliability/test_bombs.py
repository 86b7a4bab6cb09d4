"""Small files that would become large or slow end in one sentence: soon, and in little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.reliability.bombs import BOMBS

pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install .[tables]")
pytest.importorskip("openpyxl", reason="openpyxl is not installed: pip install .[tables]")

SECONDS, MEBIBYTES = 5.0, 1024


def lines(name, path):
    """Return the command lines that read a file."""
    table = ["--target", "b", "--client-column", "a"] if path.suffix else []
    if name == "many columns of codes":  # which is one only for the network that is to learn it
        return [["run", "--dataset", path, "--rounds", "1"]]
    read = [] if path.suffix == ".npy" else [["datasets", path, *table]]
    solved = path.suffix in (".xlsx", ".npy") or "pipe" in name
    return read + [["solve", path]] * solved


def outcomes(typed):
    """Type command lines in a process of its own, and return what became of each."""
    typed = [[str(word) for word in line] for line in typed]
    done = subprocess.run(
        [sys.executable, "-m", "tests.reliability.bombs", json.dumps(typed)],
        capture_output=True,
        text=True,
        timeout=800,
        check=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["line"] for each in found] == typed
    return found


def test_a_bomb_ends_in_a_sentence(tmp_path, record_property):
    typed = []
    for name, (file, write) in BOMBS.items():
        write(tmp_path / file)
        typed += lines(name, tmp_path / file)
    wrong, found = [], outcomes(typed)
    most = {key: round(max(each[key] for each in found), 1) for key in ("seconds", "MiB")}
    record_property("counts: bombs", {"typed": {"lines": len(found), **most}})
    for each in found:
        said = each["said"]
        right = (
            each["code"] == 2
            and each["seconds"] < SECONDS
            and each["MiB"] < MEBIBYTES
            and said.startswith("coalitions: ")
            and said.strip().count("\n") == 0
        )
        if not right:
            wrong.append(each)
    assert not wrong


def test_what_comes_through_standard_input_is_read(tmp_path):
    table = b",ann,bob\nann,0,1\nbob,1,0\n"
    for file, kind in (("-", ["--format", "csv"]), ("/dev/stdin", ["--format", "csv"])):
        read, write = os.pipe()
        os.write(write, table)
        os.close(write)
        with os.fdopen(read) as pipe:
            done = subprocess.run(
                [
                    sys.executable,
                    "-c",
                    "from cli.app import main; main()",
                    "solve",
                    file,
                    *kind,
                    "--json",
                ],
                stdin=pipe,
                capture_output=True,
                timeout=800,
                check=False,
            )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["value"] == 1
