"""Means over random coalitions: Owen's integral, group testing, maximum sample reuse, stars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import FloatMatrix, FloatVector, IntVector
from coalitions.runtime import one_blas_thread
from coalitions.values.budget import Evaluator
from coalitions.values.designs import BLOCK, CELLS_PER_CALL, fair_coalitions, mean_and_error
from coalitions.values.estimator import (
    ESTIMATORS,
    PAIR_ESTIMATORS,
    SEMIVALUE_ESTIMATORS,
    Estimator,
    PairEstimator,
    Sampled,
    SemivalueEstimator,
)

# ----------------------------------------------------------------------------------------
# Shapley values as integrals of the multilinear extension


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


# ----------------------------------------------------------------------------------------
# Shapley values by group testing


@ESTIMATORS.register("group-testing")
@dataclass(frozen=True)
class GroupTesting(Estimator):
    r"""Group testing [Jia2019]_.

    A group of k players is drawn with probability :math:`q(k) = Z^{-1} (1/k + 1/(n-k))`, uniform
    among the groups of its size. Then :math:`\phi_i - \phi_j = Z\,E[v(S)(\beta_i - \beta_j)]` with
    β = 1 for members. Of all values that add up to v(N) − v(∅), those that fit all differences
    best in the sense of least squares are

    .. math:: \hat\phi_i = \frac{v(N) - v(\emptyset)}{n} + \frac{Z}{T} \sum_{t=1}^T
              (v(S_t) - \bar v)(\beta_{ti} - k_t / n)

    (the paper asks for any feasible values). A constant changes nothing in expectation, so v̄, the
    mean of v(∅) and v(N), is subtracted to keep the variance small.
    """

    unbiased: ClassVar[bool] = True
    axioms: ClassVar[frozenset[str]] = frozenset({"efficiency", "linearity"})
    stderr_means: ClassVar[str] = "standard deviation of the mean of independent groups"

    def minimum_budget(self, n_players: int) -> int:
        """Return both ends and two groups."""
        del n_players
        return 4

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the least-squares solution and its standard errors."""
        n = game.n_players
        empty, grand = game.ends
        n_groups = game.budget - 2
        rng = np.random.default_rng(seed)
        sizes = np.arange(1, n)
        chances = 1 / sizes + 1 / (n - sizes)
        normaliser = chances.sum()
        rows = np.empty((n_groups, n), np.bool_)
        for start in range(0, n_groups, BLOCK):
            size = rng.choice(sizes, BLOCK, p=chances / normaliser)
            rank = rng.random((BLOCK, n)).argsort(axis=1).argsort(axis=1)
            part = rows[start : start + BLOCK]
            part[:] = (rank < size[:, None])[: len(part)]
        centred = game(rows) - (empty + grand) / 2
        terms = normaliser * centred[:, None] * (rows - rows.mean(axis=1, keepdims=True))
        mean, error = mean_and_error(terms)
        return Sampled(mean + (grand - empty) / n, error, n_groups - 1)


# ----------------------------------------------------------------------------------------
# Banzhaf values and interactions by maximum sample reuse


@SEMIVALUE_ESTIMATORS.register("msr")
@dataclass(frozen=True, eq=False)
class BanzhafSampleReuse(SemivalueEstimator):
    """The mean value of sampled coalitions with the player minus the mean without [WangJ2023]_.

    Every sample counts for every player. The samples are balanced: each player is in exactly half
    of them.
    """

    banzhaf_only: ClassVar[bool] = True

    def minimum_budget(self, n_players: int) -> int:
        """Return two coalitions with each player and two without."""
        return 4

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return differences of means, and their standard errors."""
        half = game.budget // 2
        coalitions = fair_coalitions(game.budget, game.n_players, np.random.default_rng(seed))
        values = game(coalitions)
        centred = values - values.mean()
        squares = centred**2
        with one_blas_thread():
            inside = centred @ coalitions / half
            outside = centred @ ~coalitions / half
            spread = (squares @ coalitions + squares @ ~coalitions) / half - inside**2 - outside**2
        # Both halves have sample variances with half − 1 in the denominator.
        stderr = np.sqrt(np.maximum(0.0, spread) / (half - 1))
        return Sampled(inside - outside, stderr, 2.0 * (half - 1))


@PAIR_ESTIMATORS.register("msr")
@dataclass(frozen=True)
class PairSampleReuse(PairEstimator):
    r"""The mean over sampled coalitions of :math:`4 ε_i ε_j v(S)`, with ε = ±1 for in and out.

    Unbiased but for the mean value, which is subtracted first.
    """

    indices: ClassVar[frozenset[str]] = frozenset({"banzhaf"})

    def minimum_budget(self, n_players: int) -> int:
        """Return eight coalitions, so that there is a spread."""
        return 8

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return mean products of signs and values, and their standard errors."""
        coalitions = fair_coalitions(game.budget, game.n_players, np.random.default_rng(seed))
        values = game(coalitions)
        centred = values - values.mean()
        signs = np.where(coalitions, 1.0, -1.0)
        m = len(values)
        with one_blas_thread():
            mean = 4 * (signs.T * centred) @ signs / m
        # (4 ε_i ε_j v)² does not depend on the pair: only the mean that is subtracted does.
        square = 16 * float((centred**2).sum()) / m
        stderr = np.sqrt(np.maximum(0.0, square - mean**2) / (m - 1))
        return Sampled(mean, stderr, m - 1)


# ----------------------------------------------------------------------------------------
# Any semivalue from stars: a coalition and all that differ from it by one player


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
        on_ray = rank < rays[drawn][:, None]
        # The centre is everybody else, and gains a player; or the players on rays, and loses one.
        centres = on_ray ^ upward[drawn][:, None]
        star, player = np.nonzero(on_ray)
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
