"""numba's `njit`, for all kernels of this house: the clock knows when it is at work.

Importing this module imports numba, so whoever needs a kernel imports it inside a function.
"""

from __future__ import annotations

import contextlib
from typing import Any

from coalitions.compiling.clock import making_ready

with making_ready():
    from numba import njit
    from numba.core import event

__all__ = ["copy_into", "njit"]


class _Watch(event.Listener):  # type: ignore[misc]  # numba has no types
    """Tells the clock when the compiler begins and ends; code from the cache needs neither."""

    def __init__(self) -> None:
        self._open: list[contextlib.ExitStack] = []

    def on_start(self, event: Any) -> None:  # noqa: ANN401
        stack = contextlib.ExitStack()
        stack.enter_context(making_ready(compiling=True))
        self._open.append(stack)

    def on_end(self, event: Any) -> None:  # noqa: ANN401
        self._open.pop().close()


event.register("numba:compile", _Watch())


@njit(cache=True)
def copy_into(target: Any, source: Any) -> None:  # noqa: ANN401 (vectors of any kind)
    """Copy a vector; ``target[:] = source`` makes numba compile a message for 3 s, too."""
    for k in range(len(source)):
        target[k] = source[k]
