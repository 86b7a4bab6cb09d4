"""`coalitions resume`: go on with a run that was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.federation.run import show
from cli.terminal.output import Json, Plugin, Quiet, Verbose, loudness
from cli.terminal.round_progress import RoundProgress


def resume_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The run's folder.")],
    json_output: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    plugin: Plugin = None,
) -> None:
    """Finish a run where it was interrupted; the numbers are those of an uninterrupted run.

    Example: coalitions resume runs/first
    """
    from learners.runs.folder import RunFolder
    from learners.runs.run import resume

    loudness(quiet, verbose)
    config = RunFolder.open(directory).config()
    with RoundProgress(config, quiet=quiet, verbose=verbose) as progress:
        result = resume(directory, on_round=progress.update)
    show(result, json_output)


COMMANDS = {"resume": resume_command}
