"""Shapley values as integrals of the multilinear extension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import FloatMatrix
from coalitions.sampling.estimator import ESTIMATORS, Estimator, Sampled
from coalitions.sampling.evaluator import Evaluator
from coalitions.sampling.paths import CELLS_PER_CALL, mean_and_error


@ESTIMATORS.register("owen")
@dataclass(frozen=True)
class Owen(Estimator):
    r"""Multilinear sampling, antithetic [Owen1972]_ [Okhrati2021]_.

    .. math:: \phi_i = \int_0^1 E\big[ v(E_q \cup \{i\}) - v(E_q \setminus \{i\}) \big]\, dq

    with everybody in :math:`E_q` independently with probability q. A unit takes one q at random
    from each of `levels` equal parts of [0, ½], draws a coalition for it, and adds the complement,
    whose q is the mirror image. Each coalition and its n neighbours tell one marginal of every
    player.

    Attributes
    ----------
    levels
        Parts of [0, ½]; more of them even out q, fewer give more independent units.
    """

    levels: int = 2

    unbiased: ClassVar[bool] = True
    axioms: ClassVar[frozenset[str]] = frozenset({"null player", "linearity"})
    stderr_means: ClassVar[str] = "standard deviation of the mean of independent units"

    def __post_init__(self) -> None:
        if self.levels < 1:
            raise InvalidInputError(f"there are {self.levels} levels; at least 1 is needed")

    def minimum_budget(self, n_players: int) -> int:
        """Return the cost of two units."""
        return 2 * self._unit_cost(n_players)

    def _unit_cost(self, n_players: int) -> int:
        return 2 * self.levels * (n_players + 1)

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return mean and standard error over the units."""
        n = game.n_players
        rng = np.random.default_rng(seed)
        n_units = game.budget // self._unit_cost(n)
        units = np.empty((n_units, n))
        per_call = max(1, CELLS_PER_CALL // (self._unit_cost(n) * n))
        for start in range(0, n_units, per_call):
            count = min(per_call, n_units - start)
            uniform = rng.random((count, self.levels, n + 1))  # unit by unit: any count continues
            q = (np.arange(self.levels)[:, None] + uniform[:, :, :1]) / (2 * self.levels)
            half = uniform[:, :, 1:] < q
            rows = np.concatenate([half, ~half], axis=1)
            marginals = _neighbour_marginals(game, rows.reshape(-1, n))
            units[start : start + count] = marginals.reshape(count, -1, n).mean(axis=1)
        return Sampled(*mean_and_error(units), n_units - 1)


def _neighbour_marginals(
    game: Evaluator, rows: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
) -> FloatMatrix:
    """Return v(S∪i) − v(S∖i) for each coalition and player, [m, n]."""
    m, n = rows.shape
    neighbours = rows[:, None, :] ^ np.eye(n, dtype=np.bool_)
    values = game(np.concatenate([rows[:, None, :], neighbours], axis=1).reshape(-1, n))
    values = values.reshape(m, n + 1)
    change = values[:, 1:] - values[:, :1]
    return np.where(rows, -change, change)
