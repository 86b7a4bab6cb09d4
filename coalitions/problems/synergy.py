"""The game of a table of synergies."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from coalitions.games.induced_subgraph import InducedSubgraphGame
from coalitions.graph import SynergyGraph


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
