"""Shapley values as means over permutations and their reverses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

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


@ESTIMATORS.register("antithetic")
@dataclass(frozen=True)
class Antithetic(Estimator):
    r"""The mean over random permutations, each with its reverse [Mitchell2022]_.

    A player that comes early in :math:`\pi` comes late in the reverse, so in games with decreasing
    (or increasing) returns the two marginals err in opposite directions. It is exact on 2-additive
    games. In a voting game the two may be correlated positively, and plain permutations are better.
    """

    unbiased: ClassVar[bool] = True
    axioms: ClassVar[frozenset[str]] = frozenset({"efficiency", "null player", "linearity"})
    stderr_means: ClassVar[str] = "standard deviation of the mean of independent pairs"

    def minimum_budget(self, n_players: int) -> int:
        """Return what two pairs of permutations cost."""
        return path_cost(n_players, 4)

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return mean and standard error of the pairs' mean marginal contributions."""
        n = game.n_players
        n_pairs = affordable_paths(n, game.budget) // 2
        if game.kernel is not None:
            return compiled_paths(game.kernel, n, n_pairs, antithetic=True, seed=seed)
        orders = random_orders(n, n_pairs, np.random.default_rng(seed))
        both = np.stack([orders, orders[:, ::-1]], axis=1).reshape(2 * n_pairs, n)
        pairs = marginals(game, both).reshape(n_pairs, 2, n).mean(axis=1)
        return Sampled(*mean_and_error(pairs), n_pairs - 1)
