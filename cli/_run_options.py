"""The flags of a federated run, shared by `run` and `compare`, and how they become settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from coalitions.errors import InvalidInputError

Dataset = Annotated[
    str | None, typer.Option(help="Data set; `coalitions datasets` lists them. [default: digits]")
]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder with data files; else $COALITIONS_DATA.")
]
Clients = Annotated[int | None, typer.Option(help="Number of clients. [default: 10]")]
Partition = Annotated[
    str | None,
    typer.Option(
        help="Who has what: iid, pathological:K, ring:K, dirichlet:ALPHA, quantity:ALPHA,"
        " domains. [default: domains if the data set has some, else pathological:2]"
    ),
]
Rounds = Annotated[int | None, typer.Option(help="Number of rounds. [default: 20]")]
Participation = Annotated[
    float | None, typer.Option(help="Share of the clients in each round. [default: 1]")
]
LocalEpochs = Annotated[
    int | None, typer.Option(help="Passes over a client's data in a round. [default: 2]")
]
BatchSize = Annotated[int | None, typer.Option(help="Images in a batch. [default: 10]")]
Lr = Annotated[float | None, typer.Option(help="Learning rate. [default: 0.05]")]
Model = Annotated[str | None, typer.Option(help="Network. [default: one that suits the data]")]
TrainSize = Annotated[int | None, typer.Option(help="Images a client trains on, with validation.")]
Optimizer = Annotated[str | None, typer.Option(help="sgd or adam. [default: sgd]")]
Momentum = Annotated[float | None, typer.Option(help="Momentum of sgd. [default: 0]")]
Aggregation = Annotated[
    str | None, typer.Option(help="How the server combines models. [default: mean]")
]
Noise = Annotated[
    float | None,
    typer.Option(metavar="SIGMA", help="Noise that clients add, in units of --clip. [default: 0]"),
]
Clip = Annotated[
    float | None,
    typer.Option(
        metavar="C", help="Most that an update (or, with --dp records, an image) can weigh."
    ),
]
Epsilon = Annotated[
    float | None,
    typer.Option(
        metavar="E", help="Privacy to keep within: chooses --noise (--clip is 1 if not given)."
    ),
]
Delta = Annotated[
    float | None, typer.Option(metavar="D", help="The δ that ε goes with. [default: 1e-5]")
]
Dp = Annotated[
    str | None,
    typer.Option(help="What is made private: updates or records (DP-SGD). [default: updates]"),
]
Poison = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND:CLIENTS",
        help="Poison clients' data: wrong-labels:3,4, swap-1-7:5, noise:2; may be repeated.",
    ),
]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps. [default: auto]")]
Engine = Annotated[str | None, typer.Option(help="Who carries messages. [default: local]")]
Workers = Annotated[
    int | None, typer.Option(help="Worker processes. [default: 0, the number of cores]")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="OPTION=VALUE",
        help="An option of the algorithm's own; `coalitions algorithms` lists them.",
    ),
]


def settings(
    config_file: Path | None,
    flags: Mapping[str, Any],
    options: Sequence[str] | None,
    plugins: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the settings of a run: those of the file, overruled by the flags that were given.

    Parameters
    ----------
    config_file
        TOML file, such as a run's `config.toml`.
    flags
        Settings by name; None if the flag was not given.
    options
        ``OPTION=VALUE`` of the algorithm.
    plugins
        Modules that were imported for the run.
    """
    from learners.config import RunConfig

    values = {} if config_file is None else RunConfig.read(config_file).values()
    given = {name: value for name, value in flags.items() if value is not None}
    if given.get("algorithm", values.get("algorithm")) != values.get("algorithm"):
        values.pop("options", None)  # the options in the file are those of another algorithm
    if given.get("data_dir") is not None:
        given["data_dir"] = str(Path(given["data_dir"]).resolve())
    values |= given
    if plugins:
        values["plugins"] = [*dict.fromkeys([*values.get("plugins", ()), *plugins])]
    own = dict(values.get("options", {}))
    for option in options or ():
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise InvalidInputError(f"--set takes OPTION=VALUE, as in mu=0.1; it got {option!r}")
        own[name] = value
    return values | {"options": own}
