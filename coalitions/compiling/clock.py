"""A clock that stands still while kernels are made ready, and a word when that takes long.

Kernels are compiled once on a machine and then kept. A time limit is for the work: it must not be
eaten by a compiler, and no answer may depend on whether there was something to compile.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

PATIENCE = 1.0
"""Seconds of compiling after which somebody who waits is told."""


class _Stopwatch(threading.local):
    """Whether this thread is making kernels ready, and whether it compiles them."""

    runs = False
    compiles = False


_watch = _Stopwatch()
_seconds = 0.0
_compiled = 0.0
_tell: Callable[[], None] | None = None


def ready_seconds() -> float:
    """Return how long this process has waited for kernels so far: imported, loaded, compiled."""
    return _seconds


def compile_figures(seconds: float) -> dict[str, float]:
    """Return how long a call waited for kernels as an entry of its figures, if it did."""
    return {"compile_seconds": seconds} if seconds else {}


def clock() -> float:
    """Return `time.monotonic`, less the time for which work had to wait for kernels."""
    return time.monotonic() - _seconds


def when_long(tell: Callable[[], None] | None) -> None:
    """Have `tell` called, once, when compiling takes more than a second."""
    global _tell
    _tell = tell


@contextlib.contextmanager
def making_ready(*, compiling: bool = False) -> Iterator[None]:
    """Count what happens inside as waiting for kernels; inner ones are part of the outermost."""
    global _seconds, _compiled
    outermost, compiling = not _watch.runs, compiling and not _watch.compiles
    began = time.monotonic()
    _watch.runs, _watch.compiles = True, _watch.compiles or compiling
    alarm = _alarm() if compiling else None
    try:
        yield
    finally:
        spent = time.monotonic() - began
        if outermost:
            _watch.runs = False
            _seconds += spent
        if compiling:
            _watch.compiles = False
            _compiled += spent
        if alarm is not None:
            alarm.cancel()


def _alarm() -> threading.Timer | None:
    """Start the timer of `when_long`; short compilations add up."""
    if _tell is None:
        return None
    alarm = threading.Timer(max(0.0, PATIENCE - _compiled), _call_once)
    alarm.daemon = True
    alarm.start()
    return alarm


def _call_once() -> None:
    global _tell
    tell, _tell = _tell, None
    if tell is not None:
        tell()
