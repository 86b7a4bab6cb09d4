"""numba's `njit` for all compiled code, and the one type in which loops take a compiled game.

Importing this module imports numba, so import it inside the function that needs a kernel. A kernel
is compiled code: the modules that hold some have names that start with an underscore.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from coalitions.game import FloatVector, Kernel
from coalitions.runtime import making_ready

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


# A thread that needs a kernel holds the lock, also while it is loaded from the cache.
event.register("numba:compiler_lock", _Watch(compiling=False))
event.register("numba:compile", _Watch(compiling=True))


@njit(cache=True)
def copy_into(target: Any, source: Any) -> None:  # noqa: ANN401 (vectors of any kind)
    """Copy a vector; ``target[:] = source`` makes numba compile a message for 3 s, too."""
    for k in range(len(source)):
        target[k] = source[k]


# ----------------------------------------------------------------------------------------
# Compiled games
#
# A loop takes the game's `add` as a first-class function of a fixed type, not as a template. So
# it is compiled once for all games, and the disk cache also serves games that users write.

VECTOR = types.float64[::1]
ADD = types.float64(VECTOR, types.int64, VECTOR)


def compiled_add(kernel: Kernel) -> Any:  # noqa: ANN401 (a numba dispatcher)
    """Return the kernel's `add`, compiled for the one type that the loops take."""
    if (VECTOR, types.int64, VECTOR) not in kernel.add.overloads:  # type: ignore[attr-defined]
        kernel.add.compile(ADD)  # type: ignore[attr-defined]
    return kernel.add


_ADDS_OF_VALUES: dict[Any, Any] = {}


def add_of_value(value: Any) -> Callable[[FloatVector, int, FloatVector], float]:  # noqa: ANN401
    """Return an `add` whose state is the coalition and which evaluates it as a whole."""
    if value not in _ADDS_OF_VALUES:

        @njit
        def add(state: Any, player: Any, parameters: Any) -> Any:  # noqa: ANN401
            state[player] = 1.0
            return value(state, parameters)

        _ADDS_OF_VALUES[value] = add
    return _ADDS_OF_VALUES[value]  # type: ignore[no-any-return]
