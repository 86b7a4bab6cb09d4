"""What `tune` writes and `compare` takes: a TOML file with the settings found for each method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coalitions.errors import InvalidInputError
from learners.settings.config import RunConfig, current_options, is_of_old, toml_value

if TYPE_CHECKING:
    from learners.comparisons.variants import Variant
    from learners.tuning.search import Found, Search

_NOT_SHARED = ("algorithm", "seed", "options")
"""What each method, or the comparison, has of its own."""


def tuned_text(search: Search, found: Found) -> str:
    """Return the file: settings of all runs, how it was tuned, and what was found."""
    usual = RunConfig().values()
    shared = {
        key: value
        for key, value in RunConfig.of(search.shared).values().items()
        if key not in _NOT_SHARED and value != usual.get(key)
    }
    lines = ["# Made by `coalitions tune`; `coalitions compare FILE` takes it."]
    lines += [f"{key} = {toml_value(value)}" for key, value in shared.items()]
    lines += [
        "",
        "[tuning]",
        f"seeds = {toml_value(search.numbers)}",
        f"trials = {search.trials}",
        f"strategy = {toml_value(search.strategy)}",
        f"metric = {toml_value(found.metric)}",
    ]
    for name, trial in found.best.items():
        lines += ["", f"[tuned.{name}]  # {found.metric} {trial.score:.4f} on held-out data"]
        values = search.values_of(trial)
        lines += [
            f"{key} = {toml_value(value)}" for key, value in values.items() if value is not None
        ]
    return "\n".join(lines) + "\n"


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


def check_seeds(seeds: Sequence[int], tuning: object) -> None:
    """Refuse to report seeds that options were chosen on."""
    told = tuning.get("seeds", ()) if isinstance(tuning, Mapping) else ()
    for seed in seeds:
        if isinstance(told, Sequence) and seed in told:
            raise InvalidInputError(
                f"seed {seed} is one that the options were tuned on; report others with --seeds"
            )


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


def not_tuned(rows: Sequence[Variant], tuned: object) -> list[str]:
    """Return the rows that were not tuned while others were; none if none was."""
    found = tuned_settings(tuned)
    names = [row.name.partition(".")[0] for row in rows]
    if not any(name in found for name in names):
        return []
    return [
        row.name
        for row, name in zip(rows, names, strict=True)
        if name not in found or row.algorithm != name
    ]
