"""What every `progress` is called with, and time_left(), which makes a line of it."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Protocol

from coalitions.errors import with_keywords


class Progress(Protocol):
    """How far a computation is: what every function calls its `progress` with."""

    @property
    def done(self) -> float:
        """What is done: evaluations of a game, or seconds of a search."""

    @property
    def total(self) -> float | None:
        """How much there is to do at most; None if nobody knows."""

    @property
    def text(self) -> str:
        """A line for people."""


@dataclass(frozen=True)
class Evaluations:
    """How many coalitions of a game are evaluated.

    Examples
    --------
    >>> print(Evaluations(400, 2000).text)
    400 of 2000 evaluations
    """

    done: int
    total: int

    @property
    def text(self) -> str:
        """A line for people."""
        return f"{self.done} of {self.total} evaluations"


OnEvaluations = Callable[[Evaluations], None]
"""The `progress` of what evaluates a game."""

WINDOW = 60.0
"""Seconds that the speed is measured over: what was known before the start would flatter it."""


@with_keywords()
def time_left(
    stream: IO[str] | None = None,
    *,
    every: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
) -> Callable[[Progress], None]:
    """Return a `progress` that writes how far a computation is, and the time left, to `stream`.

    On a terminal the line is written over; elsewhere each is a line of its own. A game that takes
    more than ten seconds is reported every 16 coalitions, unless there is a `batch_size`. Nobody
    knows how long a search by `solve` takes: its lines say what is found.

    Parameters
    ----------
    stream
        Where to write; standard error if there is none.
    every
        Seconds between two lines. The last one is always written.
    clock
        Tells the seconds.

    Examples
    --------
    >>> seconds = iter(range(0, 100, 10))
    >>> progress = time_left(sys.stdout, clock=lambda: next(seconds))
    >>> for done in (100, 200, 400, 1000):
    ...     progress(Evaluations(done, 1000))
    100 of 1000 evaluations
    200 of 1000 evaluations, about 1 min left
    400 of 1000 evaluations, about 40 s left
    1000 of 1000 evaluations
    """
    return _TimeLeft(stream, every, clock)


class _TimeLeft:
    def __init__(self, stream: IO[str] | None, every: float, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._every = every
        self._clock = clock
        self._seen: deque[tuple[float, float]] = deque()
        self._written: float | None = None

    def __call__(self, progress: Progress) -> None:
        done, total = progress.done, progress.total
        now = self._clock()
        self._seen.append((now, done))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW:
            self._seen.popleft()
        finished = total is not None and done >= total
        if not finished and self._written is not None and now - self._written < self._every:
            return
        self._written = now
        line = progress.text
        start, before = self._seen[0]
        if total is not None and done > before and not finished:
            line += f", about {_spoken((now - start) / (done - before) * (total - done))} left"
        stream = self._stream or sys.stderr
        if stream.isatty():
            stream.write(f"\r\x1b[K{line}" + ("\n" if finished else ""))
        else:
            stream.write(f"{line}\n")
        stream.flush()


def _spoken(seconds: float) -> str:
    """Return a time as people say it."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
