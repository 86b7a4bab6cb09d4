"""Shapley values as means over random permutations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.sampling.estimator import ESTIMATORS, Estimator, Sampled
from coalitions.sampling.evaluator import Evaluator
from coalitions.sampling.paths import (
    affordable_paths,
    compiled_paths,
    marginals,
    mean_and_error,
    path_cost,
    random_orders,
)


@ESTIMATORS.register("permutation")
@dataclass(frozen=True)
class Permutation(Estimator):
    r"""The mean marginal contribution along random permutations [Castro2009]_.

    .. math:: \hat\phi_i = \frac1R \sum_{r=1}^R
              \big[ v(P_i^{\pi_r} \cup \{i\}) - v(P_i^{\pi_r}) \big]

    with :math:`P_i^\pi` the players before i in :math:`\pi`. R is the largest number of
    permutations whose coalitions fit in the budget whatever they are.

    Parameters
    ----------
    permutations
        R itself, at least two; the budget must cover it.
    """

    permutations: int | None = None

    unbiased: ClassVar[bool] = True
    axioms: ClassVar[frozenset[str]] = frozenset({"efficiency", "null player", "linearity"})
    stderr_means: ClassVar[str] = "standard deviation of the mean of independent permutations"

    def __post_init__(self) -> None:
        if self.permutations is not None and self.permutations < 2:
            raise InvalidInputError(
                f"the mean is over at least two permutations, not {self.permutations}"
            )

    def minimum_budget(self, n_players: int) -> int:
        """Return what two permutations cost, or what was asked for: one alone has no error."""
        return path_cost(n_players, self.permutations or 2)

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return mean and standard error of the marginal contributions."""
        n = game.n_players
        n_paths = self.permutations or affordable_paths(n, game.budget)
        if game.kernel is not None:
            return compiled_paths(game.kernel, n, n_paths, antithetic=False, seed=seed)
        orders = random_orders(n, n_paths, np.random.default_rng(seed))
        return Sampled(*mean_and_error(marginals(game, orders)), n_paths - 1)
