"""GTG-Shapley: guided and truncated paths, for the rounds of federated learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.sampling.estimator import ESTIMATORS, Estimator, Sampled
from coalitions.sampling.evaluator import Evaluator
from coalitions.sampling.paths import mean_and_error, path_cost, random_orders
from coalitions.sampling.truncation import truncated_paths


@ESTIMATORS.register("gtg")
@dataclass(frozen=True)
class GuidedTruncation(Estimator):
    r"""Guided truncation, as in GTG-Shapley [LiuZ2022]_, for any game.

    Between rounds: if :math:`|v(N) - v(\emptyset)|` is at most `between_rounds`, this round has
    changed nothing worth sharing, and all get 0 after two evaluations. Within a round: a path ends
    at the first coalition with :math:`|v(N) - v(S)|` at most `within_round`. Guided: each player
    in turn comes first, so that first places, where marginals are largest, are shared out evenly.

    Attributes
    ----------
    between_rounds, within_round
        Thresholds in units of the game's values (the paper's are for accuracies). So the values of
        a game times c are not c times its values, unless the thresholds are multiplied by c, too.
    """

    between_rounds: float = 0.001
    within_round: float = 0.001

    unbiased: ClassVar[bool] = False
    axioms: ClassVar[frozenset[str]] = frozenset({"null player"})
    stderr_means: ClassVar[str] = (
        "standard deviation of the mean of the paths as if they were independent; the bias of"
        " truncation comes on top"
    )

    def __post_init__(self) -> None:
        if not (self.between_rounds >= 0 and self.within_round >= 0):
            raise InvalidInputError("between_rounds and within_round must not be negative")

    def minimum_budget(self, n_players: int) -> int:
        """Return what two whole permutations cost."""
        return max(path_cost(n_players, 2), 2 * n_players)

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return mean and standard error of the truncated marginal contributions."""
        n = game.n_players
        empty, grand = game.ends
        if abs(grand - empty) <= game.in_units(self.between_rounds):
            return Sampled(np.zeros(n), np.zeros(n))
        tolerance = game.in_units(self.within_round)
        samples = truncated_paths(game, _GuidedOrders(n, seed), tolerance)
        return Sampled(*mean_and_error(samples), len(samples) - 1)


class _GuidedOrders:
    """Random orders in which the players take turns at the first place."""

    def __init__(self, n_players: int, seed: int) -> None:
        self._n = n_players
        self._rng = np.random.default_rng(seed)
        self._drawn = 0

    def __call__(self, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        orders = random_orders(self._n, count, self._rng)
        first = (self._drawn + np.arange(count)) % self._n
        self._drawn += count
        # Swapping keeps the rest uniform: it is a random order of the others.
        place = np.argmax(orders == first[:, None], axis=1)
        rows = np.arange(count)
        orders[rows, place] = orders[:, 0]
        orders[:, 0] = first
        return orders
