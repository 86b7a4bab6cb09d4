"""Games, values, synergy graphs and coalition structures.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coalitions._lazy import lazy_names

if TYPE_CHECKING:
    from coalitions.errors import (
        BudgetError,
        CoalitionError,
        InfeasibleError,
        InvalidInputError,
        MissingDependencyError,
        NoSolutionError,
        UnknownNameError,
    )
    from coalitions.game import Game, as_coalitions
    from coalitions.graph import SynergyGraph
    from coalitions.registry import Registry
    from coalitions.structure import CoalitionStructure

__version__ = "0.1.0"

_HOME = {
    "coalitions.errors": (
        "BudgetError",
        "CoalitionError",
        "InfeasibleError",
        "InvalidInputError",
        "MissingDependencyError",
        "NoSolutionError",
        "UnknownNameError",
    ),
    "coalitions.game": ("Game", "as_coalitions"),
    "coalitions.graph": ("SynergyGraph",),
    "coalitions.registry": ("Registry",),
    "coalitions.structure": ("CoalitionStructure",),
}

__all__ = [
    "BudgetError",
    "CoalitionError",
    "CoalitionStructure",
    "Game",
    "InfeasibleError",
    "InvalidInputError",
    "MissingDependencyError",
    "NoSolutionError",
    "Registry",
    "SynergyGraph",
    "UnknownNameError",
    "as_coalitions",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name of the package)
    return lazy_names(__name__, _HOME, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
