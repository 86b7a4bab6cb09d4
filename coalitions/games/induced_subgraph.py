"""The induced-subgraph game: a coalition is worth the synergies among its members."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coalitions.game import FloatMatrix, FloatVector, Kernel, as_coalitions
from coalitions.graph import DENSE_LIMIT, SynergyGraph
from coalitions.runtime import one_blas_thread

DENSE_PLAYERS = 400
"""Up to this many players a graph is multiplied as a matrix even if it is stored as edges."""

CELLS_PER_CHUNK = 1 << 22
"""Rows are multiplied in chunks of at most this many cells, so that memory stays flat."""

TILE = 48
"""Matrix products compute this many rows at a time, or a divisor of it: 4, 8, 12, 16 or 24."""


class InducedSubgraphGame:
    r"""The game in which a coalition is worth the sum of the synergies inside it.

    .. math:: v(S) = \sum_{i<j \in S} s_{ij}

    It is 2-additive, so its Shapley value has a closed form [Deng1994]_: each end of an edge gets
    half of it.

    Parameters
    ----------
    graph
        The players and their synergies.

    Examples
    --------
    >>> game = InducedSubgraphGame(SynergyGraph([[0, 2, -1], [2, 0, 0], [-1, 0, 0]]))
    >>> game([[1, 1, 0], [1, 1, 1]])
    array([2., 1.])
    >>> game.shapley_values()
    array([ 0.5,  1. , -0.5])
    """

    def __init__(self, graph: SynergyGraph) -> None:
        self.graph = graph
        self._weights: Any = None

    @property
    def n_players(self) -> int:
        """Number of players."""
        return self.graph.n_players

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the players."""
        return self.graph.labels

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return the values of the coalitions, one for each row."""
        rows = as_coalitions(coalitions, self.n_players)
        weights = self._upper_triangle()
        values = np.empty(len(rows))
        chunk = max(1, CELLS_PER_CHUNK // max(1, self.n_players) // TILE) * TILE
        for start in range(0, len(rows), chunk):
            part = rows[start : start + chunk]
            # Matrix products round the rows that fill no tile differently: complete the last one.
            members = np.zeros((-(-len(part) // TILE) * TILE, self.n_players))
            members[: len(part)] = part
            with one_blas_thread():
                pulled = members @ weights
            values[start : start + chunk] = (pulled * members).sum(axis=1)[: len(part)]
        return values

    def shapley_values(self) -> FloatVector:
        r"""Return the Shapley values :math:`\phi_i = \tfrac12 \sum_j s_{ij}`."""
        i, j, weight = self.graph.edges
        n = self.n_players
        ends = np.bincount(i, weight, n) + np.bincount(j, weight, n)
        return np.asarray(ends / 2, np.float64)

    def semivalues(self, sizes: FloatVector) -> FloatVector:
        """Return the semivalue: a player adds the synergies with those met, equally often each."""
        met = float(np.arange(self.n_players) @ sizes) / max(1, self.n_players - 1)
        return 2 * met * self.shapley_values()

    def pair_interactions(self, index: str) -> FloatMatrix:
        """Return the synergies themselves: they are the interactions by any index."""
        del index
        return self.graph.matrix

    @cached_property
    def kernel(self) -> Kernel | None:
        """The game as compiled code; None above 5000 players, where there is no matrix."""
        from coalitions.games._kernels import add_induced_subgraph

        if self.n_players > DENSE_LIMIT:
            return None
        start = np.zeros(1 + self.n_players)
        return Kernel(add_induced_subgraph, np.array(self.graph.matrix).ravel(), start)

    def _upper_triangle(self) -> Any:  # noqa: ANN401 (a dense or a sparse matrix)
        if self._weights is None:
            if self.n_players <= DENSE_PLAYERS or not self.graph.is_sparse:
                self._weights = np.triu(self.graph.matrix, 1)
            else:
                from scipy import sparse

                i, j, weight = self.graph.edges
                shape = (self.n_players, self.n_players)
                self._weights = sparse.csr_array((weight, (i, j)), shape=shape)
        return self._weights

    def __repr__(self) -> str:
        return f"InducedSubgraphGame({self.graph!r})"
