"""Semivalues from stars: a coalition and all that differ from it by one player."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coalitions.game import FloatVector, IntVector
from coalitions.sampling.estimator import SEMIVALUE_ESTIMATORS, Sampled, SemivalueEstimator
from coalitions.sampling.evaluator import Evaluator


@SEMIVALUE_ESTIMATORS.register("star")
@dataclass(frozen=True, eq=False)
class Star(SemivalueEstimator):
    """Means over stars of coalitions.

    Draw a size and a coalition, and evaluate it together with all coalitions that have one player
    more (or one less, if those are more): a star gives as many marginals as it has rays, for one
    evaluation each. Sizes are drawn in proportion to q_k over the share of players a star of that
    size tells about, so that for each player those that do follow q. Sizes are spread evenly over
    the draws, and the mean is taken over as many stars as tell about the player, so the bias is of
    the order of 1 / budget.
    """

    def minimum_budget(self, n_players: int) -> int:
        """Return what four of the dearest stars cost, which is enough for a standard error."""
        k = np.flatnonzero(self.sizes)
        return 4 * (1 + int(np.maximum(n_players - k, k + 1).max()))

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return mean and standard error of the marginals of each player."""
        n = game.n_players
        k = np.arange(n)
        upward = n - k >= k + 1
        rays = np.maximum(n - k, k + 1)
        chance = self.sizes / rays
        chance = chance / chance.sum()
        n_stars = _affordable(chance, rays + 1, game.budget)
        rng = np.random.default_rng(seed)
        drawn = _systematic(chance, n_stars, float(rng.random()))
        rank = rng.permuted(np.tile(np.arange(n), (n_stars, 1)), axis=1)
        # A star tells about half of the players or more: two of opposite ranks, about everybody.
        rank[1::2] = n - 1 - rank[: n_stars - 1 : 2]
        told = rank < rays[drawn][:, None]
        # The centre is everybody else and gains a player, or is those told about and loses one.
        centres = told ^ upward[drawn][:, None]
        star, player = np.nonzero(told)
        ends = centres[star]
        ends[np.arange(len(star)), player] ^= True
        values = game(np.concatenate([centres, ends]))
        sign = np.where(upward[drawn], 1.0, -1.0)
        marginals = sign[star] * (values[n_stars:] - values[:n_stars][star])
        count = np.bincount(player, minlength=n)
        mean = np.bincount(player, marginals, n) / count
        squares = np.bincount(player, (marginals - mean[player]) ** 2, n)
        stderr = np.sqrt(squares / (count - 1) / count)
        return Sampled(mean, stderr, float(count.min() - 1))


def _affordable(chance: FloatVector, cost: IntVector, budget: int) -> int:
    """Return the largest number of systematic draws that never costs more than the budget."""

    def dearest(n_draws: int) -> int:
        ends = np.cumsum(chance) * n_draws
        offsets = np.concatenate([[0.0], ends % 1, np.nextafter(ends % 1, 1)])
        offsets = offsets[offsets < 1]
        return max(int(cost[_systematic(chance, n_draws, u)].sum()) for u in offsets.tolist())

    dearest_star = int(cost[chance > 0].max())
    affordable = step = budget // dearest_star
    while step:
        if dearest(affordable + step) <= budget:
            affordable += step
        else:
            step //= 2
    return affordable


def _systematic(chance: FloatVector, n_draws: int, offset: float) -> IntVector:
    """Return sorted draws at equal distances: each value comes up its expected number ± 1 times."""
    points = (np.arange(n_draws) + offset) / n_draws
    ends = np.cumsum(chance)
    ends[-1] = np.inf
    return np.searchsorted(ends, points, side="right")
