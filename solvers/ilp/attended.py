"""Back-ends under supervision: they stop when time is up or somebody presses Ctrl-C.

A back-end that can be asked to stop runs in a thread of its own, because a main thread inside
compiled code does not hear of Ctrl-C. What cannot be asked, or takes too long to hear it, runs in a
process of its own and is ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from coalitions.compiling.clock import clock
from solvers.solver import Limits

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
