"""Games, values, synergy graphs and coalition structures.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coalitions._lazy import lazy_names

if TYPE_CHECKING:
    from coalitions.communication import myerson_value
    from coalitions.comparison import (
        adjusted_rand_index,
        join,
        meet,
        normalised_mutual_information,
        refines,
    )
    from coalitions.core import CoreMembership, LeastCore, core_membership, core_point, least_core
    from coalitions.enumeration import all_coalitions, value_table
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
    from coalitions.interactions import (
        PairEstimate,
        interaction,
        interaction_indices,
        pairwise_interactions,
    )
    from coalitions.nucleolus_value import Nucleolus, nucleolus, verify_nucleolus
    from coalitions.partitions import all_partitions, bell_number, partition_labels
    from coalitions.registry import Registry
    from coalitions.semivalues import banzhaf, beta_shapley, semivalue
    from coalitions.shapley_value import shapley
    from coalitions.stability import NOTIONS, Deviation, deviations, find_deviation
    from coalitions.structure import CoalitionStructure
    from coalitions.structured_values import owen_value, payoffs
    from coalitions.synergy_estimation import SYNERGIES, estimate_synergy
    from coalitions.wrappers import cached, normalised, reported, restricted

__version__ = "0.1.0"

_HOME = {
    "coalitions.communication": ("myerson_value",),
    "coalitions.comparison": (
        "adjusted_rand_index",
        "join",
        "meet",
        "normalised_mutual_information",
        "refines",
    ),
    "coalitions.core": (
        "CoreMembership",
        "LeastCore",
        "core_membership",
        "core_point",
        "least_core",
    ),
    "coalitions.enumeration": ("all_coalitions", "value_table"),
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
    "coalitions.interactions": (
        "PairEstimate",
        "interaction",
        "interaction_indices",
        "pairwise_interactions",
    ),
    "coalitions.nucleolus_value": ("Nucleolus", "nucleolus", "verify_nucleolus"),
    "coalitions.partitions": ("all_partitions", "bell_number", "partition_labels"),
    "coalitions.registry": ("Registry",),
    "coalitions.semivalues": ("banzhaf", "beta_shapley", "semivalue"),
    "coalitions.shapley_value": ("shapley",),
    "coalitions.stability": ("NOTIONS", "Deviation", "deviations", "find_deviation"),
    "coalitions.structure": ("CoalitionStructure",),
    "coalitions.structured_values": ("owen_value", "payoffs"),
    "coalitions.synergy_estimation": ("SYNERGIES", "estimate_synergy"),
    "coalitions.wrappers": ("cached", "normalised", "reported", "restricted"),
}

__all__ = [
    "ESTIMATORS",
    "NOTIONS",
    "SYNERGIES",
    "AirportGame",
    "BudgetError",
    "CoalitionError",
    "CoalitionStructure",
    "CoreMembership",
    "Deviation",
    "Estimate",
    "Estimator",
    "FunctionGame",
    "Game",
    "GraphRestrictedGame",
    "InducedSubgraphGame",
    "InfeasibleError",
    "InvalidInputError",
    "Kernel",
    "LeastCore",
    "MissingDependencyError",
    "NoSolutionError",
    "Nucleolus",
    "PairEstimate",
    "Registry",
    "SynergyGraph",
    "TableGame",
    "UnanimityGame",
    "UnknownNameError",
    "VotingGame",
    "adjusted_rand_index",
    "all_coalitions",
    "all_partitions",
    "as_coalitions",
    "banzhaf",
    "bell_number",
    "beta_shapley",
    "cached",
    "core_membership",
    "core_point",
    "deviations",
    "estimate_synergy",
    "find_deviation",
    "interaction",
    "interaction_indices",
    "join",
    "least_core",
    "meet",
    "myerson_value",
    "normalised",
    "normalised_mutual_information",
    "nucleolus",
    "owen_value",
    "pairwise_interactions",
    "partition_labels",
    "payoffs",
    "refines",
    "reported",
    "restricted",
    "semivalue",
    "shapley",
    "value_table",
    "verify_nucleolus",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name of the package)
    return lazy_names(__name__, _HOME, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
