"""What experiments will take: runs that are left, and their time by rehearsals."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from cli.experiments._progress import spoken_time
from coalitions.errors import NoSolutionError

if TYPE_CHECKING:
    from pathlib import Path

    from learners.comparisons.cells import Cell
    from learners.reproduction.carry_out import Plan
    from learners.settings.config import RunConfig

PATIENCE = {"smoke": 0.0, "small": 10.0}
"""Seconds that are spent on an experiment's rehearsals before it begins, by scale."""

Kind = tuple[str, str]
"""A method, and the digest of all settings that time depends on."""


def costs(plans: Sequence[Plan], jobs: int, patience: float) -> Iterator[str]:
    """Give a line for each experiment, and one for all: how many runs, and how long they take.

    Parameters
    ----------
    plans
        The experiments, in the order in which they are carried out.
    jobs
        Runs at a time; 0 takes as many as there are cores.
    patience
        Seconds that rehearsing an experiment may take; at 0 no time is told.
    """
    from learners.comparisons.cells import cores

    paces: dict[Kind, float] = {}
    cells: dict[Path | None, Cell] = {}  # what two experiments have in common is made once
    whole = 0.0
    for each in plans:
        new = [cell for cell in _left(each.cells) if cell.folder not in cells]
        earlier = len(_left(each.cells)) - len(new)
        cells |= {cell.folder: cell for cell in each.cells}
        seconds = 0.0
        if new and patience:
            at_a_time = min(jobs or cores(), len(new))
            seconds = _seconds(new, jobs == 1, paces, patience) / at_a_time
            whole += seconds
        beside = each.experiment.beside(each.scale, each.seeds)
        also = f", {earlier} of them are also earlier ones'" if earlier else ""
        runs = _runs(each.cells, also, seconds) if each.cells or not beside else ""
        yield f"{each.name}: {' and '.join(filter(None, (runs, beside)))}"
    if len(plans) > 1:
        yield f"in all: {_runs(list(cells.values()), '', whole)}"


def _runs(cells: Sequence[Cell], also: str, seconds: float) -> str:
    n = len(cells) - len(_left(cells))
    there = f", {n} of them are there" if n else ""
    cost = f", about {spoken_time(seconds)} on this machine" if seconds else ""
    return f"{len(cells)} run{'s' * (len(cells) != 1)}{there}{also}{cost}"


def _left(cells: Sequence[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.stage != "finished"]


def _seconds(
    cells: Sequence[Cell], alone: bool, paces: dict[Kind, float], patience: float
) -> float:
    """Return what runs take one after the other, and add to `paces` what was rehearsed.

    Each kind is rehearsed once, the first whatever it takes. Those that there is no time for take
    as long a round as others of their method, or of any.
    """
    from learners.runs.forecast import forecast

    began = time.monotonic()
    # Runs at a time have one process each; one alone has as many as it may.
    configs = [cell.config if alone else replace(cell.config, workers=1) for cell in cells]
    for config in configs:
        in_time = not paces or time.monotonic() - began < patience
        if in_time and _kind(config) not in paces:
            with suppress(NoSolutionError):  # its models do not stay finite; the run will tell
                paces[_kind(config)] = forecast(config).seconds / config.rounds
    total = 0.0
    for cell, config in zip(cells, configs, strict=True):
        alike = [pace for (method, _), pace in paces.items() if method == config.algorithm]
        guess = fmean(alike or paces.values() or [0.0])
        total += _rounds_left(cell) * paces.get(_kind(config), guess)
    return total


def _kind(config: RunConfig) -> Kind:
    from learners.settings.config import settings_digest

    # Rates and strengths change what is learned, not how long it takes.
    whole = {name: value for name, value in config.options.items() if not isinstance(value, float)}
    like = replace(config, lr=1.0, momentum=0.0, poison=(), options=whole)
    return config.algorithm, settings_digest(like)


def _rounds_left(cell: Cell) -> int:
    """Return the rounds that a run has to do after its newest checkpoint."""
    from learners.runs.checkpoint import newest_first, round_of

    done = [] if cell.folder is None else newest_first(cell.folder / "checkpoints")
    return cell.config.rounds - (round_of(done[0]) if done else 0)
