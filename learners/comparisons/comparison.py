"""Several methods on several seeds, kept in a folder where an interrupted comparison goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from coalitions.errors import InvalidInputError
from learners.comparisons.cells import Cell, planned_cell
from learners.comparisons.variants import Variant
from learners.runs.run import prepare, say
from learners.settings.config import RunConfig
from learners.settings.seeding import seeds_of


def planned_runs(
    shared: Mapping[str, Any],
    variants: Sequence[Variant],
    seeds: int | Sequence[int],
    out: Path | None = None,
    *,
    force: bool = False,
    tell: Callable[[str], None] | None = None,
) -> list[Cell]:
    """Return the runs of a comparison, seed by seed, so that early seeds are complete early.

    Everything is checked before the first run: settings a method cannot have, and folders of runs
    that were made with other settings.

    Parameters
    ----------
    shared
        Settings of all runs.
    variants
        The rows, each with what is its own; their names differ.
    seeds
        How many seeds, from 0 on, or which ones.
    out
        Folder that has, or will have, a folder ``NAME-seedN`` for each run; None keeps nothing.
    force
        Replace runs that were made with other settings.
    tell
        Called for each row with what there is to say of its data; see `learners.run`.
    """
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidInputError(f"{out} is a file; a comparison needs a folder")
    seeds = seeds_of(seeds)
    configs, domains = {}, {}
    for variant in variants:
        settings = {**shared, **variant.settings}
        try:
            if out is None:  # nobody will see the rounds before the last
                settings["evaluate_every"] = RunConfig.of(settings).rounds
            own = {"algorithm": variant.algorithm, "seed": seeds[0], "options": variant.options}
            configs[variant.name], domains[variant.name] = _completed(settings | own, tell)
        except InvalidInputError as error:
            if variant.name == variant.algorithm:
                raise
            raise InvalidInputError(f"{variant.name}: {error}") from None
    return [
        planned_cell(
            variant.name,
            replace(configs[variant.name], seed=seed),
            None if out is None else out / f"{variant.name}-seed{seed}",
            force=force,
            domains=domains[variant.name],
        )
        for seed in seeds
        for variant in variants
    ]


def _completed(
    settings: Mapping[str, Any], tell: Callable[[str], None] | None
) -> tuple[RunConfig, tuple[str, ...]]:
    """Return complete settings, and the clients' domains, which no seed changes."""
    prepared = prepare(RunConfig.of(settings))
    say(prepared, tell)
    return prepared.config, prepared.domains


def poisoned_clients(demands: Iterable[str]) -> set[int]:
    """Return the clients that (checked) demands such as ``noise:1,2`` poison."""
    return {int(c) for demand in demands for c in demand.rpartition(":")[2].split(",")}
