"""Semivalues as indices of single players."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector
from coalitions.joint.index import Index, Measure


@dataclass(frozen=True, eq=False)
class Semivalue(Index):
    """The semivalue of a distribution of sizes; what the coin is like is not known.

    Attributes
    ----------
    by_number
        How likely a player meets k others [n].
    """

    by_number: FloatVector

    has_measure: ClassVar[bool] = False

    def measure(self, size: int, n_players: int) -> Measure:
        """Refuse: not every distribution is one of tossed coins."""
        raise InvalidInputError("a distribution of sizes has no measure of a coin")

    def masses(self, n_players: int) -> dict[int, FloatVector]:
        """Return the distribution itself."""
        del n_players
        return {1: self.by_number}


@dataclass(frozen=True)
class BetaSemivalue(Index):
    """The Beta-Shapley value: the coin's bias has a Beta distribution [Kwon2022]_.

    Attributes
    ----------
    alpha, beta
        As in `coalitions.beta_shapley`.
    """

    alpha: float
    beta: float

    def measure(self, size: int, n_players: int) -> Measure:
        """Return Gauss' rule for the Beta(β, α) density of the bias."""
        from scipy.special import roots_jacobi

        nodes, weights = roots_jacobi(n_players // 2 + 1, self.alpha - 1, self.beta - 1)
        return Measure((nodes + 1) / 2, np.asarray(weights / weights.sum()))
