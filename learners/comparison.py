"""Several methods on several seeds, kept in a folder where an interrupted comparison goes on."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from coalitions.errors import CoalitionError, InvalidInputError
from learners.config import RunConfig
from learners.experiment import OnRound, Result, completed, resume, run
from learners.folder import RunFolder

NO_EFFECT = ("workers", "evaluate_every", "checkpoint_every", "plugins")
"""Settings that change no figure of the last round: a comparison goes on with other ones."""

Stage = Literal["new", "begun", "finished", "other settings"]


@dataclass(frozen=True)
class PlannedRun:
    """One run of a comparison: its settings, its folder if it has one, and how far it is."""

    config: RunConfig
    folder: Path | None
    stage: Stage

    def result(self, on_round: OnRound | None = None) -> Result:
        """Return what came out: read, resumed or run, whichever is left to do."""
        try:
            if self.folder is not None and self.stage in ("begun", "finished"):
                return resume(self.folder, on_round=on_round)
            if self.folder is not None and self.stage == "other settings":
                _remove_run(self.folder)
            return run(self.config, self.folder, on_round=on_round)
        except CoalitionError as error:
            raise type(error)(
                f"{self.config.algorithm}, seed {self.config.seed}: {error}"
            ) from None
        except (LookupError, ValueError) as error:
            if self.stage != "finished":
                raise
            raise InvalidInputError(
                f"{self.folder}: a file of the finished run is damaged ({error}); remove the"
                " folder to do the run again"
            ) from None


def planned_runs(
    shared: Mapping[str, Any],
    options: Mapping[str, Mapping[str, Any]],
    seeds: Sequence[int],
    out: Path | None = None,
    *,
    force: bool = False,
) -> list[PlannedRun]:
    """Return the runs of a comparison, seed by seed, so that early seeds are complete early.

    Everything is checked before the first run: settings a method cannot have, and folders of runs
    that were made with other settings.

    Parameters
    ----------
    shared
        Settings of all runs.
    options
        Each method's own options; its keys are the methods.
    seeds
        Seeds, each once.
    out
        Folder that has, or will have, a folder ``METHOD-seedN`` for each run; None keeps nothing.
    force
        Replace runs that were made with other settings.
    """
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidInputError(f"{out} is a file; a comparison needs a folder")
    settings = dict(shared)
    if out is None:  # nobody will see the rounds before the last
        settings["evaluate_every"] = RunConfig.of(settings).rounds
    configs = {}
    for name, own in options.items():
        configs[name] = completed(settings | {"algorithm": name, "seed": seeds[0], "options": own})
    planned = []
    for seed in seeds:
        for name in options:
            config = replace(configs[name], seed=seed)
            folder = None if out is None else out / f"{name}-seed{seed}"
            planned.append(PlannedRun(config, folder, _stage(folder, config, force)))
    return planned


def differing_settings(one: RunConfig, other: RunConfig) -> list[tuple[str, Any, Any]]:
    """Return the settings that could change a figure, as (name, in one, in the other)."""
    ours, theirs = _told(one), _told(other)
    return [
        (key, ours.get(key), theirs.get(key))
        for key in dict.fromkeys([*ours, *theirs])
        if key not in NO_EFFECT and ours.get(key) != theirs.get(key)
    ]


def poisoned_clients(demands: Iterable[str]) -> set[int]:
    """Return the clients that (checked) demands such as ``noise:1,2`` poison."""
    return {int(c) for demand in demands for c in demand.rpartition(":")[2].split(",")}


def _stage(folder: Path | None, config: RunConfig, force: bool) -> Stage:
    if folder is None or not folder.exists():
        return "new"
    if not (folder / "config.toml").is_file():
        _clear_beginnings(folder)
        return "new"
    there = RunFolder.open(folder)
    different = differing_settings(there.config(), config)
    if not different:
        return "finished" if (folder / "result.json").is_file() else "begun"
    if not force:
        key, was, wanted = different[0]
        more = f" ({len(different) - 1} more differ)" if len(different) > 1 else ""
        raise InvalidInputError(
            f"{folder} was made with {key} {_spoken(was)}, not {_spoken(wanted)}{more}; choose"
            " another --out, or --force to replace such runs"
        )
    return "other settings"


def _clear_beginnings(folder: Path) -> None:
    """Remove what a run leaves that was killed before it had written its settings."""
    if not folder.is_dir() or any(
        not path.name.startswith(".config.toml.") for path in folder.iterdir()
    ):
        raise InvalidInputError(
            f"{folder} is in the way: it is no run's folder, as it has no config.toml"
        )
    for path in folder.iterdir():
        path.unlink()


def _remove_run(folder: Path) -> None:
    """Remove a run, its settings last: one that is removed by half can still be told to go."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "config.toml":
            path.unlink()
    (folder / "config.toml").unlink()


def _told(config: RunConfig) -> dict[str, Any]:
    """Return the settings as a run's folder tells them, the method's options among them."""
    values = tomllib.loads(config.toml())
    options = values.pop("options")
    return values | {f"option {key}": value for key, value in options.items()}


def _spoken(value: Any) -> str:  # noqa: ANN401 (any setting)
    return "none" if value is None or value == [] else str(value)
