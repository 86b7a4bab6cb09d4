"""The one type in which loops take a compiled game, and how a game's kernel gets it.

A loop takes the game's `add` as a first-class function of a fixed type, not as a template. It is
therefore compiled once for all games, and the disk cache holds for games that users write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coalitions.compiling.kernel import njit, types
from coalitions.game import FloatVector, Kernel

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
