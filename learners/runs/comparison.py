"""Several methods on several seeds, kept in a folder where an interrupted comparison goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from coalitions.errors import CoalitionError, InvalidInputError
from learners.runs.folder import RunFolder, is_bare
from learners.runs.run import OnRound, Result, prepare, resume, run
from learners.settings.config import RunConfig, differing_settings, spoken_setting

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
            other = self.stage == "other settings"
            return run(self.config, self.folder, force=other, on_round=on_round)
        except CoalitionError as error:
            raise type(error)(
                f"{self.config.algorithm}, seed {self.config.seed}: {error}"
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
        wanted = settings | {"algorithm": name, "seed": seeds[0], "options": own}
        prepared = prepare(RunConfig.of(wanted))
        if not prepared.site.targets.has_classes:
            raise InvalidInputError(
                f"methods are compared by their accuracies, and {prepared.config.dataset} has none:"
                f" it is {prepared.site.targets.kind}; `coalitions run` tells its metrics"
            )
        configs[name] = prepared.config
    planned = []
    for seed in seeds:
        for name in options:
            config = replace(configs[name], seed=seed)
            folder = None if out is None else out / f"{name}-seed{seed}"
            planned.append(PlannedRun(config, folder, _stage(folder, config, force)))
    return planned


def poisoned_clients(demands: Iterable[str]) -> set[int]:
    """Return the clients that (checked) demands such as ``noise:1,2`` poison."""
    return {int(c) for demand in demands for c in demand.rpartition(":")[2].split(",")}


def _stage(folder: Path | None, config: RunConfig, force: bool) -> Stage:
    if folder is None or not folder.exists():
        return "new"
    if folder.is_dir() and is_bare(folder):  # killed before it had written its settings
        return "new"
    if not (folder / "config.toml").is_file():
        raise InvalidInputError(
            f"{folder} is in the way: it is no run's folder, as it has no config.toml"
        )
    there = RunFolder.open(folder)
    different = differing_settings(there.config(), config)
    if not different:
        return "finished" if (folder / "result.json").is_file() else "begun"
    if not force:
        key, was, wanted = different[0]
        more = f" ({len(different) - 1} more differ)" if len(different) > 1 else ""
        raise InvalidInputError(
            f"{folder} was made with {key} {spoken_setting(was)}, not"
            f" {spoken_setting(wanted)}{more}; choose another --out, or --force to replace such"
            " runs"
        )
    return "other settings"
