"""Progress of many runs, and the estimate of their time before they start."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from cli.terminal.output import stderr
from cli.terminal.progress import RoundProgress
from coalitions.errors import NoSolutionError

if TYPE_CHECKING:
    from pathlib import Path

    from learners.experiments.resumable_runs import Cell
    from learners.reproduction.carry_out import Plan
    from learners.runs.result import Result
    from learners.settings.config import RunConfig

# ----------------------------------------------------------------------------------------
# How far many runs are, and how long they will take: one line on a terminal, else several.

RAREST = 0.05
"""Without a terminal, seconds between two lines as a share of those since the start."""


def time_left(
    seen: Mapping[str, Sequence[float]],
    ahead: Sequence[str],
    running: Sequence[tuple[str, float, float]],
    jobs: int = 1,
) -> float | None:
    """Return the seconds that are left, or None before anything is known.

    A method takes as long as its finished runs did; one that has none, as long as the others'.

    Parameters
    ----------
    seen
        Seconds of finished runs by method.
    ahead
        Methods of the runs that are not begun.
    running
        Of each run at work: its method, the share of its rounds that is done, seconds so far.
    jobs
        Runs at a time.
    """
    from statistics import fmean

    known = {method: fmean(seconds) for method, seconds in seen.items() if seconds}
    for name, share, spent in running:
        if share > 0:  # what is seen of this run counts as a run of its method
            known[name] = fmean([*seen.get(name, ()), spent / share])
    if not known:
        return None
    usual = fmean(known.values())
    rests = [(1 - share) * known.get(name, usual) for name, share, _ in running]
    after = sum(known.get(method, usual) for method in ahead)
    return max((sum(rests) + after) / jobs, *rests, 0.0)


class CellsLine:
    """A line with what runs, how many are done and the time left, redrawn when a round ends.

    It has no thread of its own: runs fork workers, and a forked thread's locks stay locked.

    Parameters
    ----------
    cells
        What there is to do.
    jobs
        Runs at a time.
    shown
        Whether to show the line. Without a terminal there is a line for every finished run, and
        one a second in between; these become rarer the longer it takes.
    verbose
        Say a line per run and one per round instead, wherever stderr goes.
    check
        Asked of every result: what would be refused in the end is refused after the first run.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        jobs: int = 1,
        *,
        shown: bool = True,
        verbose: bool = False,
        check: Callable[[Result], object] | None = None,
    ) -> None:
        self._check = check
        self._ahead = [cell.name for cell in cells if cell.stage != "finished"]
        self._n_cells = len(cells)
        self._jobs = max(1, jobs)
        self._seen: dict[str, list[float]] = {}
        self._begun = 0
        self._rounds_done = 0  # of the runs that are finished
        self._running: dict[tuple[str, int], _Running] = {}
        self._verbose = verbose
        self._bar: Any = None
        self._rounds = sum(cell.config.rounds for cell in cells)
        self._entered = self._spoke = time.monotonic()
        console = stderr()
        self._plain = shown and not verbose and not console.is_terminal
        if shown and not verbose and console.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                TextColumn("{task.fields[left]}"),
                console=console,
                transient=True,
                auto_refresh=False,
                expand=True,
            )
            self._task = self._bar.add_task("", total=self._rounds, left="")

    def __enter__(self) -> CellsLine:
        self._entered = time.monotonic()
        if self._bar is not None:
            self._bar.start()
        if self._plain and self._ahead:
            at_once = f", {self._jobs} at a time" if self._jobs > 1 else ""
            self._say(f"{len(self._ahead)} runs begin{at_once}")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begin(self, cell: Cell) -> None:
        """Say which run begins."""
        self._begun += 1
        if cell.stage != "finished":
            self._ahead.remove(cell.name)
        lines = RoundProgress(cell.config, verbose=True) if self._verbose else None
        self._running[_key(cell)] = _Running(cell, lines)
        self._show(cell)

    def round(self, cell: Cell, number: int, metrics: Mapping[str, Any]) -> None:
        """Say that a round of a run is done."""
        running = self._running[_key(cell)]
        running.done(number)
        if running.lines is not None:
            about = f"{cell.name}, seed {cell.config.seed}: " if self._jobs > 1 else ""
            running.lines.show(number, metrics, about)
        self._show(cell)
        now = time.monotonic()
        if self._plain and now - self._spoke > max(1.0, RAREST * (now - self._entered)):
            done = self._rounds_done + sum(each.rounds for each in self._running.values())
            self._say(f"{done} of {self._rounds} rounds done{self._rest()}")

    def end(self, cell: Cell, result: Result | None) -> None:
        """Say that a run is done, and how long all its rounds took."""
        self._rounds_done += cell.config.rounds
        del self._running[_key(cell)]
        if result is None:
            return
        if self._check is not None:
            self._check(result)
        self._seen.setdefault(cell.name, []).append(result.seconds)
        if self._plain and cell.stage != "finished":
            done = self._begun - len(self._running)
            rest = "" if done == self._n_cells else self._rest()
            self._say(
                f"{done} of {self._n_cells} runs done: {cell.name}, seed {cell.config.seed}{rest}"
            )

    def _say(self, line: str) -> None:
        self._spoke = time.monotonic()
        stderr().print(line, soft_wrap=True, markup=False)

    def _rest(self) -> str:
        left = self._time_left()
        return "" if left is None else f", {spoken_time(left)} left"

    def _time_left(self) -> float | None:
        running = [each.pace() for each in self._running.values()]
        return time_left(self._seen, self._ahead, running, self._jobs)

    def part(self, done: int, total: int) -> None:
        """Say how many parts are done of what is done beside the runs, and the time left."""
        rest = (time.monotonic() - self._entered) / done * (total - done)
        done_text, left = f"{done} of {total} done", f"{spoken_time(rest)} left"
        if self._verbose:
            stderr().print(f"{done_text}, {left}")
        if self._bar is not None:
            self._bar.update(
                self._task, completed=done, total=total, description=done_text, left=left
            )
            self._bar.refresh()

    def _show(self, cell: Cell) -> None:
        if self._bar is None:
            return
        running = self._running.values()
        left = self._time_left()
        rounds = cell.config.rounds
        latest = self._running[_key(cell)]
        others = f" and {len(running) - 1} more" if len(running) > 1 else ""
        self._bar.update(
            self._task,
            completed=self._rounds_done + sum(each.rounds for each in running),
            description=f"{self._begun}/{self._n_cells} {cell.name}, seed {cell.config.seed},"
            f" round {latest.rounds}/{rounds}{others}",
            left="" if left is None else f"{spoken_time(left)} left",
        )
        self._bar.refresh()


