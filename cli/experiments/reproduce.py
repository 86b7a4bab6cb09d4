"""`coalitions reproduce`: the papers' tables and figures, theirs beside ours, with verdicts."""

from __future__ import annotations

import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.experiments._progress import PATIENCE, CellsLine, costs
from cli.experiments._shared import SEEDS, SEEDS_HELP
from cli.terminal.completion import completion
from cli.terminal.output import Json, Quiet, Verbose, loudness, print_json, stderr, stdout
from coalitions.errors import InvalidInputError

if TYPE_CHECKING:
    from learners.reproduction.carry_out import Reproduced

SCALES = ("smoke", "small", "paper")


def reproduce_command(
    *,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]…",
            help="Tables or figures, as in fedc2i-table1. Without any, they are listed.",
            autocompletion=completion("experiments"),
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List them and exit.")] = False,
    scale: Annotated[
        str,
        typer.Option(
            metavar="|".join(SCALES),
            help="How much to run: seconds on generated data, at most twenty minutes on two cores,"
            " or all that the paper did.",
        ),
    ] = "small",
    seeds: Annotated[
        str | None,
        typer.Option(metavar=SEEDS, help=f"{SEEDS_HELP} [default: 1 at smoke, 5 or fewer else]"),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(help="Folder for the results; repeat the command to continue there."),
    ] = Path("reproduction"),
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with data files. [default: $COALITIONS_DATA]")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=0, help="Runs at a time; 0 takes as many as there are cores.")
    ] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate the cost and exit.")] = False,
    json_output: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Repeat tables and figures of the papers, and check which of their claims hold.

    Example: coalitions reproduce fedc2i-table1 --scale smoke --jobs 2
    """
    loudness(quiet, verbose)
    if scale not in SCALES:
        raise InvalidInputError(f"--scale is {scale!r}; it can be: {', '.join(SCALES)}")
    from learners.reproduction.experiment import EXPERIMENTS
    from learners.settings.seeding import seeds_of

    if seeds is not None:
        seeds_of(seeds, called="--seeds", alone="--seeds {0}-{0}")
    if list_ or not (names or all_):
        _list(json_output)
        return
    chosen = EXPERIMENTS.names() if all_ else list(dict.fromkeys(names or ()))
    from learners.reproduction.carry_out import carry_out, plan

    plans = [
        plan(name, scale, out, seeds=seeds, data_dir=data_dir)  # type: ignore[arg-type]
        for name in chosen
    ]
    if not quiet:
        thorough = dry_run or scale == "paper"
        for told in costs(plans, jobs, math.inf if thorough else PATIENCE[scale]):
            stderr().print(told, style="dim", soft_wrap=True)
    if dry_run:
        return
    done = []
    for planned in plans:
        each = planned.as_it_stands()
        with CellsLine(each.cells, jobs, shown=not quiet, verbose=verbose) as line:
            each.experiment.on_part = line.part
            command = _typed(each.name, scale, seeds, data_dir)
            done.append(carry_out(each, jobs=jobs, watch=line, command=command))
        if not json_output:
            _show(done[-1])
    if json_output:
        documents = [each.document() for each in done]
        print_json(documents[0] if len(documents) == 1 else documents)


def _typed(name: str, scale: str, seeds: str | None, data_dir: Path | None) -> str:
    """Return the command that repeats an experiment; the reader knows where the data are."""
    words = ["coalitions", "reproduce", name, "--scale", scale]
    words += [] if seeds is None else ["--seeds", seeds]
    words += [] if data_dir is None else ["--data-dir", "DIR"]
    return shlex.join(words)


def _list(json_output: bool) -> None:
    from learners.reproduction.experiment import EXPERIMENTS

    found = {name: EXPERIMENTS[name]() for name in EXPERIMENTS.names()}
    if json_output:
        print_json(
            {
                name: {
                    "title": each.title,
                    "runs": {scale: len(each.runs(scale)) for scale in SCALES},  # type: ignore[arg-type]
                    "source": None if each.printed is None else each.printed.where,
                }
                for name, each in found.items()
            }
        )
        return
    width = max(map(len, found), default=0)
    for name, each in found.items():
        stdout().print(f"{name:{width}}  {each.title}", soft_wrap=True)


def _show(done: Reproduced) -> None:
    from rich import box
    from rich.table import Table

    from learners.reproduction.pages import figure_of

    console = stdout()
    table = Table(title=f"{done.plan.name}: {done.plan.experiment.title}", box=box.SIMPLE)
    table.add_column(done.found.unit)
    for column in done.found.columns:
        table.add_column(column, justify="right")
        if done.printed is not None:
            table.add_column("paper", justify="right", style="dim")
    for row in done.found.rows:
        cells = [row]
        for column in done.found.columns:
            cells.append(figure_of(done.found.get(row, column)))
            if done.printed is not None:
                said = done.printed.get(row, column)
                cells.append("" if said is None else str(said))
        table.add_row(*cells)
    console.print(table)
    # At the smallest scale the notes say that these are other data than the table's title names.
    notes = done.plan.experiment.notes("smoke") if done.plan.scale == "smoke" else ()
    for sentence in (*notes, *done.missing):
        console.print(sentence, soft_wrap=True)
    for claim in done.claims:
        console.print(f"{claim.verdict:15} {claim.text}: {claim.why}", soft_wrap=True)
    console.print(f"{done.plan.folder / 'table.md'}", soft_wrap=True)
    sys.stdout.flush()


COMMANDS = {"reproduce": reproduce_command}
