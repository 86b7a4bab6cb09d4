"""Permutation sampling that stops a path when it is close to the value of all players."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.sampling.estimator import ESTIMATORS, Estimator, Sampled
from coalitions.sampling.evaluator import Evaluator
from coalitions.sampling.paths import mean_and_error, path_cost, random_orders
from coalitions.sampling.truncation import truncated_paths


@ESTIMATORS.register("truncated")
@dataclass(frozen=True)
class Truncated(Estimator):
    r"""Truncated Monte Carlo [Ghorbani2019]_.

    A path ends at the first coalition with :math:`|v(N) - v(S)| \le \tau |v(N) - v(\emptyset)|`;
    the players after it get 0 on this path. What is saved buys more paths. It pays for games that
    saturate. Where no player ever does harm, the players after the cut lose at most the tolerance
    on each path; where some do, gains and losses that cancel are lost, and the bias is larger.

    Attributes
    ----------
    tolerance
        τ, as a share of v(N) − v(∅).
    """

    tolerance: float = 0.01

    unbiased: ClassVar[bool] = False
    axioms: ClassVar[frozenset[str]] = frozenset({"null player"})
    stderr_means: ClassVar[str] = (
        "standard deviation of the mean of the truncated paths; the bias of truncation comes on top"
    )

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < 1:
            raise InvalidInputError(f"the tolerance is {self.tolerance}; it must be in [0, 1)")

    def minimum_budget(self, n_players: int) -> int:
        """Return what two whole permutations cost."""
        return max(path_cost(n_players, 2), 2 * n_players)

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return mean and standard error of the truncated marginal contributions."""
        rng = np.random.default_rng(seed)
        empty, grand = game.ends
        samples = truncated_paths(
            game,
            lambda count: random_orders(game.n_players, count, rng),
            self.tolerance * abs(grand - empty),
        )
        return Sampled(*mean_and_error(samples), len(samples) - 1)
