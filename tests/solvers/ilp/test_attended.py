"""Programs under supervision: they end when they are told to, and with whoever started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from solvers import Limits
from solvers.ilp.child_process import run_program

UNLIMITED = Limits(deadline=None, gap=0.0, threads=None, seed=0)

STARTS_A_LONG_PROGRAM = """
import sys
from solvers.ilp.child_process import run_program
from solvers.solver import Limits
pid = "import os, time; open(r'{}', 'w').write(str(os.getpid())); time.sleep(600)"
run_program([sys.executable, "-c", pid.format(sys.argv[1])], Limits(None, 0.0, None, 0))
"""


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def waited(condition):
    end = time.monotonic() + 120.0  # the machine may be busy
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_output_and_exit_code_are_those_of_the_program():
    command = [sys.executable, "-c", "import sys; print('said'); sys.exit(3)"]
    assert run_program(command, UNLIMITED) == (3, "said\n")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_kill_9_leaves_no_program_behind(tmp_path):
    told = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", STARTS_A_LONG_PROGRAM, str(told)])
    assert waited(lambda: told.exists() and told.read_text())
    child = int(told.read_text())
    assert is_running(child)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert waited(lambda: not is_running(child))
