"""`coalitions compare`: several methods on the same data, several seeds, one row each."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import _run_options as flags
from cli._output import Json, Plugin, Quiet, print_json, stderr, stdout
from coalitions.errors import InvalidInputError

if TYPE_CHECKING:
    from learners.experiment import Result


def compare_command(
    config: Annotated[
        Path | None, typer.Argument(help="Settings as TOML that all runs share.")
    ] = None,
    algorithms: Annotated[
        str,
        typer.Option(
            metavar="A,B,…", help="Methods, or `all`; `coalitions algorithms` lists them."
        ),
    ] = "local,fedavg",
    seeds: Annotated[str, typer.Option(metavar="N,N,…", help="Seeds.")] = "0,1,2",
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
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="[ALGORITHM.]OPTION=VALUE",
            help="An option of one method, as in fedprox.mu=0.1, or of all that have it.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the runs' folders. [default: none is kept]")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace runs in --out.")] = False,
    json_output: Json = False,
    quiet: Quiet = False,
    plugin: Plugin = None,
) -> None:
    """Compare federated methods: mean and deviation over seeds, one row per method.

    Example: coalitions compare --algorithms local,fedavg,fedprox --seeds 0,1,2 --rounds 10
    """
    given = {
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
    numbers = _seeds(seeds)
    from dataclasses import fields

    from learners.algorithm import ALGORITHMS, algorithm_of
    from learners.config import RunConfig
    from learners.experiment import run

    names = ALGORITHMS.names() if algorithms == "all" else _names(algorithms)
    known = {name: {each.name for each in fields(ALGORITHMS[name])} for name in names}
    options = _options(option, known)
    shared = flags.settings(config, given, None, plugin)
    for name in names:  # a misspelt name or option is said before the first run
        algorithm_of(RunConfig.of(shared | {"algorithm": name, "options": options[name]}))
    rows: dict[str, dict[str, Any]] = {}
    console = stderr()
    watched = not quiet and console.is_terminal
    for number, name in enumerate(names, 1):
        results = []
        for seed in numbers:
            if watched:
                console.print(f"{number}/{len(names)} {name}, seed {seed}", style="dim")
            settings = shared | {"algorithm": name, "seed": seed, "options": options[name]}
            # Only the last round's evaluation is reported.
            settings |= {"evaluate_every": RunConfig.of(settings).rounds}
            folder = None if out is None else out / f"{name}-seed{seed}"
            results.append(run(settings, folder, force=force))
        rows[name] = _row(results)
    if json_output:
        print_json({"seeds": numbers, "algorithms": rows})
    else:
        _print(rows, len(numbers))


def _row(results: Sequence[Result]) -> dict[str, Any]:
    """Return one method's figures over its seeds."""
    accuracies = [result.mean_test_accuracy for result in results]
    return {
        "mean_test_accuracy": statistics.fmean(accuracies),
        "sd": statistics.stdev(accuracies) if len(accuracies) > 1 else None,
        "per_seed": accuracies,
        "model": results[0].metrics["model"],
        "other_models": {
            kind: statistics.fmean(r.metrics[f"{kind}{_ACCURACY}"] for r in results)
            for kind in _other_models(results[0])
        },
        "worst_client_accuracy": statistics.fmean(r.worst_client_accuracy for r in results),
        "communication": {
            way: round(statistics.fmean(r.communication[way] for r in results))
            for way in ("up", "down")
        },
        "epsilon": _most([result.epsilon for result in results]),
        "seconds": statistics.fmean(result.seconds for result in results),
    }


def _most(spent: Sequence[float | None]) -> float | None:
    """Return the ε of the worst seed; None if one has no finite ε."""
    finite = [each for each in spent if each is not None]
    return max(finite) if len(finite) == len(spent) else None


_ACCURACY = "_mean_test_accuracy"


def _other_models(result: Result) -> list[str]:
    """Return what else a method has for its clients: the global model besides personal ones."""
    return [key.removesuffix(_ACCURACY) for key in result.metrics if key.endswith(_ACCURACY)]


def _print(rows: dict[str, dict[str, Any]], n_seeds: int) -> None:
    from rich.table import Table

    table = Table(
        "algorithm",
        "accuracy",
        "worst",
        "other model",
        "up",
        "down",
        "s",
        box=None,
        pad_edge=False,
    )
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
        column.no_wrap = True
    for name, row in rows.items():
        deviation = "" if row["sd"] is None else f" ± {row['sd']:.4f}"
        traffic = row["communication"]
        table.add_row(
            name,
            f"{row['mean_test_accuracy']:.4f}{deviation}",
            f"{row['worst_client_accuracy']:.4f}",
            ", ".join(f"{kind} {mean:.4f}" for kind, mean in row["other_models"].items()),
            f"{traffic['up'] / 1e6:.2f} M",
            f"{traffic['down'] / 1e6:.2f} M",
            f"{row['seconds']:.1f}",
        )
    console = stdout()
    console.print(table)
    spread = ", ± their standard deviation" if n_seeds > 1 else ""
    console.print(
        f"Accuracy on the clients' own test data, mean over {n_seeds} seed{'s'[: n_seeds - 1]}"
        f"{spread}; parameters sent up and down; seconds of a run.",
        soft_wrap=True,
    )


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InvalidInputError("--algorithms names at least one method, as in local,fedavg")
    return list(dict.fromkeys(names))


def _seeds(text: str) -> list[int]:
    try:
        return [int(seed) for seed in text.split(",")]
    except ValueError:
        raise InvalidInputError(
            f"--seeds takes whole numbers, as in 0,1,2; it got {text!r}"
        ) from None


def _options(
    settings: list[str] | None, known: Mapping[str, set[str]]
) -> dict[str, dict[str, str]]:
    """Return each method's own options, given the names of those it has."""
    options: dict[str, dict[str, str]] = {name: {} for name in known}
    for setting in settings or ():
        target, equals, value = setting.partition("=")
        name, _, option = target.rpartition(".")
        option = option.replace("-", "_")
        if not equals or not option or (name and name not in known):
            raise InvalidInputError(
                "--set takes OPTION=VALUE, or ALGORITHM.OPTION=VALUE for one of --algorithms,"
                f" as in fedprox.mu=0.1; it got {setting!r}"
            )
        having = [name] if name else [each for each in known if option in known[each]]
        if not having:
            raise InvalidInputError(
                f"--set {setting}: none of the methods has an option {option!r}"
            )
        for each in having:
            options[each][option] = value
    return options


COMMANDS = {"compare": compare_command}
