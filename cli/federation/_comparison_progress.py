"""How far a comparison is and how long it will take, on a terminal only."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cli.terminal.output import stderr

if TYPE_CHECKING:
    from learners.server.federation import Round


def time_left(
    seen: Mapping[str, Sequence[float]], ahead: Sequence[str], running: tuple[str, float, float]
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
        Of the run at work: its method, the share of its rounds that is done, seconds so far.
    """
    from statistics import fmean

    name, share, spent = running
    known = {method: fmean(seconds) for method, seconds in seen.items() if seconds}
    if share > 0:  # what is seen of this run counts as a run of its method
        known[name] = fmean([*seen.get(name, ()), spent / share])
    if not known:
        return None
    usual = fmean(known.values())
    now = (1 - share) * known.get(name, usual)
    return now + sum(known.get(method, usual) for method in ahead)


class ComparisonLine:
    """A line with the run, the round and the time left, redrawn when a round ends.

    It has no thread of its own: runs fork workers, and a forked thread's locks stay locked.
    """

    def __init__(self, methods: Sequence[str], n_rounds: int, shown: bool) -> None:
        self._methods = methods
        self._n_rounds = n_rounds
        self._seen: dict[str, list[float]] = {}
        self._number = 0
        self._name = ""
        self._began = 0.0
        self._first_round = 0
        self._bar: Any = None
        console = stderr()
        if shown and console.is_terminal:
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
            self._task = self._bar.add_task("", total=len(methods) * n_rounds, left="")

    def __enter__(self) -> ComparisonLine:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begin(self, name: str, seed: int) -> None:
        """Say which run begins."""
        self._number += 1
        self._name = f"{self._number}/{len(self._methods)} {name}, seed {seed}"
        self._began = time.monotonic()
        self._first_round = 0
        self._show(0)

    def update(self, round: Round) -> None:
        """Say that a round of this run is done."""
        if self._first_round == 0:
            self._first_round = round.number  # a resumed run has done the earlier ones before
        self._show(round.number)

    def end(self, seconds: float) -> None:
        """Say that this run is done, and how long all its rounds took."""
        self._seen.setdefault(self._methods[self._number - 1], []).append(seconds)

    def _show(self, done: int) -> None:
        if self._bar is None:
            return
        spent = time.monotonic() - self._began
        here = done - max(0, self._first_round - 1)  # rounds that `spent` is the time of
        whole = spent * self._n_rounds / here if here > 0 else 0.0
        share = done / self._n_rounds
        left = time_left(
            self._seen,
            self._methods[self._number :],
            (self._methods[self._number - 1], share, whole * share),
        )
        self._bar.update(
            self._task,
            completed=(self._number - 1) * self._n_rounds + done,
            description=f"{self._name}, round {done}/{self._n_rounds}",
            left="" if left is None else f"{spoken_time(left)} left",
        )
        self._bar.refresh()


def spoken_time(seconds: float) -> str:
    """Return a span of time as people say it: 40 s, 5 min, 2 h 10 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
