"""`coalitions reproduce`: the papers' tables and figures, theirs beside ours, with verdicts."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.experiments._progress import PATIENCE, CellsLine, costs
from cli.experiments._shared import SEEDS, SEEDS_HELP
from cli.terminal.completion import completion
from cli.terminal.output import Json, Quiet, Verbose, print_json, stderr, stdout
from coalitions.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from learners.reproduction.carry_out import Plan

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
    from learners.reproduction.carry_out import carry_out, plan, print_reproduced, typed_command

    plans = [
        plan(name, scale, out, seeds=seeds, data_dir=data_dir)  # type: ignore[arg-type]
        for name in chosen
    ]
    patience = math.inf if dry_run or scale == "paper" else PATIENCE[scale]
    if dry_run:
        _show_plans(plans, list(costs(plans, jobs, patience)), json_output)
        return
    for estimate in () if quiet else costs(plans, jobs, patience):
        stderr().print(estimate, style="dim", soft_wrap=True)
    done = []
    for planned in plans:
        each = planned.as_it_stands()
        with CellsLine(each.cells, jobs, shown=not quiet, verbose=verbose) as line:
            each.experiment.on_part = line.part
            command = typed_command(each.name, each.scale, seeds, data_dir)
            done.append(carry_out(each, jobs=jobs, watch=line, command=command))
        if not json_output:
            print_reproduced(done[-1], stdout())
            sys.stdout.flush()
    if json_output:
        documents = [each.to_dict() for each in done]
        print_json(documents[0] if len(documents) == 1 else documents)


def _show_plans(plans: Sequence[Plan], estimates: Sequence[str], json_output: bool) -> None:
    if json_output:
        print_json(
            {
                "experiments": [
                    {
                        "name": each.name,
                        "scale": each.scale,
                        "seeds": list(each.seeds),
                        "runs": len(each.cells),
                    }
                    for each in plans
                ],
                "estimates": estimates,
            }
        )
        return
    for estimate in estimates:
        stdout().print(estimate, soft_wrap=True)


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


COMMANDS = {"reproduce": reproduce_command}
