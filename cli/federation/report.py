"""`coalitions report`: what a run did, on one page; with --watch, what it is doing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.terminal.output import WRITTEN, Json, Quiet, print_json, stderr, stdout
from coalitions.errors import InvalidInputError


def report_command(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR…", help="Folders of runs, or of a comparison, side by side."),
    ],
    output: Annotated[
        Path | None,
        WRITTEN,
        typer.Option(help="HTML file. [default: report.html in the first folder]"),
    ] = None,
    plots: Annotated[
        Path | None, typer.Option(help="Also draw every figure in this folder, as PNG and SVG.")
    ] = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Follow unfinished runs: update the page, which reloads in the browser, until all"
            " are finished. Ctrl-C stops.",
        ),
    ] = False,
    every: Annotated[
        float | None,
        typer.Option(min=0.1, help="Seconds from one look to the next with --watch. [default: 5]"),
    ] = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write one self-contained HTML page about one run or several.

    Example: coalitions report runs/first --output report.html
    """
    if every is not None and not watch:
        raise InvalidInputError("--every has no effect without --watch")
    target = output or folders[0] / "report.html"
    if watch:
        from cli.report.writing import watched

        watched(folders, target, 5.0 if every is None else every)
    from cli.report.writing import write_page

    sections, runs, waiting = write_page(folders, target)
    for late in () if quiet else waiting:
        stderr().print(f"{late} has not finished a round yet, and is left out.", style="dim")
    written = [str(target)]
    if plots is not None:
        from cli.report.static import save_figures

        written += map(str, save_figures(sections, plots))
    if json_output:
        print_json({"report": str(target), "figures": written[1:], "runs": [r.name for r in runs]})
    else:
        for path in written:
            stdout().print(path, soft_wrap=True)


COMMANDS = {"report": report_command}