class _Running:
    """A run at work: since when, how many rounds are done, how many of these were seen."""

    def __init__(self, cell: Cell, lines: RoundProgress | None) -> None:
        self.cell = cell
        self.lines = lines
        self.rounds = 0
        self._began = time.monotonic()
        self._before: int | None = None  # a resumed run has done these rounds earlier

    def done(self, number: int) -> None:
        if self._before is None:
            self._before = number - 1
        self.rounds = number

    def pace(self) -> tuple[str, float, float]:
        """Return what `time_left` wants to know of a run at work."""
        share = self.rounds / self.cell.config.rounds
        here = self.rounds - (self._before or 0)
        spent = time.monotonic() - self._began
        whole = spent * self.cell.config.rounds / here if here > 0 else 0.0
        return self.cell.name, share, whole * share


def _key(cell: Cell) -> tuple[str, int]:
    return cell.name, cell.config.seed


def spoken_time(seconds: float) -> str:
    """Return a span of time as people say it: 40 s, 5 min, 2 h 10 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


# ----------------------------------------------------------------------------------------
# What experiments will take: runs that are left, and their time by rehearsals.

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
        Seconds that rehearsing an experiment may take; at 0 the lines have no time.
    """
    from learners.experiments.resumable_runs import cores

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
    from learners.runs.kept_runs import settings_digest

    # Rates and strengths change what is learned, not how long it takes.
    whole = {name: value for name, value in config.options.items() if not isinstance(value, float)}
    like = replace(config, lr=1.0, momentum=0.0, poison=(), options=whole)
    return config.algorithm, settings_digest(like)


def _rounds_left(cell: Cell) -> int:
    """Return the rounds that a run has to do after its newest checkpoint."""
    from learners.runs.checkpoint import newest_first, round_of

    done = [] if cell.folder is None else newest_first(cell.folder / "checkpoints")
    return cell.config.rounds - (round_of(done[0]) if done else 0)
