"""Time and threads of a computation: a clock that leaves out compiling, BLAS on one thread.

Kernels are compiled once on a machine and then kept. A time limit is for the work: compiling must
not use it up, and no answer may depend on whether there was something to compile. Nor may a sum
depend on the number of threads that add it up.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# ----------------------------------------------------------------------------------------
# The clock

PATIENCE = 1.0
"""Seconds of compiling after which we say that we compile."""


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


# ----------------------------------------------------------------------------------------
# Linear algebra whose rounding does not depend on the number of threads

_LOCK = RLock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS and LAPACK compute with one thread, inside a block or a decorated function.

    A matrix product that is shared among threads adds its terms in another order for each number
    of threads. The number belongs to the whole process: of several Python threads only one is
    inside at a time, so that none gives the number back while another counts on it. Entering
    and leaving takes about 40 µs.

    Keep a user's game outside: it may want all the threads there are. Import ``scipy.linalg``
    before, if it is used inside: it brings a BLAS of its own.
    """
    with _LOCK, _blas("scipy.linalg" in sys.modules).limit(limits=1):
        yield


@cache
def _blas(with_scipy: bool) -> ThreadpoolController:
    """Return the BLAS libraries that are loaded by now, which take milliseconds to find."""
    del with_scipy  # it tells the two answers apart in the cache
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
