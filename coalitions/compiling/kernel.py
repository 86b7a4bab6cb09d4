"""numba's `njit`, for all kernels of this house: the clock knows when it is at work.

Importing this module imports numba, so whoever needs a kernel imports it inside a function.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from coalitions.compiling.clock import making_ready

with making_ready():
    from numba import njit, types
    from numba.core import event

__all__ = ["copy_into", "njit", "types"]


class _Watch(event.Listener):  # type: ignore[misc]  # numba has no types
    """Tells the clock of a thread when numba begins and ends something."""

    def __init__(self, *, compiling: bool) -> None:
        self._compiling = compiling
        self._thread = threading.local()

    def on_start(self, event: Any) -> None:  # noqa: ANN401
        stack = contextlib.ExitStack()
        stack.enter_context(making_ready(compiling=self._compiling))
        vars(self._thread).setdefault("open", []).append(stack)

    def on_end(self, event: Any) -> None:  # noqa: ANN401
        begun = vars(self._thread).get("open")
        if begun:  # this module may be imported in the middle of it
            begun.pop().close()


# Whoever needs a kernel holds the lock, also while it is loaded from the cache.
event.register("numba:compiler_lock", _Watch(compiling=False))
event.register("numba:compile", _Watch(compiling=True))


@njit(cache=True)
def copy_into(target: Any, source: Any) -> None:  # noqa: ANN401 (vectors of any kind)
    """Copy a vector; ``target[:] = source`` makes numba compile a message for 3 s, too."""
    for k in range(len(source)):
        target[k] = source[k]
