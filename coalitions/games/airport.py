"""The airport game: a coalition pays for the longest runway that one of its members needs."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector, Kernel, as_coalitions


class AirportGame:
    r"""The game in which a coalition costs what its most expensive member costs.

    .. math:: v(S) = \max_{i \in S} c_i, \quad v(\emptyset) = 0

    Parameters
    ----------
    costs
        Cost of each player's runway, not negative.

    Examples
    --------
    >>> game = AirportGame([8, 11, 13, 18])
    >>> game([[1, 1, 0, 0], [0, 0, 0, 0]])
    array([11.,  0.])
    >>> game.shapley_values()
    array([2., 3., 4., 9.])
    """

    def __init__(self, costs: ArrayLike) -> None:
        vector = np.array(costs, np.float64)
        if vector.ndim != 1 or not len(vector) or not (np.isfinite(vector) & (vector >= 0)).all():
            raise InvalidInputError("costs must be a list of finite numbers that are at least 0")
        vector.flags.writeable = False
        self.costs = vector

    @property
    def n_players(self) -> int:
        """Number of players."""
        return len(self.costs)

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return the costs of the coalitions."""
        rows = as_coalitions(coalitions, self.n_players)
        return np.asarray(np.where(rows, self.costs, 0.0).max(axis=1))

    def shapley_values(self) -> FloatVector:
        r"""Return the Shapley values: each piece of runway is shared by those who need it.

        With costs in ascending order,
        :math:`\phi_i = \sum_{k \le i} \frac{c_k - c_{k-1}}{n - k + 1}` [Littlechild1973]_.
        """
        order = np.argsort(self.costs, kind="stable")
        pieces = np.diff(self.costs[order], prepend=0.0)
        shares = np.cumsum(pieces / np.arange(self.n_players, 0, -1))
        values = np.empty(self.n_players)
        values[order] = shares
        return values

    @cached_property
    def kernel(self) -> Kernel:
        """The game as compiled code; the state is the cost so far."""
        from coalitions.games._kernels import add_airport

        return Kernel(add_airport, np.array(self.costs), np.zeros(1), 0.0)

    def __repr__(self) -> str:
        return f"AirportGame({self.n_players} players)"
