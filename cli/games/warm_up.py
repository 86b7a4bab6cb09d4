"""`coalitions warm-up`: compile everything ahead, so that nobody waits for it later."""

from __future__ import annotations

import time

from cli.terminal.output import Json, Quiet, print_json, stderr
from coalitions.runtime import ready_seconds, when_long


def warm_up_command(json_output: Json = False, quiet: Quiet = False) -> None:
    """Compile all kernels now, so that no later command has to wait for it.

    Example: coalitions warm-up
    """
    from solvers.warm_up import TASKS, warm_up

    when_long(None)  # that is what is being done here
    began, console = time.monotonic(), stderr()
    done = []
    for number, what in enumerate(warm_up(), 1):
        done.append(what)
        if not quiet:
            console.print(f"{number}/{len(TASKS)}  {what}")
    seconds = time.monotonic() - began
    if json_output:
        print_json({"ready": done, "seconds": seconds, "compiling": ready_seconds()})
    elif not quiet:
        console.print(f"ready: {ready_seconds():.1f} s of {seconds:.1f} s were spent on compiling")


COMMANDS = {"warm-up": warm_up_command}
