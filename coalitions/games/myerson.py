"""The graph-restricted game: only players who are connected can work together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from coalitions.checks import GameLike, as_game, ends_of_links
from coalitions.game import BoolMatrix, FloatVector, as_coalitions, labels_of
from coalitions.games.wrappers import cached
from coalitions.graph import SynergyGraph

NODES_PER_CHUNK = 1 << 20
"""Rows are split into components together, up to this many nodes in all."""


class GraphRestrictedGame:
    r"""The game in which a coalition falls apart into its connected components.

    .. math:: v^g(S) = v(\emptyset) + \sum_{C \in S/g} \big[ v(C) - v(\emptyset) \big]

    Its Shapley value is the Myerson value of the game [Myerson1977]_. No component is evaluated
    twice, and one call is at most one call to the game.

    Parameters
    ----------
    game
        Any game.
    links
        Who talks to whom: pairs of players, or a graph whose weights are ignored.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> majority = TableGame([0, 0, 0, 1, 0, 1, 1, 1])
    >>> path = GraphRestrictedGame(majority, [(0, 1), (1, 2)])
    >>> path([[1, 0, 1], [1, 1, 0]])  # 0 and 2 have a majority, but 1 stands between them
    array([0., 1.])
    """

    def __init__(self, game: GameLike, links: SynergyGraph | Iterable[Iterable[Hashable]]) -> None:
        self.game = game = as_game(game)
        i, j = ends_of_links(links, game)
        self._cached = cached(game)
        self._i, self._j = np.array(i), np.array(j)

    @property
    def n_players(self) -> int:
        """Number of players."""
        return int(self.game.n_players)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the players: those of the game inside."""
        return labels_of(self.game)

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return the values of the coalitions, one for each row."""
        rows = as_coalitions(coalitions, self.n_players)
        chunk = max(1, NODES_PER_CHUNK // self.n_players)
        parts = [
            self._components(rows[start : start + chunk]) for start in range(0, len(rows), chunk)
        ]
        shift = np.concatenate([[0], np.cumsum([min(chunk, len(rows))] * len(parts))])
        nobody = np.zeros((1, self.n_players), np.bool_)
        values = self._cached(np.concatenate([nobody, *(components for components, _ in parts)]))
        owner = np.concatenate(
            [np.zeros(0, np.int64), *(own + s for (_, own), s in zip(parts, shift, strict=False))]
        )
        empty = values[0]
        return np.asarray(empty + np.bincount(owner, values[1:] - empty, len(rows)))

    def _components(
        self, rows: BoolMatrix
    ) -> tuple[BoolMatrix, np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """Return all components of all rows, and the row that each belongs to."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        m, n = rows.shape
        # All rows at once: one graph with a copy of the links for each row.
        row, link = np.nonzero(rows[:, self._i] & rows[:, self._j])
        one, other = row * n + self._i[link], row * n + self._j[link]
        graph = coo_array((np.ones(len(row), np.int8), (one, other)), shape=(m * n, m * n))
        _, label = connected_components(graph, directed=False)
        node = np.flatnonzero(rows)
        _, first, number = np.unique(label[node], return_index=True, return_inverse=True)
        components = np.zeros((len(first), n), np.bool_)
        components[number, node % n] = True
        return components, node[first] // n

    def __repr__(self) -> str:
        return f"GraphRestrictedGame({self.game!r}, {len(self._i)} links)"
