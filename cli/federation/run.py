"""What a run that is stopped by Ctrl-C says: which round is kept, and how to go on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.terminal import run_options as flags
from cli.terminal.completion import check_names
from cli.terminal.output import (
    Json,
    Plugin,
    Quiet,
    Verbose,
    print_json,
    split_names,
    stderr,
    stdout,
)
from cli.terminal.progress import RoundProgress

if TYPE_CHECKING:
    from learners.runs.forecast import CostForecast
    from learners.runs.result import Result


@contextmanager
def told_when_stopped(folder: Path, rounds: int, *, quiet: bool) -> Iterator[None]:
    """Say on Ctrl-C which round of a run is kept, and how to go on.

    Parameters
    ----------
    folder
        The run's folder.
    rounds
        Rounds of the whole run.
    quiet
        Say nothing.
    """
    try:
        yield
    except KeyboardInterrupt:
        if not quiet and (folder / "config.toml").is_file():
            stderr().print(_kept_rounds(folder, rounds), style="dim", soft_wrap=True, markup=False)
        raise


def _kept_rounds(folder: Path, rounds: int) -> str:
    from learners.runs.checkpoint import newest_first, round_of

    done = [round_of(file) for file in newest_first(folder / "checkpoints")]
    if not done:
        return f"No round is kept yet; `coalitions resume {folder}` begins again."
    if done[0] == rounds:
        return f"All {rounds} rounds are kept; `coalitions resume {folder}` writes the result."
    return (
        f"Round {done[0]} of {rounds} is saved; `coalitions resume {folder}` continues with round"
        f" {done[0] + 1}."
    )


# ----------------------------------------------------------------------------------------
# `coalitions run`: a federated run, from its flags to its folder.

Log = Annotated[
    list[str] | None,
    typer.Option(
        metavar="csv,tensorboard",
        help="Also write every round to metrics.csv or tensorboard/ in the run's folder.",
    ),
]


@flags.takes_settings()
def run_command(
    *,
    config: Annotated[
        Path | None, typer.Argument(help="Settings as TOML, such as a run's config.toml.")
    ] = None,
    given: Mapping[str, Any],
    option: flags.Set = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the run, which must not exist. [default: runs/NAME-N]"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the run in --out.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the complete configuration, and what time, memory and traffic it would"
            " take; train nothing, write nothing.",
        ),
    ] = False,
    log: Log = None,
    json_output: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    plugin: Plugin = None,
) -> None:
    """Train a federation, and save all results in a folder.

    `coalitions options` explains every setting, and the options that --set gives an algorithm.

    Example: coalitions run --algorithm fedprox --set mu=0.1 --dataset digits --out runs/first
    """
    from learners.settings.config import RunConfig

    settings = RunConfig.of(flags.settings(config, given, option, plugin))
    names = {"algorithms": settings.algorithm, "datasets": settings.dataset}
    check_names(names | {"models": settings.model}, settings.plugins)
    for metric in settings.metric:
        check_names({"metrics": metric}, settings.plugins)
    if dry_run:
        from learners.runs.folder import RunFolder
        from learners.runs.forecast import forecast

        if out is not None:
            RunFolder.check_free(out, force=force)
        expected = forecast(settings)
        if expected.remark and not quiet:
            _tell(expected.remark)
        show_forecast(expected, json_output)
        return
    folder = out or _free_folder(f"{settings.algorithm}-{Path(settings.dataset).stem}")
    from learners.loggers import loggers_of
    from learners.runs.run import run

    loggers = loggers_of(split_names(log, "--log"))
    with (
        told_when_stopped(folder, settings.rounds, quiet=quiet),
        RoundProgress(settings, quiet=quiet, verbose=verbose) as progress,
    ):
        result = run(
            settings,
            folder,
            force=force,
            on_round=progress.update,
            callbacks=loggers,
            tell=_keep_silent if quiet else _tell,
        )
    show(result, json_output)


def _tell(sentence: str) -> None:
    stderr().print(sentence, style="dim", soft_wrap=True, markup=False)


def _keep_silent(sentence: str) -> None:
    pass


def show(result: Result, json_output: bool) -> None:
    """Print a run's result."""
    document = result.to_dict()
    if json_output:
        print_json(document)
    else:
        print_result(document)


def print_result(document: Mapping[str, Any]) -> None:
    """Print a run's document for people."""
    from learners.runs.summary import summary

    console = stdout()
    for key, value in summary(document).items():
        console.print(f"{key:<22}{value}", soft_wrap=True, markup=False)


def show_forecast(forecast: CostForecast, json_output: bool) -> None:
    """Print what a run would take: its configuration as TOML, the estimates as comments in it."""
    if json_output:
        print_json(forecast.document())
        return
    typer.echo(forecast.config.toml())
    for line in forecast.sentences():
        typer.echo(f"# {line}")


def _free_folder(name: str) -> Path:
    """Return the first of runs/NAME-1, runs/NAME-2 … that does not exist."""
    folders = (Path("runs") / f"{name}-{number}" for number in itertools.count(1))
    return next(folder for folder in folders if not folder.exists())


COMMANDS = {"run": run_command}
