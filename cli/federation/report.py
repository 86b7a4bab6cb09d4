"""`coalitions report`: what a run did, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.terminal.output import Json, print_json, stderr, stdout


def report_command(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR…", help="Folders of runs, or of a comparison, side by side."),
    ],
    output: Annotated[
        Path | None, typer.Option(help="HTML file. [default: report.html in the first folder]")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also write every figure to this folder, as PNG and SVG.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Write one self-contained HTML page about one run, or several side by side.

    Example: coalitions report runs/first runs/second --output comparison.html
    """
    from cli.report.contents import sections_of
    from cli.report.methods import methods_of, read_runs
    from cli.report.page import page
    from coalitions.files.writing import atomic_write

    runs, waiting = read_runs(folders)
    for late in waiting:
        stderr().print(f"{late} has not finished a round yet, and is left out.", style="dim")
    methods = methods_of(runs)
    sections = sections_of(methods)
    target = output or folders[0] / "report.html"
    with atomic_write(target) as file:
        file.write(page(methods, sections).encode())
    written = [str(target)]
    if figures is not None:
        from cli.report.static import save_figures

        written += map(str, save_figures(sections, figures))
    if json_output:
        print_json({"report": str(target), "figures": written[1:], "runs": [r.name for r in runs]})
    else:
        for path in written:
            stdout().print(path, soft_wrap=True)


COMMANDS = {"report": report_command}
