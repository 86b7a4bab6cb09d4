"""Solvers of synergy graphs and of games: the best coalition structure, with a proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coalitions._lazy import lazy_names

if TYPE_CHECKING:
    from solvers.front_door import available, solve
    from solvers.solution import Solution
    from solvers.solver import SOLVERS, Answer, Limits, Solver

_HOME = {
    "solvers.front_door": ("available", "solve"),
    "solvers.solution": ("Solution",),
    "solvers.solver": ("SOLVERS", "Answer", "Limits", "Solver"),
}

__all__ = ["SOLVERS", "Answer", "Limits", "Solution", "Solver", "available", "solve"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name of the package)
    return lazy_names(__name__, _HOME, name)


def __dir__() -> list[str]:
    return sorted(__all__)
