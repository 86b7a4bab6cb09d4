"""The minimum-cost tree game: the costs of a network, shared by those it connects."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from coalitions.errors import InvalidInputError
from coalitions.game import BoolMatrix, FloatMatrix, FloatVector
from coalitions.problems.named import NamedGame, names_of, numbers


def minimum_cost_tree_game(
    costs: ArrayLike, names: Iterable[Hashable] | None = None
) -> MinimumCostTreeGame:
    """Return the game in which a coalition pays for the cheapest tree from the source to it.

    The tree may pass through members of the coalition only [Bird1976]_. `bird_shares` is Bird's
    rule: everybody pays the link by which the source reaches them, and no coalition would pay
    less on its own.

    Parameters
    ----------
    costs
        What a link between two nodes costs [n + 1, n + 1], symmetric, not negative, 0 on the
        diagonal. Node 0 is the source, node i + 1 is player i.
    names
        Names of the players, without the source.

    Examples
    --------
    >>> from coalitions import shapley
    >>> game = minimum_cost_tree_game([[0, 4, 9], [4, 0, 2], [9, 2, 0]])
    >>> game([[1, 0], [0, 1], [1, 1]])
    array([4., 9., 6.])
    >>> game.bird_shares(), shapley(game).values
    (array([4., 2.]), array([0.5, 5.5]))
    """
    matrix = numbers(costs, "costs", 2)
    n = len(matrix) - 1
    if matrix.shape != (n + 1, n + 1) or n < 1:
        raise InvalidInputError(
            f"costs have shape {matrix.shape}; expected (n + 1, n + 1), the source first"
        )
    if (matrix != matrix.T).any() or (matrix < 0).any():
        raise InvalidInputError("costs of links must be symmetric and not negative")
    if matrix.diagonal().any():
        node = int(matrix.diagonal().argmax())
        raise InvalidInputError(
            f"a link from node {node} to itself costs {matrix[node, node]:g}; the diagonal must be"
            " 0"
        )
    return MinimumCostTreeGame(matrix, names_of(names, n, "players beside the source"))


class MinimumCostTreeGame(NamedGame):
    """The game of the cheapest tree; see `minimum_cost_tree_game`."""

    def __init__(self, costs: FloatMatrix, labels: tuple[str, ...]) -> None:
        self.costs = costs
        self.labels = labels

    def _values(self, rows: BoolMatrix) -> FloatVector:
        return np.asarray(self._links(rows).sum(axis=1))

    def bird_shares(self) -> FloatVector:
        """Return what each player pays by Bird's rule; of equal links the first counts."""
        return np.asarray(self._links(np.ones((1, self.n_players), np.bool_))[0])

    def _links(self, rows: BoolMatrix) -> FloatMatrix:
        """Return what the link to each member costs [m, n]: Prim's algorithm, all rows at once."""
        paid = np.zeros(rows.shape)
        every = np.arange(len(rows))
        to_tree = np.where(rows, self.costs[0, 1:], np.inf)
        for _ in range(self.n_players):
            nearest = to_tree.argmin(axis=1)
            link = to_tree[every, nearest]
            active = np.isfinite(link)
            if not active.any():
                break
            paid[every[active], nearest[active]] = link[active]
            closer = np.minimum(to_tree, self.costs[1 + nearest, 1:])
            closer[every, nearest] = np.inf
            to_tree = np.where(np.isfinite(to_tree) & active[:, None], closer, np.inf)
        return paid
