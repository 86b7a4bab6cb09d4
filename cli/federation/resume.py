"""`coalitions resume`: go on with a run that was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.federation.run import Log, show, told_when_stopped
from cli.terminal.output import Json, Quiet, Verbose, split_names
from cli.terminal.progress import RoundProgress


def resume_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The run's folder.")],
    log: Log = None,
    json_output: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Continue an interrupted run; the results are those of an uninterrupted one.

    Logs in the folder are continued.

    Example: coalitions resume runs/first
    """
    from learners.loggers import loggers_of, logs_in
    from learners.runs.folder import RunFolder
    from learners.runs.run import resume

    config = RunFolder.open(directory).config()
    loggers = loggers_of([*logs_in(directory), *split_names(log, "--log")])
    with (
        told_when_stopped(directory, config.rounds, quiet=quiet),
        RoundProgress(config, quiet=quiet, verbose=verbose) as progress,
    ):
        result = resume(directory, on_round=progress.update, callbacks=loggers)
    show(result, json_output)


COMMANDS = {"resume": resume_command}
