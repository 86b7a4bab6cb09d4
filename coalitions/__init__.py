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
    from coalitions.estimator import ESTIMATORS, Estimate, Estimator
    from coalitions.game import Game, Kernel, as_coalitions
    from coalitions.games.airport import AirportGame
    from coalitions.games.function import FunctionGame
    from coalitions.games.induced_subgraph import InducedSubgraphGame
    from coalitions.games.myerson import GraphRestrictedGame
    from coalitions.games.table import TableGame
    from coalitions.games.unanimity import UnanimityGame
    from coalitions.games.voting import VotingGame
    from coalitions.graph import SynergyGraph
    from coalitions.registry import Registry
    from coalitions.shapley_value import shapley
    from coalitions.structure import CoalitionStructure
    from coalitions.wrappers import cached, normalised, reported, restricted

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
    "coalitions.estimator": ("ESTIMATORS", "Estimate", "Estimator"),
    "coalitions.game": ("Game", "Kernel", "as_coalitions"),
    "coalitions.games.airport": ("AirportGame",),
    "coalitions.games.function": ("FunctionGame",),
    "coalitions.games.induced_subgraph": ("InducedSubgraphGame",),
    "coalitions.games.myerson": ("GraphRestrictedGame",),
    "coalitions.games.table": ("TableGame",),
    "coalitions.games.unanimity": ("UnanimityGame",),
    "coalitions.games.voting": ("VotingGame",),
    "coalitions.graph": ("SynergyGraph",),
    "coalitions.registry": ("Registry",),
    "coalitions.shapley_value": ("shapley",),
    "coalitions.structure": ("CoalitionStructure",),
    "coalitions.wrappers": ("cached", "normalised", "reported", "restricted"),
}

__all__ = [
    "ESTIMATORS",
    "AirportGame",
    "BudgetError",
    "CoalitionError",
    "CoalitionStructure",
    "Estimate",
    "Estimator",
    "FunctionGame",
    "Game",
    "GraphRestrictedGame",
    "InducedSubgraphGame",
    "InfeasibleError",
    "InvalidInputError",
    "Kernel",
    "MissingDependencyError",
    "NoSolutionError",
    "Registry",
    "SynergyGraph",
    "TableGame",
    "UnanimityGame",
    "UnknownNameError",
    "VotingGame",
    "as_coalitions",
    "cached",
    "normalised",
    "reported",
    "restricted",
    "shapley",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name of the package)
    return lazy_names(__name__, _HOME, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
