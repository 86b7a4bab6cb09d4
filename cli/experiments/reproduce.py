"""`coalitions reproduce`: the papers' tables and figures, theirs beside ours, with verdicts."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.experiments._progress import CellsLine, spoken_time
from cli.terminal.completion import completion
from cli.terminal.output import Json, Quiet, Verbose, loudness, print_json, stderr, stdout
from coalitions.errors import InvalidInputError

if TYPE_CHECKING:
    from learners.reproduction.carry_out import Plan, Reproduced
    from learners.settings.config import RunConfig

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
    list_: Annotated[bool, typer.Option("--list", help="List them, and do nothing.")] = False,
    scale: Annotated[
        str,
        typer.Option(
            metavar="|".join(SCALES),
            help="How much is done: seconds on data made here, twenty minutes of two cores at most,"
            " or what the paper did.",
        ),
    ] = "small",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds. [default: 1 at smoke, else 2 to 5]")
    ] = None,
    out: Annotated[
        Path,
        typer.Option(help="Folder for the results; the same command goes on with what is there."),
    ] = Path("reproduction"),
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with data files. [default: $COALITIONS_DATA]")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=0, help="Runs at a time; 0 takes as many as there are cores.")
    ] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take, and do nothing.")
    ] = False,
    json_output: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Repeat tables and figures of the papers: their figures beside ours, and which claims hold.

    Example: coalitions reproduce fedc2i-table1 --scale small --data-dir data --jobs 2
    """
    loudness(quiet, verbose)
    if scale not in SCALES:
        raise InvalidInputError(f"--scale is {scale!r}; it can be: {', '.join(SCALES)}")
    from learners.reproduction.experiment import EXPERIMENTS

    if list_ or not (names or all_):
        _list(json_output)
        return
    chosen = EXPERIMENTS.names() if all_ else list(dict.fromkeys(names or ()))
    from learners.reproduction.carry_out import carry_out, plan

    plans = [
        plan(name, scale, out, seeds=seeds, data_dir=data_dir)  # type: ignore[arg-type]
        for name in chosen
    ]
    say = _speaker(quiet)
    _say_cost(plans, jobs, say, told=dry_run or scale == "paper")
    if dry_run:
        return
    done = []
    for planned in plans:
        each = planned.as_it_stands()
        with CellsLine(each.cells, jobs, shown=not quiet, verbose=verbose) as line:
            command = _typed(each.name, scale, seeds, data_dir)
            done.append(carry_out(each, jobs=jobs, watch=line, command=command))
        if not json_output:
            _show(done[-1])
    if json_output:
        documents = [each.document() for each in done]
        print_json(documents[0] if len(documents) == 1 else documents)


def _typed(name: str, scale: str, seeds: int | None, data_dir: Path | None) -> str:
    """Return the command that repeats an experiment; the reader knows where the data are."""
    words = ["coalitions", "reproduce", name, "--scale", scale]
    words += [] if seeds is None else ["--seeds", str(seeds)]
    words += [] if data_dir is None else ["--data-dir", "DIR"]
    return shlex.join(words)


def _speaker(quiet: bool) -> Any:  # noqa: ANN401 (a function of a text)
    console = stderr()

    def say(words: str) -> None:
        if not quiet:
            console.print(words, style="dim", soft_wrap=True)

    return say


def _say_cost(plans: Sequence[Plan], jobs: int, say: Any, *, told: bool) -> None:  # noqa: ANN401
    """Say how many runs are left and, where it matters, how long they will take."""
    from learners.comparisons.cells import cores

    ahead: set[Path | None] = set()  # what two experiments have in common is made once
    known: dict[str, float] = {}
    for each in plans:
        left = [cell for cell in each.cells if cell.stage != "finished"]
        there = f", {n} of them are there" if (n := len(each.cells) - len(left)) else ""
        new = [cell for cell in left if cell.folder not in ahead]
        ahead.update(cell.folder for cell in new)
        earlier = f", {n} of them are also earlier ones'" if (n := len(left) - len(new)) else ""
        cost = ""
        if told and new:
            seconds = sum(_seconds(cell.config, jobs, known) for cell in new)
            cost = f", about {spoken_time(seconds / (jobs or cores()))} on this machine"
        say(f"{each.name}: {len(each.cells)} runs{there}{earlier}{cost}")


def _seconds(config: RunConfig, jobs: int, known: dict[str, float]) -> float:
    """Return what a run would take, by a rehearsal of one of those that take as long."""
    from learners.runs.forecast import forecast
    from learners.settings.config import settings_digest

    if jobs != 1:  # runs at a time have one process each; one alone has as many as it may
        config = replace(config, workers=1)
    # Rates and strengths change what is learned, not how long it takes.
    whole = {name: value for name, value in config.options.items() if not isinstance(value, float)}
    like = settings_digest(replace(config, lr=1.0, momentum=0.0, poison=(), options=whole))
    if like not in known:
        known[like] = forecast(config).seconds
    return known[like]


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

    from learners.reproduction.tables import figure_of

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
    for sentence in done.missing:
        console.print(sentence, soft_wrap=True)
    for claim in done.claims:
        console.print(f"{claim.verdict:15} {claim.text}", soft_wrap=True)
    console.print(f"{done.plan.folder / 'table.md'}", soft_wrap=True)
    sys.stdout.flush()


COMMANDS = {"reproduce": reproduce_command}
