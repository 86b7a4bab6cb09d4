"""`coalitions warm-up`: compile everything ahead, so that nobody waits for it later."""

from __future__ import annotations

import time

from cli.terminal.output import Quiet, stderr
from coalitions.runtime import ready_seconds, when_long


def warm_up_command(quiet: Quiet = False) -> None:
    """Compile all kernels now, so that no later command has to wait for it.

    Example: coalitions warm-up
    """
    from solvers.warm_up import TASKS, warm_up

    when_long(None)  # that is what is being done here
    began, console = time.monotonic(), stderr()
    for number, what in enumerate(warm_up(), 1):
        if not quiet:
            console.print(f"{number}/{len(TASKS)}  {what}")
    if not quiet:
        seconds = time.monotonic() - began
        console.print(f"ready: {ready_seconds():.1f} s of {seconds:.1f} s were spent on compiling")


COMMANDS = {"warm-up": warm_up_command}
