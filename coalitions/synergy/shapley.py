"""Synergy as the pairwise Shapley interaction index."""

from __future__ import annotations

import numpy as np

from coalitions.game import Game
from coalitions.graph import SynergyGraph
from coalitions.synergy.estimation import SYNERGIES
from coalitions.values.interactions import pairwise_interactions


@SYNERGIES.register("shapley")
def shapley(game: Game, *, budget: int | None, rng: np.random.Generator) -> SynergyGraph:
    r"""Return the pairwise Shapley interaction index as a graph [Grabisch1999]_.

    The expected joint contribution of two players to those before them in a random order in which
    they follow each other,

    .. math:: I_{ij} = \sum_{T \not\ni i, j} \frac{t!\,(n-t-2)!}{(n-1)!}
        [v(T \cup ij) - v(T \cup i) - v(T \cup j) + v(T)].
    """
    pairs = pairwise_interactions(game, "shapley", budget=budget, seed=rng, interruptible=False)
    return SynergyGraph(pairs.values, symmetrise="mean")
