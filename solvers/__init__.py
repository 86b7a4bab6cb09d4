"""Solvers of synergy graphs and of games: the best coalition structure, with a proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coalitions._lazy import lazy_names

if TYPE_CHECKING:
    from solvers.certificate import Certificate
    from solvers.front_door import available, solve
    from solvers.games import solve_game
    from solvers.solution import Solution
    from solvers.solver import SOLVERS, Answer, Limits, Solver
    from solvers.verification import Verification, verify

_HOME = {
    "solvers.certificate": ("Certificate",),
    "solvers.front_door": ("available", "solve"),
    "solvers.games": ("solve_game",),
    "solvers.solution": ("Solution",),
    "solvers.solver": ("SOLVERS", "Answer", "Limits", "Solver"),
    "solvers.verification": ("Verification", "verify"),
}

__all__ = [
    "SOLVERS",
    "Answer",
    "Certificate",
    "Limits",
    "Solution",
    "Solver",
    "Verification",
    "available",
    "solve",
    "solve_game",
    "verify",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name of the package)
    return lazy_names(__name__, _HOME, name)


def __dir__() -> list[str]:
    return sorted(__all__)
