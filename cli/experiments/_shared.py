"""What compare, tune and reproduce share: flags, plans of runs, and files of tuned options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.terminal import run_options as flags
from cli.terminal.completion import completion
from cli.terminal.output import split_names
from coalitions.errors import InvalidInputError
from coalitions.plugins import import_plugins
from learners.settings.config import current_options, is_of_old

# ----------------------------------------------------------------------------------------
# What a file and flags ask of many runs: what all of them share, whose options, which seeds.

SEEDS = "N|N,N,…|N-N"
"""What --seeds takes."""

SEEDS_HELP = "How many seeds, as in 3; or which ones, as in 0,1,2 or 10-14."

Algorithms = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A,B,…",
        help="Methods, or `all`; `coalitions algorithms` lists them. [default: those of the file;"
        " `compare`: also those of --variant and --sweep, or else local,fedavg]",
        autocompletion=completion("algorithms", several=True),
    ),
]

Seed = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="This one seed, in place of --seeds.")
]


@dataclass(frozen=True)
class Shared:
    """What a file and flags ask of many runs.

    Attributes
    ----------
    settings
        Settings of all runs.
    algorithm, options
        The method that the file names, and its options, which hold for all rows of it.
    algorithms
        Methods that the flag, or else the file, names; None if neither does.
    seeds
        The seeds; None if neither flags nor the file say.
    tables
        What else the file has: tables and keys that the command takes.
    """

    settings: Mapping[str, Any]
    algorithm: str | None
    options: Mapping[str, Any]
    algorithms: list[str] | None
    seeds: list[int] | None
    tables: Mapping[str, Any]

    def options_of(self, algorithm: str) -> Mapping[str, Any]:
        """Return what the file says of a method."""
        return self.options if algorithm == self.algorithm else {}


def shared_by_all(
    config: Path | None,
    given: Mapping[str, Any],
    plugins: Sequence[str] | None,
    *,
    algorithms: Sequence[str] | None,
    seeds: str | None,
    seed: int | None,
    also: Sequence[str] = (),
    first_seed: int = 0,
) -> Shared:
    """Return what a file and flags ask; flags go before the file.

    Parameters
    ----------
    config
        The file.
    given
        Settings that were typed.
    plugins
        Modules that were imported.
    algorithms, seeds, seed
        What these flags say.
    also
        Keys of a file, beside settings, `algorithms` and `seeds`, that the command takes.
    first_seed
        Where the seeds begin if their number is given.
    """
    values = flags.settings(config, given, None, plugins, ("algorithms", "seeds", *also))
    tables = {key: values.pop(key) for key in also if key in values}
    import_plugins(values.get("plugins", ()))
    algorithm, options = values.pop("algorithm", None), values.pop("options")
    if options and algorithm is None:
        raise InvalidInputError(
            f'{config}: [options] are those of a method; name it, as in algorithm = "fedprox"'
        )
    return Shared(
        settings=values,
        algorithm=algorithm,
        options=options,
        algorithms=_algorithms(algorithms, values.pop("algorithms", None), algorithm, config),
        seeds=_seeds(seeds, seed, values, config, first_seed),
        tables=tables,
    )


def _algorithms(
    typed: Sequence[str] | None, listed: object, algorithm: str | None, config: Path | None
) -> list[str] | None:
    """Return the methods that are named, each once; `all` stands for all of them."""
    from learners.algorithm import ALGORITHMS

    if typed is None and listed is None:
        return None
    if typed is None:
        listed = [listed] if isinstance(listed, str) else listed
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            raise InvalidInputError(
                f'{config}: algorithms must be a list of methods, as in ["local", "fedavg"]'
            )
    names = split_names(listed if typed is None else typed, "--algorithms")  # type: ignore[arg-type]
    if not names:
        raise InvalidInputError(f"{config}: algorithms is empty; name one method or more")
    if names == ["all"]:
        names = ALGORITHMS.names()
    for name in names:
        ALGORITHMS[name]
        if names.count(name) > 1:
            raise InvalidInputError(f"--algorithms: {name} comes twice; give it once")
    if typed is None and algorithm is not None and algorithm not in names:
        raise InvalidInputError(
            f"{config}: algorithm is {algorithm}, which is none of algorithms; take it out, or"
            " add it to them"
        )
    return names


def _seeds(
    several: str | None,
    one: int | None,
    values: dict[str, Any],
    config: Path | None,
    first: int,
) -> list[int] | None:
    """Return the seeds that are asked for; those of the file are taken out of its values."""
    from learners.settings.seeding import seeds_of

    filed, alone = values.pop("seeds", None), values.pop("seed", None)
    if several is not None and one is not None:
        raise InvalidInputError("--seeds and --seed both say which seeds: give one")
    if several is not None:
        return seeds_of(several, first, called="--seeds", alone="--seed {}")
    if one is not None:
        return [one]
    if filed is not None and alone is not None:
        raise InvalidInputError(f"{config}: seeds and seed both say which seeds: give one")
    if filed is not None:
        return seeds_of(filed, first, called=f"{config}: seeds", alone="seed = {}")
    return None if alone is None else [alone]


# ----------------------------------------------------------------------------------------
# What `tune` writes and `compare` takes: a TOML file with the settings found for each method;
# `learners.experiments.tuning.Tuned.to_toml` makes it.


def tuned_settings(tables: object) -> dict[str, Mapping[str, Any]]:
    """Return what a file says was found for each method: ``[tuned.METHOD]``."""
    if not isinstance(tables, Mapping) or not all(
        isinstance(table, Mapping) for table in tables.values()
    ):
        raise InvalidInputError("what was tuned are tables [tuned.METHOD], as `tune` writes them")
    return {
        name: current_options(name, table) if is_of_old(name, table) else table
        for name, table in tables.items()
    }


def tuned_on(tuning: object) -> Sequence[int]:
    """Return the seeds on which a file says that options were chosen."""
    seeds = tuning.get("seeds", ()) if isinstance(tuning, Mapping) else ()
    return seeds if isinstance(seeds, Sequence) else ()


def check_overruled(given: Mapping[str, Any], options: Sequence[str], tuned: object) -> None:
    """Refuse a flag for all rows that what was found for one would silently overrule.

    Parameters
    ----------
    given
        Settings that were typed.
    options
        What --set says.
    tuned
        The tables of the file.
    """
    typed = {key: f"--{key.replace('_', '-')}" for key in given}
    for each in options:
        key = each.partition("=")[0].replace("-", "_")
        typed[key] = f"--set {key}"
    for name, table in tuned_settings(tuned).items():
        for key, value in table.items():
            if key in typed:
                raise InvalidInputError(
                    f"{typed[key]} would not reach {name}, for which {key} {value} was found; leave"
                    f" it out, or take {key} out of [tuned.{name}]"
                )
