"""The flags of a federated run, made from the table of settings, and how they become settings."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.terminal.completion import UNLISTED, complete_option, completion, registered
from cli.terminal.flags import with_flags
from cli.terminal.output import split_names
from coalitions.errors import InvalidInputError, shown
from learners.settings.config import RunConfig, read_toml
from learners.settings.options import Option, options_of

Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="OPTION=VALUE",
        help="Set an option of the algorithm; `coalitions options NAME` lists them.",
        autocompletion=complete_option,
    ),
]

_OF_MANY = ("algorithms", "seeds", "baseline", "variants", "tuned", "tuning")
"""Keys of a file for many runs."""

_FILES = ("data_dir", "schema", "weights")
"""Settings that are the name of a file or a folder."""

_SETTINGS = [row.name for row in options_of(RunConfig)]


def takes_settings(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command one flag for every setting of a run.

    The command gets those that were typed as its argument `given`, by name.

    Parameters
    ----------
    *without
        Settings that the command decides itself.
    """
    rows = [row for row in options_of(RunConfig) if row.name not in ("plugins", *without)]

    def given(typed: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in typed.items() if value is not None}

    return with_flags("given", [_flag(row) for row in rows], given)


def _flag(row: Option) -> inspect.Parameter:
    """Return the parameter that is a setting's flag; its value is None if it was not typed."""
    kinds = [kind for kind in (int, float) if kind in (row.hint, *typing.get_args(row.hint))]
    kind: Any = kinds[0] if kinds else str
    if typing.get_origin(row.hint) is tuple:
        # Numbers stand in one list, 200,200,125; texts, which may have commas, in flags of their
        # own.
        kind = list[str] if typing.get_args(row.hint)[0] is str else str
    if row.hint is bool:
        kind = bool
    if row.name in _FILES:
        kind = Path
    about = [] if row.range is None else [str(row.range)]
    if row.names in UNLISTED:
        about.append(", ".join(registered(row.names)))
    if row.default is not None and row.default != ():
        about.append(f"default: {row.default}")
    elif row.unset:
        about.append(f"default: {row.unset}")
    help_text = row.summary + (f" [{'; '.join(about)}]" if about else "")
    flag = typer.Option(
        help=help_text,
        metavar=None if row.choices is None else "|".join(row.choices),
        rich_help_panel=row.group,
        autocompletion=None
        if row.names is None
        else completion(row.names, several=kind == list[str]),
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
    also: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the settings of a run: those of the file, overruled by the flags that were given.

    Parameters
    ----------
    config_file
        TOML file, such as a run's `config.toml`.
    flags
        Those that were typed, by name.
    options
        ``OPTION=VALUE`` of the algorithm.
    plugins
        Modules that were imported for the run.
    also
        Keys of the file that are no settings of a run, but go with them.
    """
    values, tables = ({}, {}) if config_file is None else _read(config_file, also)
    given = dict(flags)
    filed = values.get("algorithm")
    if filed is not None and given.get("algorithm", filed) != filed:
        values.pop("options", None)  # the options in the file are those of another algorithm
    for key in _FILES:  # a run's folder may be used from elsewhere
        if given.get(key) is not None:
            given[key] = str(Path(given[key]).resolve())
    if given.get("weights") is not None:
        values.pop("weights_sha256", None)  # that of the file which the file of settings named
    if given.get("metric"):
        given["metric"] = split_names(given["metric"], "--metric")
    if given.get("dataset") is not None and given["dataset"] not in registered("datasets"):
        given["dataset"] = _whole_path(given["dataset"])
        values.pop("data_sha256", None)  # that of the data which the file of settings named
    values |= given
    if plugins:
        values["plugins"] = [*dict.fromkeys([*values.get("plugins", ()), *plugins])]
    own = dict(values.get("options", {}))
    options = [] if options is None else options
    for number, option in enumerate(options):
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise InvalidInputError(
                f"--set takes OPTION=VALUE, as in mu=0.1; it got {shown(option)}"
            )
        if name.replace("-", "_") in _SETTINGS:
            raise InvalidInputError(
                f"--set {name}: that is a setting of the run, not an option of the algorithm; give"
                f" --{name.replace('_', '-')}"
            )
        if name in [given.partition("=")[0] for given in options[:number]]:
            raise InvalidInputError(f"--set {name} is given twice; give it once")
        own[name] = value
    _check_clients(values, given)
    return values | {"options": own} | tables


def _check_clients(values: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse a typed number of clients that is the default one, but not that of the data.

    Settings do not tell whether somebody typed the default; any other number a run checks itself.
    """
    if given.get("clients") != RunConfig.clients or not Path(str(values.get("dataset"))).exists():
        return
    from learners.data.own.paths import check_clients, has_own_data, read_own

    config = RunConfig.of(values)
    if has_own_data(config):
        check_clients(Path(config.dataset), len(read_own(config).clients), config.clients)


def _whole_path(dataset: str) -> str:
    """Return a data set's path from the root, so that it can be read from anywhere; or its name."""
    from learners.data.own.paths import is_path

    if not is_path(dataset, ()):
        return dataset
    from learners.data.dataset import DATASETS  # with those of plug-ins

    return dataset if dataset in DATASETS else str(Path(dataset).resolve())


def _read(path: Path, also: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings that a file has, checked, and what goes with them."""
    values = read_toml(path)
    tables = {name: values.pop(name) for name in also if name in values}
    for name in _OF_MANY:
        if name in values:
            raise InvalidInputError(
                f"{path}: {name} is not for this command, but for `coalitions compare`; take it out"
            )
    try:
        complete = RunConfig.of(values).values()
        said = {name.replace("-", "_") for name in values}
        return {name: value for name, value in complete.items() if name in said}, tables
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from None
