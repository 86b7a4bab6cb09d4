"""`coalitions resume`: go on with a run that was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli._output import Json, Quiet
from cli.run import RoundLine, show


def resume_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The run's folder.")],
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Finish a run where it was interrupted; the numbers are those of an uninterrupted run.

    Example: coalitions resume runs/first
    """
    from learners.experiment import resume
    from learners.folder import RunFolder

    n_rounds = RunFolder.open(directory).config().rounds
    with RoundLine(n_rounds, shown=not quiet) as line:
        result = resume(directory, on_round=line.update)
    show(result, json_output)


COMMANDS = {"resume": resume_command}
