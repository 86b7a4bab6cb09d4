"""Synergy as the pairwise Banzhaf interaction index."""

from __future__ import annotations

import numpy as np

from coalitions.game import Game
from coalitions.graph import SynergyGraph
from coalitions.synergy.estimation import SYNERGIES
from coalitions.values.interactions import pairwise_interactions


@SYNERGIES.register("banzhaf")
def banzhaf(game: Game, *, budget: int | None, rng: np.random.Generator) -> SynergyGraph:
    r"""Return the pairwise Banzhaf interaction index as a graph [Grabisch1999]_.

    The expected joint contribution of two players if everybody else tosses a coin,

    .. math:: I_{ij} = \mathbb{E}_T\,[v(T \cup ij) - v(T \cup i) - v(T \cup j) + v(T)].

    Its edges are those of the graph whose game is nearest to this one in the least-squares sense,
    once single players have their own worth.
    """
    pairs = pairwise_interactions(game, "banzhaf", budget=budget, seed=rng, interruptible=False)
    return SynergyGraph(pairs.values, symmetrise="mean")
