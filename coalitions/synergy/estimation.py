"""From any game to a graph: how much two players gain from each other."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Protocol

import numpy as np

from coalitions.checks import Seed, generator_of
from coalitions.game import Game
from coalitions.graph import SynergyGraph
from coalitions.registry import Registry


class SynergyEstimator(Protocol):
    """A way to read the synergy of all pairs off a game."""

    def __call__(self, game: Game, *, budget: int | None, rng: np.random.Generator) -> SynergyGraph:
        """Return the graph, after at most `budget` evaluations; the default is the method's."""


SYNERGIES: Registry[SynergyEstimator] = Registry("synergy estimator", "coalitions.synergy")
"""All estimators of pairwise synergy by name."""


def estimate_synergy(
    game: Game,
    method: str = "shapley",
    *,
    budget: int | None = None,
    seed: Seed = 0,
    labels: Iterable[Hashable] | None = None,
) -> SynergyGraph:
    """Return the graph of pairwise synergies of a game.

    Parameters
    ----------
    game
        Any game.
    method
        ``"shapley"`` or ``"banzhaf"``: the interaction index, exact where the budget allows and
        sampled otherwise; ``"pairs"``: what two players are worth beyond what each is worth alone.
    budget
        Most coalitions to evaluate.
    seed
        Source of all randomness.
    labels
        Names of the players; those of the game if it has some.

    Examples
    --------
    >>> graph = SynergyGraph([[0, 2, -1], [2, 0, 0], [-1, 0, 0]])
    >>> estimate_synergy(graph.game()).matrix.round(9)
    array([[ 0.,  2., -1.],
           [ 2.,  0.,  0.],
           [-1.,  0.,  0.]])
    """
    graph = SYNERGIES[method](game, budget=budget, rng=generator_of(seed))
    names = getattr(game, "labels", None) if labels is None else labels
    return graph if names is None else SynergyGraph(graph.matrix, labels=names)
