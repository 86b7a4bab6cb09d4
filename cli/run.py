"""`coalitions run`: a federated run, from its flags to its folder."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import _run_options as flags
from cli._output import Json, Plugin, Quiet, print_json, stderr, stdout

if TYPE_CHECKING:
    from learners.experiment import Result
    from learners.federation import Round


def run_command(
    config: Annotated[
        Path | None, typer.Argument(help="Settings as TOML, such as a run's config.toml.")
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            help="Federated method; `coalitions algorithms` lists them. [default: fedavg]"
        ),
    ] = None,
    dataset: flags.Dataset = None,
    data_dir: flags.DataDir = None,
    clients: flags.Clients = None,
    partition: flags.Partition = None,
    rounds: flags.Rounds = None,
    participation: flags.Participation = None,
    local_epochs: flags.LocalEpochs = None,
    batch_size: flags.BatchSize = None,
    lr: flags.Lr = None,
    model: flags.Model = None,
    train_size: flags.TrainSize = None,
    seed: Annotated[int | None, typer.Option(help="Source of all randomness. [default: 0]")] = None,
    device: flags.Device = None,
    engine: flags.Engine = None,
    workers: flags.Workers = None,
    optimizer: flags.Optimizer = None,
    momentum: flags.Momentum = None,
    aggregation: flags.Aggregation = None,
    noise: flags.Noise = None,
    clip: flags.Clip = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    dp: flags.Dp = None,
    poison: flags.Poison = None,
    option: flags.Set = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the run, which must not exist. [default: runs/NAME-N]"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the run in --out.")] = False,
    json_output: Json = False,
    quiet: Quiet = False,
    plugin: Plugin = None,
) -> None:
    """Train a federation, and keep everything that came out in a folder.

    Example: coalitions run --algorithm fedprox --set mu=0.1 --dataset digits --out runs/first
    """
    given = {
        "algorithm": algorithm,
        "dataset": dataset,
        "data_dir": data_dir,
        "clients": clients,
        "partition": partition,
        "rounds": rounds,
        "participation": participation,
        "local_epochs": local_epochs,
        "batch_size": batch_size,
        "lr": lr,
        "model": model,
        "train_size": train_size,
        "seed": seed,
        "device": device,
        "engine": engine,
        "workers": workers,
        "optimizer": optimizer,
        "momentum": momentum,
        "aggregation": aggregation,
        "noise": noise,
        "clip": clip,
        "epsilon": epsilon,
        "delta": delta,
        "dp": dp,
        "poison": poison,
    }
    from learners.config import RunConfig

    settings = RunConfig.of(flags.settings(config, given, option, plugin))
    folder = out or _free_folder(f"{settings.algorithm}-{settings.dataset}")
    from learners.experiment import run

    with RoundLine(settings.rounds, shown=not quiet) as line:
        result = run(settings, folder, force=force, on_round=line.update)
    show(result, json_output)


def show(result: Result, json_output: bool) -> None:
    """Print a run's result."""
    document = result.document()
    if json_output:
        print_json(document)
        return
    console = stdout()
    for key, value in _summary(document).items():
        console.print(f"{key:<22}{value}", soft_wrap=True)


def _summary(document: Mapping[str, Any]) -> dict[str, str]:
    accuracies = [each for each in document["per_client_test_accuracy"] if each is not None]
    traffic = document["communication"]
    return {
        "algorithm": document["algorithm"],
        "data set": f"{document['dataset']}, {document['clients']} clients",
        "mean test accuracy": f"{document['mean_test_accuracy']:.4f}",
        "worst client": f"{document['worst_client_accuracy']:.4f}",
        "each client": " ".join(f"{each:.3f}" for each in accuracies),
        "parameters sent": f"{traffic['up']:,} up, {traffic['down']:,} down",
        **_privacy(document),
        "time": f"{document['seconds']:.1f} s for {document['rounds']} rounds",
        "folder": str(document["out"]),
    }


def _privacy(document: Mapping[str, Any]) -> dict[str, str]:
    about = document["privacy"]
    if about is None:
        return {}
    spent = "∞" if document["epsilon"] is None else f"{document['epsilon']:.4g}"
    return {
        "privacy": f"ε = {spent} at δ = {about['delta']:g}, noise {about['noise']:.4g} in"
        f" {about['mode']} clipped to {about['clip']:g}",
        "it covers": about["covers"],
    }


class RoundLine:
    """A progress bar with round, accuracy, loss and time left, on a terminal only."""

    def __init__(self, n_rounds: int, shown: bool) -> None:
        self._n_rounds = n_rounds
        self._bar: Any = None
        console = stderr()
        if shown and console.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("round {task.completed}/{task.total}"),
                BarColumn(),
                TextColumn("{task.description}"),
                TimeRemainingColumn(),
                console=console,
                transient=True,
            )

    def __enter__(self) -> RoundLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, round: Round) -> None:
        """Show where the run is."""
        if self._bar is None:
            return
        if not self._bar.tasks:  # begun after the workers were forked: the bar has a thread
            self._bar.add_task("", total=self._n_rounds)
            self._bar.start()
        words = []
        if "mean_test_accuracy" in round.metrics:
            words.append(f"accuracy {round.metrics['mean_test_accuracy']:.4f}")
        if round.metrics["train_loss"] is not None:
            words.append(f"loss {round.metrics['train_loss']:.4f}")
        self._bar.update(
            self._bar.tasks[0].id, completed=round.number, description="  ".join(words)
        )


def _free_folder(name: str) -> Path:
    """Return the first of runs/NAME-1, runs/NAME-2 … that does not exist."""
    folders = (Path("runs") / f"{name}-{number}" for number in itertools.count(1))
    return next(folder for folder in folders if not folder.exists())


COMMANDS = {"run": run_command}
