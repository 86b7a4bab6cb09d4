"""Ctrl-C in a long estimate: what is known is printed, and the exit code is 130."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

PROGRAM = """
import sys, time
import cli.games.value as module
from coalitions import FunctionGame

class Slow(FunctionGame):
    labels = tuple("abcdefghij")

def value(row):
    time.sleep(0.02)
    open({log!r}, "a").write("x")
    return float(row.sum() ** 0.5)

module.read_game = lambda *args, **options: Slow(value, 10, takes="row")
sys.argv = ["coalitions", "shapley", "game.json", "--json"]
from cli.app import main
main()
"""


def test_the_estimate_so_far_is_printed(tmp_path):
    log = tmp_path / "log"
    code = PROGRAM.format(log=str(log))
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    deadline = time.monotonic() + 100
    while not log.exists() or log.stat().st_size < 80:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=150)
    assert process.returncode == 130
    assert "interrupted: these are the estimates so far" in err
    document = json.loads(out)
    assert document["stopped"] == "interrupted"
    assert np.sum(list(document["values"].values())) == pytest.approx(10**0.5)
