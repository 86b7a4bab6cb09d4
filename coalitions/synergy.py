"""From any game to a graph of how much each two players gain from each other, and back."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Protocol

import numpy as np

from coalitions.checks import GameLike, Seed, as_game, generator_of, whole_number
from coalitions.errors import BudgetError, with_keywords
from coalitions.game import Game, players_of
from coalitions.games.induced_subgraph import InducedSubgraphGame
from coalitions.graph import SynergyGraph, matrix_of_pairs
from coalitions.registry import Registry
from coalitions.values.budget import Evaluator
from coalitions.values.interactions import interactions


class SynergyEstimator(Protocol):
    """A way to read the synergy of all pairs off a game."""

    def __call__(self, game: Game, *, budget: int | None, rng: np.random.Generator) -> SynergyGraph:
        """Return the graph, after at most `budget` evaluations; the default is the method's."""


SYNERGIES: Registry[SynergyEstimator] = Registry("synergy estimator", "coalitions.synergy")
"""All estimators of pairwise synergy by name."""


@with_keywords()
def estimate_synergy(
    game: GameLike,
    kind: str = "shapley",
    *,
    budget: int | None = None,
    seed: Seed = 0,
    names: Iterable[Hashable] | None = None,
) -> SynergyGraph:
    """Return the graph of pairwise synergies of a game.

    Parameters
    ----------
    game
        Any game.
    kind
        ``"shapley"`` or ``"banzhaf"``: the interaction index, exact where the budget allows and
        sampled otherwise; ``"pairs"``: what two players are worth beyond what each is worth alone.
    budget
        Most coalitions to evaluate.
    seed
        Source of all randomness.
    names
        Names of the players; those of the game if it has some.

    Examples
    --------
    >>> graph = SynergyGraph([[0, 2, -1], [2, 0, 0], [-1, 0, 0]])
    >>> estimate_synergy(graph.game()).matrix.round(9)
    array([[ 0.,  2., -1.],
           [ 2.,  0.,  0.],
           [-1.,  0.,  0.]])
    """
    game = as_game(game)
    graph = SYNERGIES[kind](game, budget=budget, rng=generator_of(seed))
    called = getattr(game, "labels", None) if names is None else names
    return graph if called is None else SynergyGraph(graph.matrix, labels=called)


# ----------------------------------------------------------------------------------------
# The estimators


@SYNERGIES.register("shapley")
def shapley_synergy(game: Game, *, budget: int | None, rng: np.random.Generator) -> SynergyGraph:
    r"""Return the pairwise Shapley interaction index as a graph [Grabisch1999]_.

    The expected joint contribution of two players to those before them in a random order in which
    they follow each other,

    .. math:: I_{ij} = \sum_{T \not\ni i, j} \frac{t!\,(n-t-2)!}{(n-1)!}
        [v(T \cup ij) - v(T \cup i) - v(T \cup j) + v(T)].
    """
    pairs = interactions(
        game, "SII", coalitions="pairs", budget=budget, seed=rng, interruptible=False
    )
    return SynergyGraph(pairs.matrix)


@SYNERGIES.register("banzhaf")
def banzhaf_synergy(game: Game, *, budget: int | None, rng: np.random.Generator) -> SynergyGraph:
    r"""Return the pairwise Banzhaf interaction index as a graph [Grabisch1999]_.

    The expected joint contribution of two players if everybody else tosses a coin,

    .. math:: I_{ij} = \mathbb{E}_T\,[v(T \cup ij) - v(T \cup i) - v(T \cup j) + v(T)].

    Its edges are those of the graph whose game is nearest to this one in the least-squares sense,
    once single players have their own worth.
    """
    pairs = interactions(
        game, "BII", coalitions="pairs", budget=budget, seed=rng, interruptible=False
    )
    return SynergyGraph(pairs.matrix)


@SYNERGIES.register("pairs")
def pair_synergy(game: Game, *, budget: int | None, rng: np.random.Generator) -> SynergyGraph:
    r"""Return what two players are worth together beyond what each is worth alone.

    .. math:: s_{ij} = v(ij) - v(i) - v(j) + v(\emptyset)

    It takes 1 + n(n + 1)/2 evaluations and nothing is random: the choice where larger coalitions
    are too expensive to evaluate, or where pairs are all that matters.
    """
    n = players_of(game)
    needed = 1 + n * (n + 1) // 2
    if budget is not None and whole_number(budget, "the budget", 1) < needed:
        raise BudgetError(f"all pairs of {n} players need {needed} evaluations, not {budget}")
    i, j = np.triu_indices(n, 1)
    coalitions = np.zeros((needed, n), np.bool_)
    coalitions[1 : n + 1] = np.eye(n, dtype=np.bool_)
    rows = np.arange(n + 1, needed)
    coalitions[rows, i] = coalitions[rows, j] = True
    values = Evaluator(game, needed)(coalitions)
    alone = values[1 : n + 1]
    pairs = values[n + 1 :] - alone[i] - alone[j] + values[0]
    return SynergyGraph(matrix_of_pairs(n, i, j, pairs))


# ----------------------------------------------------------------------------------------
# The way back: a table of synergies as a game


def synergy_game(
    synergies: Any,  # noqa: ANN401 (whatever a SynergyGraph is made from)
    names: Iterable[Hashable] | None = None,
) -> InducedSubgraphGame:
    """Return the game in which a coalition is worth the synergies among its members.

    Parameters
    ----------
    synergies
        A `SynergyGraph`, or whatever one is made from: a matrix, a DataFrame, a graph.
    names
        Names of the players, if the synergies bring none.

    Examples
    --------
    >>> from coalitions import shapley
    >>> shapley(synergy_game([[0, 2, -1], [2, 0, 4], [-1, 4, 0]])).values
    array([0.5, 3. , 1.5])
    """
    ready = isinstance(synergies, SynergyGraph) and names is None
    return (synergies if ready else SynergyGraph(synergies, labels=names)).game()
