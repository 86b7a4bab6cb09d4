"""Sums of unanimity games: some groups are worth something once all their members are there."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from coalitions.errors import InvalidInputError
from coalitions.game import BoolMatrix, FloatVector, Kernel, as_coalitions

CELLS_PER_CHUNK = 1 << 24
"""Rows are compared with all groups in chunks of at most this many cells."""


class UnanimityGame:
    r"""A weighted sum of unanimity games.

    .. math:: v(S) = \sum_{T \subseteq S} d_T

    Every game is such a sum in exactly one way; the weights are its Harsanyi dividends. Each group
    shares its dividend equally [Shapley1953]_: :math:`\phi_i = \sum_{T \ni i} d_T / |T|`.

    Parameters
    ----------
    n_players
        Number of players.
    groups
        Members of each group T. The empty group's dividend is v(∅).
    dividends
        Weight of each group.

    Examples
    --------
    >>> game = UnanimityGame(3, groups=[[0], [0, 1], [0, 1, 2]], dividends=[1, 2, 3])
    >>> game([[1, 1, 0], [1, 1, 1]])
    array([3., 6.])
    >>> game.shapley_values()
    array([3., 2., 1.])
    """

    def __init__(
        self, n_players: int, groups: Iterable[Iterable[int]], dividends: ArrayLike
    ) -> None:
        members = [sorted(set(group)) for group in groups]
        weights = np.array(dividends, np.float64)
        if n_players < 1:
            raise InvalidInputError(f"there are {n_players} players; at least one is needed")
        if weights.shape != (len(members),) or not np.isfinite(weights).all():
            raise InvalidInputError(
                f"there must be one finite dividend for each of the {len(members)} groups"
            )
        rows: BoolMatrix = np.zeros((len(members), n_players), np.bool_)
        for row, group in zip(rows, members, strict=True):
            if group and not 0 <= group[0] <= group[-1] < n_players:
                raise InvalidInputError(
                    f"group {group} names a player that is not among 0 … {n_players - 1}"
                )
            row[group] = True
        weights.flags.writeable = rows.flags.writeable = False
        self.groups = rows
        self.dividends = weights

    @classmethod
    def random(
        cls, n_players: int, n_groups: int, *, seed: int = 0, max_size: int = 8
    ) -> UnanimityGame:
        """Return a game of random groups with normally distributed dividends."""
        rng = np.random.default_rng(seed)
        sizes = rng.integers(1, min(n_players, max_size) + 1, n_groups)
        groups = [rng.choice(n_players, size, replace=False).tolist() for size in sizes]
        return cls(n_players, groups, rng.normal(size=n_groups))

    @property
    def n_players(self) -> int:
        """Number of players."""
        return int(self.groups.shape[1])

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return the values of the coalitions, one for each row."""
        rows = as_coalitions(coalitions, self.n_players)
        # Counts of members fit float32 exactly, and its matrix product is the fastest there is.
        groups = self.groups.T.astype(np.float32)
        sizes = self.groups.sum(axis=1).astype(np.float32)
        values = np.empty(len(rows))
        chunk = max(1, CELLS_PER_CHUNK // max(1, len(sizes)))
        for start in range(0, len(rows), chunk):
            inside = rows[start : start + chunk].astype(np.float32) @ groups
            complete = (inside >= sizes).astype(np.float64)
            # Not a matrix product: that adds a row's terms in an order that depends on the others.
            values[start : start + chunk] = np.einsum("ij,j->i", complete, self.dividends)
        return values

    def shapley_values(self) -> FloatVector:
        """Return the Shapley values: each group shares its dividend equally."""
        sizes = self.groups.sum(axis=1)
        shares = np.divide(self.dividends, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
        return np.asarray(np.where(self.groups, shares[:, None], 0.0).sum(axis=0), np.float64)

    @cached_property
    def kernel(self) -> Kernel:
        """The game as compiled code; the state is the value and who is missing in each group."""
        from coalitions.games._kernels import add_unanimity

        player, group = np.nonzero(self.groups.T)
        starts = np.searchsorted(player, np.arange(self.n_players + 1))
        parameters = np.concatenate([[self.n_players, len(group)], starts, group, self.dividends])
        sizes = self.groups.sum(axis=1)
        empty = float(self.dividends[sizes == 0].sum())
        return Kernel(add_unanimity, parameters, np.concatenate([[empty], sizes]), empty)

    def __repr__(self) -> str:
        return f"UnanimityGame({self.n_players} players, {len(self.dividends)} groups)"
