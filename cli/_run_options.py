"""The flags of a federated run, made from the table of settings, and how they become settings."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cli._names import completion
from coalitions.errors import InvalidInputError
from learners.config import RunConfig
from learners.options import Option, options_of

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


def takes_settings(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command one flag for every setting of a run.

    The command gets those that were typed as its argument `given`, by name.

    Parameters
    ----------
    *without
        Settings that the command decides itself.
    """
    rows = [row for row in options_of(RunConfig) if row.name not in ("plugins", *without)]
    flags = [_flag(row) for row in rows]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())
        place = [each.name for each in own].index("given")
        parameters = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for each in (*own[:place], *flags, *own[place + 1 :])
        ]

        @functools.wraps(command)
        def with_flags(**arguments: Any) -> None:  # noqa: ANN401 (what was typed)
            values = {row.name: arguments.pop(row.name) for row in rows}
            given = {name: value for name, value in values.items() if value is not None}
            command(given=given, **arguments)

        with_flags.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_flags.__annotations__ = {each.name: each.annotation for each in parameters}
        return with_flags

    return decorate


def _flag(row: Option) -> inspect.Parameter:
    """Return the parameter that is a setting's flag; its value is None if it was not typed."""
    kinds = [kind for kind in (int, float) if kind in (row.hint, *typing.get_args(row.hint))]
    kind: Any = kinds[0] if kinds else str
    if typing.get_origin(row.hint) is tuple:
        kind = list[str]
    about = [] if row.range is None else [str(row.range)]
    if row.default is not None and row.default != ():
        about.append(f"default: {row.default}")
    elif row.unset:
        about.append(f"default: {row.unset}")
    help_text = row.summary + (f" [{'; '.join(about)}]" if about else "")
    flag = typer.Option(
        help=help_text.replace(" [", " \\["),  # rich takes brackets for mark-up
        metavar=None if row.choices is None else "|".join(row.choices),
        rich_help_panel=row.group,
        autocompletion=None if row.names is None else completion(row.names),
    )
    return inspect.Parameter(
        row.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, flag],
    )


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
