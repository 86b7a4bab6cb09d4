"""Where an estimate is: a line on stderr, once it takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import IO

PATIENCE = 2.0
"""Seconds after which somebody who waits wants to know for how long."""

ELSEWHERE = 30.0
"""Seconds between two lines where there is no terminal on which one is written over."""


class EvaluationLine:
    """Evaluations made, and the time left; what is soon done says nothing.

    Parameters
    ----------
    quiet
        Say nothing at all.
    stream
        Where to write; standard error if there is none.
    clock
        Tells the seconds.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        stream: IO[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from coalitions.execution.progress import time_left

        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._clock = clock
        self._begun = clock()
        self._shown = False
        terminal = self._stream.isatty()
        self._report = time_left(self._stream, every=1.0 if terminal else ELSEWHERE, clock=clock)

    def __enter__(self) -> EvaluationLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown and self._stream.isatty():
            self._stream.write("\r\x1b[K")  # the result stands in its place

    def __call__(self, done: int, budget: int) -> None:
        """Take a report; at the end the result speaks for itself."""
        if self._quiet or done >= budget or self._clock() - self._begun < PATIENCE:
            return
        self._shown = True
        self._report(done, budget)
