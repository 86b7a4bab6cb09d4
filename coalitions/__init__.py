"""Games, values, synergy graphs and coalition structures.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coalitions.importing import lazy_names, warn_of_foreign

if TYPE_CHECKING:
    from coalitions.data_models import DATA_MODELS
    from coalitions.drawing.figures import interaction_network
    from coalitions.enumeration import all_coalitions, value_table
    from coalitions.errors import (
        BudgetError,
        CoalitionError,
        InfeasibleError,
        InputWarning,
        InvalidInputError,
        MissingDependencyError,
        NoSolutionError,
        UnknownNameError,
    )
    from coalitions.execution.progress import time_left
    from coalitions.execution.store import stored
    from coalitions.execution.workers import parallel
    from coalitions.game import Game, Kernel, as_coalitions
    from coalitions.games.airport import AirportGame
    from coalitions.games.function import FunctionGame
    from coalitions.games.induced_subgraph import InducedSubgraphGame
    from coalitions.games.myerson import GraphRestrictedGame
    from coalitions.games.table import TableGame
    from coalitions.games.unanimity import UnanimityGame
    from coalitions.games.voting import VotingGame
    from coalitions.games.wrappers import cached, normalised, reported, restricted
    from coalitions.graph import SynergyGraph
    from coalitions.problems.assignment import assignment_game
    from coalitions.problems.bankruptcy import bankruptcy_game
    from coalitions.problems.columns import column_game
    from coalitions.problems.costs import cost_game
    from coalitions.problems.data import data_game, leave_one_out
    from coalitions.problems.ensemble import ensemble_game
    from coalitions.problems.export import to_shap, to_shapiq
    from coalitions.problems.features import feature_game, feature_games
    from coalitions.problems.flow import flow_game
    from coalitions.problems.neighbours import knn_game, knn_shapley
    from coalitions.problems.spanning_tree import minimum_cost_tree_game
    from coalitions.registry import Registry
    from coalitions.structure import CoalitionStructure
    from coalitions.structures.partitions import (
        adjusted_rand_index,
        all_partitions,
        bell_number,
        join,
        meet,
        normalised_mutual_information,
        partition_labels,
        refines,
    )
    from coalitions.structures.stability import NOTIONS, Deviation, deviations, find_deviation
    from coalitions.synergy import SYNERGIES, estimate_synergy, synergy_game
    from coalitions.values.core import (
        CoreMembership,
        LeastCore,
        core_membership,
        core_point,
        least_core,
    )
    from coalitions.values.estimate import Estimate, Interactions
    from coalitions.values.estimates import Estimates, RankCorrelation
    from coalitions.values.estimator import (
        ESTIMATORS,
        INTERACTION_ESTIMATORS,
        PAIR_ESTIMATORS,
        SEMIVALUE_ESTIMATORS,
        Estimator,
        InteractionEstimator,
        PairEstimator,
        SemivalueEstimator,
    )
    from coalitions.values.index import INDICES, Index
    from coalitions.values.interactions import (
        PairEstimate,
        interaction,
        interaction_indices,
        interactions,
        pairwise_interactions,
    )
    from coalitions.values.nucleolus import Nucleolus, nucleolus, verify_nucleolus
    from coalitions.values.owen_myerson import myerson_value, owen_value, payoffs
    from coalitions.values.semivalues import banzhaf, beta_shapley, semivalue
    from coalitions.values.shapley import shapley
    from coalitions.values.top import Top, top_k

__version__ = "0.1.0"

warn_of_foreign("solvers", "learners")

_HOME = {
    "coalitions.data_models": ("DATA_MODELS",),
    "coalitions.drawing.figures": ("interaction_network",),
    "coalitions.enumeration": ("all_coalitions", "value_table"),
    "coalitions.errors": (
        "BudgetError",
        "CoalitionError",
        "InfeasibleError",
        "InputWarning",
        "InvalidInputError",
        "MissingDependencyError",
        "NoSolutionError",
        "UnknownNameError",
    ),
    "coalitions.execution.progress": ("time_left",),
    "coalitions.execution.store": ("stored",),
    "coalitions.execution.workers": ("parallel",),
    "coalitions.game": ("Game", "Kernel", "as_coalitions"),
    "coalitions.games.airport": ("AirportGame",),
    "coalitions.games.function": ("FunctionGame",),
    "coalitions.games.induced_subgraph": ("InducedSubgraphGame",),
    "coalitions.games.myerson": ("GraphRestrictedGame",),
    "coalitions.games.table": ("TableGame",),
    "coalitions.games.unanimity": ("UnanimityGame",),
    "coalitions.games.voting": ("VotingGame",),
    "coalitions.games.wrappers": ("cached", "normalised", "reported", "restricted"),
    "coalitions.graph": ("SynergyGraph",),
    "coalitions.problems.assignment": ("assignment_game",),
    "coalitions.problems.bankruptcy": ("bankruptcy_game",),
    "coalitions.problems.columns": ("column_game",),
    "coalitions.problems.costs": ("cost_game",),
    "coalitions.problems.data": ("data_game", "leave_one_out"),
    "coalitions.problems.ensemble": ("ensemble_game",),
    "coalitions.problems.export": ("to_shap", "to_shapiq"),
    "coalitions.problems.features": ("feature_game", "feature_games"),
    "coalitions.problems.flow": ("flow_game",),
    "coalitions.problems.neighbours": ("knn_game", "knn_shapley"),
    "coalitions.problems.spanning_tree": ("minimum_cost_tree_game",),
    "coalitions.registry": ("Registry",),
    "coalitions.structure": ("CoalitionStructure",),
    "coalitions.structures.partitions": (
        "adjusted_rand_index",
        "all_partitions",
        "bell_number",
        "join",
        "meet",
        "normalised_mutual_information",
        "partition_labels",
        "refines",
    ),
    "coalitions.structures.stability": ("Deviation", "NOTIONS", "deviations", "find_deviation"),
    "coalitions.synergy": ("SYNERGIES", "estimate_synergy", "synergy_game"),
    "coalitions.values.core": (
        "CoreMembership",
        "LeastCore",
        "core_membership",
        "core_point",
        "least_core",
    ),
    "coalitions.values.estimate": ("Estimate", "Interactions"),
    "coalitions.values.estimates": ("Estimates", "RankCorrelation"),
    "coalitions.values.estimator": (
        "ESTIMATORS",
        "Estimator",
        "INTERACTION_ESTIMATORS",
        "InteractionEstimator",
        "PAIR_ESTIMATORS",
        "PairEstimator",
        "SEMIVALUE_ESTIMATORS",
        "SemivalueEstimator",
    ),
    "coalitions.values.index": ("INDICES", "Index"),
    "coalitions.values.interactions": (
        "PairEstimate",
        "interaction",
        "interaction_indices",
        "interactions",
        "pairwise_interactions",
    ),
    "coalitions.values.nucleolus": ("Nucleolus", "nucleolus", "verify_nucleolus"),
    "coalitions.values.owen_myerson": ("myerson_value", "owen_value", "payoffs"),
    "coalitions.values.semivalues": ("banzhaf", "beta_shapley", "semivalue"),
    "coalitions.values.shapley": ("shapley",),
    "coalitions.values.top": ("Top", "top_k"),
}

__all__ = [
    "DATA_MODELS",
    "ESTIMATORS",
    "INDICES",
    "INTERACTION_ESTIMATORS",
    "NOTIONS",
    "PAIR_ESTIMATORS",
    "SEMIVALUE_ESTIMATORS",
    "SYNERGIES",
    "AirportGame",
    "BudgetError",
    "CoalitionError",
    "CoalitionStructure",
    "CoreMembership",
    "Deviation",
    "Estimate",
    "Estimates",
    "Estimator",
    "FunctionGame",
    "Game",
    "GraphRestrictedGame",
    "Index",
    "InducedSubgraphGame",
    "InfeasibleError",
    "InputWarning",
    "InteractionEstimator",
    "Interactions",
    "InvalidInputError",
    "Kernel",
    "LeastCore",
    "MissingDependencyError",
    "NoSolutionError",
    "Nucleolus",
    "PairEstimate",
    "PairEstimator",
    "RankCorrelation",
    "Registry",
    "SemivalueEstimator",
    "SynergyGraph",
    "TableGame",
    "Top",
    "UnanimityGame",
    "UnknownNameError",
    "VotingGame",
    "adjusted_rand_index",
    "all_coalitions",
    "all_partitions",
    "as_coalitions",
    "assignment_game",
    "bankruptcy_game",
    "banzhaf",
    "bell_number",
    "beta_shapley",
    "cached",
    "column_game",
    "core_membership",
    "core_point",
    "cost_game",
    "data_game",
    "deviations",
    "ensemble_game",
    "estimate_synergy",
    "feature_game",
    "feature_games",
    "find_deviation",
    "flow_game",
    "interaction",
    "interaction_indices",
    "interaction_network",
    "interactions",
    "join",
    "knn_game",
    "knn_shapley",
    "least_core",
    "leave_one_out",
    "meet",
    "minimum_cost_tree_game",
    "myerson_value",
    "normalised",
    "normalised_mutual_information",
    "nucleolus",
    "owen_value",
    "pairwise_interactions",
    "parallel",
    "partition_labels",
    "payoffs",
    "refines",
    "reported",
    "restricted",
    "semivalue",
    "shapley",
    "stored",
    "synergy_game",
    "time_left",
    "to_shap",
    "to_shapiq",
    "top_k",
    "value_table",
    "verify_nucleolus",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name of the package)
    return lazy_names(__name__, _HOME, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
