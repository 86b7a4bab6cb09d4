"""The weighted voting game: a coalition wins if its votes reach the quota."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from coalitions.errors import InvalidInputError
from coalitions.game import FloatMatrix, FloatVector, Kernel, as_coalitions

CLOSED_FORM_CELLS = 1 << 24
"""Cells (half of n times the quota) up to which the dynamic program is taken for a closed form."""


class VotingGame:
    r"""The game in which a coalition is worth 1 if its weight reaches the quota, else 0.

    .. math:: v(S) = 1 \text{ if } \sum_{i \in S} w_i \ge q, \text{ else } 0

    Parameters
    ----------
    weights
        Votes of the players, not negative.
    quota
        Votes a coalition needs to win.

    Examples
    --------
    >>> game = VotingGame([4, 3, 2, 1], quota=6)
    >>> game([[1, 0, 1, 0], [0, 1, 1, 0]])
    array([1., 0.])
    >>> (game.shapley_values() * 12).round(9)
    array([5., 3., 3., 1.])
    """

    def __init__(self, weights: ArrayLike, quota: float) -> None:
        votes = np.array(weights, np.float64)
        if votes.ndim != 1 or not len(votes) or not (np.isfinite(votes) & (votes >= 0)).all():
            raise InvalidInputError("weights must be a list of finite numbers that are at least 0")
        if not np.isfinite(quota):
            raise InvalidInputError(f"the quota is {quota}; it must be a finite number")
        votes.flags.writeable = False
        self.weights = votes
        self.quota = float(quota)

    @property
    def n_players(self) -> int:
        """Number of players."""
        return len(self.weights)

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return 1 for each winning coalition and 0 for each losing one."""
        rows = as_coalitions(coalitions, self.n_players)
        # Not a matrix product: that adds a row's votes in an order that depends on the other rows.
        votes: FloatVector = np.einsum("ij,j->i", rows.astype(np.float64), self.weights)
        return (votes >= self.quota).astype(np.float64)

    @property
    def shapley_values(self) -> Callable[[], FloatVector] | None:
        """The Shapley–Shubik index by dynamic programming; None if the votes do not allow it.

        It needs whole numbers of votes and a quota that is not too large.
        """
        whole = bool((self.weights == np.rint(self.weights)).all())
        cells = (self.n_players + 1) // 2 * max(1.0, np.ceil(self.quota))
        return self._shapley_shubik if whole and cells <= CLOSED_FORM_CELLS else None

    def _shapley_shubik(self) -> FloatVector:
        r"""Return the Shapley–Shubik index, computed from positive terms only.

        Let everybody join with probability t. Then [Owen1972]_

        .. math:: \phi_i = \int_0^1 P\big[ q - w_i \le \sum_{j \ne i} w_j B_j(t) < q \big]\, dt

        The integrand is a polynomial of degree n−1, so Gauss' rule with ⌈n/2⌉ nodes is exact. The
        distributions without player i come from halving: each half of the players is added to
        what its other half will see. Nothing is ever subtracted, so nothing cancels.
        """
        n = self.n_players
        quota = int(np.ceil(self.quota))
        values = np.zeros(n)
        if quota <= 0:
            return values  # everybody wins already, alone or not: nobody matters
        nodes, areas = np.polynomial.legendre.leggauss((n + 1) // 2)
        t = ((nodes + 1) / 2)[:, None]
        votes = self.weights.astype(np.int64)

        def joined(sums: FloatMatrix, players: range) -> FloatMatrix:
            """Return the distribution of the votes below the quota once these may join as well."""
            for player in players:
                vote = votes[player]
                after = (1 - t) * sums
                if vote < quota:
                    after[:, vote:] += t * sums[:, : quota - vote]
                sums = after
            return sums

        def descend(sums: FloatMatrix, players: range) -> None:
            if len(players) == 1:
                pivotal = sums[:, max(0, quota - votes[players[0]]) :].sum(axis=1)
                values[players[0]] = areas @ pivotal / 2
                return
            half = len(players) // 2
            descend(joined(sums, players[half:]), players[:half])
            descend(joined(sums, players[:half]), players[half:])

        nobody = np.zeros((len(nodes), quota))
        nobody[:, 0] = 1.0
        descend(nobody, range(n))
        return values

    @cached_property
    def kernel(self) -> Kernel:
        """The game as compiled code; the state is the votes so far."""
        from coalitions.games._kernels import add_voting

        parameters = np.concatenate([[self.quota], self.weights])
        return Kernel(add_voting, parameters, np.zeros(1), float(self.quota <= 0))

    def __repr__(self) -> str:
        return f"VotingGame({self.n_players} players, quota={self.quota:g})"
