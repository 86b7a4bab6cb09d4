"""Means over random permutations: plain, antithetic, truncated, guided; and chains for pairs.

In a random order each player's marginal contribution has the Shapley value as its mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import BoolMatrix, FloatMatrix, FloatVector, IntMatrix, IntVector, Kernel
from coalitions.values.budget import ORDINARY, Evaluator, exponent_of
from coalitions.values.designs import CELLS_PER_CALL, mean_and_error
from coalitions.values.estimator import (
    ESTIMATORS,
    PAIR_ESTIMATORS,
    Estimator,
    PairEstimator,
    Sampled,
)

# ----------------------------------------------------------------------------------------
# Random orders, what they cost, and the marginal contributions along them


def path_cost(n_players: int, n_paths: int) -> int:
    r"""Return the most distinct coalitions on `n_paths` paths, both ends included.

    A path has one coalition of each size, and there are only so many of a size:
    :math:`2 + \sum_{s=1}^{n-1} \min(R, \binom{n}{s})`.
    """
    sizes = range(1, n_players // 2 + 1)
    counts = (min(n_paths, comb(n_players, s)) * (1 if 2 * s == n_players else 2) for s in sizes)
    return 2 + sum(counts)


def affordable_paths(n_players: int, budget: int) -> int:
    """Return the most paths whose coalitions cannot exceed the budget.

    The number depends on the budget only, never on the paths drawn: a random number of paths
    would bias their mean. If all coalitions are affordable it is the budget itself.
    """
    if path_cost(n_players, budget) <= budget:
        return budget
    low, high = 0, budget  # path_cost(low) <= budget < path_cost(high)
    while high - low > 1:
        middle = (low + high) // 2
        if path_cost(n_players, middle) <= budget:
            low = middle
        else:
            high = middle
    return low


def random_orders(
    n_players: int, n_orders: int, rng: np.random.Generator
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return random permutations [m, n]; the first ones do not depend on how many are drawn."""
    return rng.permuted(np.tile(np.arange(n_players), (n_orders, 1)), axis=1)


def prefixes(orders: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> BoolMatrix:
    """Return the coalitions of the first 1, …, n−1 players of each order, [m·(n−1), n]."""
    m, n = orders.shape
    rank = np.argsort(orders, axis=1)
    inside = rank[:, None, :] < np.arange(1, n)[None, :, None]
    return inside.reshape(m * (n - 1), n)


def marginals(
    game: Evaluator, orders: np.ndarray[tuple[int, int], np.dtype[np.int64]]
) -> FloatMatrix:
    """Return each player's marginal contribution [m, n] along each order."""
    empty, grand = game.ends
    n = game.n_players
    result = np.empty(orders.shape)
    for part in _chunks(len(orders), n):
        values = game(prefixes(orders[part])).reshape(-1, n - 1)
        steps = np.diff(values, axis=1, prepend=empty, append=grand)
        np.put_along_axis(result[part], orders[part], steps, axis=1)
    return result


def compiled_paths(
    kernel: Kernel, n_players: int, n_units: int, *, antithetic: bool, seed: int
) -> Sampled:
    """Return mean and standard error over random paths of a compiled game.

    A unit is one path or, if `antithetic`, a path and its reverse; there are at least two. Where
    values are so large or small that their squares are not floats, the same paths are walked again
    in other units.
    """
    from coalitions.compiling import compiled_add
    from coalitions.values.estimators._path_loop import path_moments

    word = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]

    def moments(exponent: int) -> tuple[FloatVector, FloatVector, int]:
        mean, squares, distinct = path_moments(
            compiled_add(kernel),
            kernel.start,
            kernel.parameters,
            kernel.empty,
            n_players,
            n_units,
            antithetic,
            word >> np.uint64(1),
            float(np.ldexp(1.0, -exponent)),
        )
        return mean, np.sqrt(squares / (n_units - 1) / n_units), distinct

    mean, error, distinct = moments(0)
    exponent = exponent_of(float(np.abs(mean).max()))
    if abs(exponent) > ORDINARY and mean.any():
        mean, error, distinct = moments(exponent)
        mean, error = np.ldexp((mean, error), exponent)
    return Sampled(mean, error, n_units - 1, distinct)


def _chunks(n_orders: int, n_players: int) -> Iterator[slice]:
    size = max(1, CELLS_PER_CALL // (n_players * n_players))
    for start in range(0, n_orders, size):
        yield slice(start, min(n_orders, start + size))


# ----------------------------------------------------------------------------------------
# Whole permutations, alone or with their reverses


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


# ----------------------------------------------------------------------------------------
# Permutations that end once the remaining players can hardly change anything

Orders = Callable[[int], "np.ndarray[tuple[int, int], np.dtype[np.int64]]"]
"""Draws that many orders, continuing where the last call stopped."""


def truncated_marginals(
    game: Evaluator, orders: np.ndarray[tuple[int, int], np.dtype[np.int64]], tolerance: float
) -> FloatMatrix:
    """Return the marginals [m, n] along the orders, each cut off within `tolerance` of v(N).

    All paths advance together, one player at a time, so a batch holds one coalition of each path
    that is still going. Players after the cut get 0.
    """
    empty, grand = game.ends
    m, n = orders.shape
    result = np.zeros((m, n))
    members = np.zeros((m, n), np.bool_)
    previous = np.full(m, empty)
    active: IntVector = np.arange(m)
    for position in range(n):
        active = active[np.abs(grand - previous[active]) > tolerance]
        if not len(active):
            break
        player = orders[active, position]
        members[active, player] = True
        last = position == n - 1
        values = np.full(len(active), grand) if last else game(members[active])
        result[active, player] = values - previous[active]
        previous[active] = values
    return result


def truncated_paths(game: Evaluator, draw: Orders, tolerance: float) -> FloatMatrix:
    """Return the marginals along as many paths as the budget allows, [R, n].

    How much a path costs shows only when it is walked. So the paths come in rounds: each round
    takes what could be paid for if no path were cut off, and what it saved pays for the next.
    """
    n = game.n_players
    _ = game.ends
    parts: list[FloatMatrix] = []
    n_paths = 0
    largest = max(1, CELLS_PER_CALL // n)
    while n_paths < game.budget:
        affordable = min(game.left // (n - 1), game.budget - n_paths, largest)
        if affordable < 1:
            break
        parts.append(truncated_marginals(game, draw(affordable), tolerance))
        n_paths += affordable
    return np.concatenate(parts)


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


# ----------------------------------------------------------------------------------------
# Shapley interactions of players who follow each other in a random order


@PAIR_ESTIMATORS.register("chains")
@dataclass(frozen=True)
class Chains(PairEstimator):
    """Joint contributions of neighbours in random orders of the players.

    Two that follow each other meet a T of uniform size, so each order gives n − 1 joint
    contributions for 2 n − 2 evaluations. Unbiased. Orders come in rounds of n in which every pair
    meets twice; the standard errors are those of the means over rounds.
    """

    indices: ClassVar[frozenset[str]] = frozenset({"shapley"})

    def minimum_budget(self, n_players: int) -> int:
        """Return what two rounds cost: one alone has no error."""
        return 2 * n_players * (2 * n_players - 2) + 2

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the means over rounds, and their standard errors."""
        n = game.n_players
        # An order needs the prefixes of 1 … n − 1 players and the n − 1 prefixes of 2 … n players
        # without the last but one; ∅ and N are the same for all orders.
        n_rounds = (game.budget - 2) // (n * (2 * n - 2))
        order = _neighbourly_orders(n, n_rounds, np.random.default_rng(seed))
        n_orders = len(order)
        rank = np.argsort(order, axis=1)
        prefixes = rank[:, None, :] < np.arange(n + 1)[:, None]  # [orders, n + 1, n]
        skipping = prefixes[:, 2:].copy()
        skipping[np.arange(n_orders)[:, None], np.arange(n - 1), order[:, :-1]] = False
        values = game(np.concatenate([prefixes.reshape(-1, n), skipping.reshape(-1, n)]))
        along = values[: n_orders * (n + 1)].reshape(n_orders, n + 1)
        beside = values[n_orders * (n + 1) :].reshape(n_orders, n - 1)
        joint = (along[:, 2:] - along[:, 1:-1] - beside + along[:, :-2]).reshape(n_rounds, -1)
        i = order[:, :-1].reshape(n_rounds, -1)
        j = order[:, 1:].reshape(n_rounds, -1)
        # The two draws of a pair in a round depend on each other, rounds do not: each is one draw.
        draws = np.zeros((n_rounds, n, n))
        each = np.broadcast_to(np.arange(n_rounds)[:, None], i.shape)
        np.add.at(draws, (each, i, j), joint / 2)
        draws += draws.transpose(0, 2, 1)
        stderr = draws.std(axis=0, ddof=1) / np.sqrt(n_rounds)
        return Sampled(draws.mean(axis=0), stderr, n_rounds - 1)


def _neighbourly_orders(n_players: int, n_rounds: int, rng: np.random.Generator) -> IntMatrix:
    """Return rounds of n random orders in which every pair stands side by side exactly twice.

    The zigzag 0, n−1, 1, n−2, … and its n rotations modulo n have that property (a construction
    of Walecki); renaming the players at random makes every single order uniform.
    """
    zigzag = np.empty(n_players, np.int64)
    zigzag[::2] = np.arange((n_players + 1) // 2)
    zigzag[1::2] = np.arange(n_players - 1, (n_players - 1) // 2, -1)
    rotations = (zigzag + np.arange(n_players)[:, None]) % n_players
    names = rng.permuted(np.tile(np.arange(n_players), (n_rounds, 1)), axis=1)
    return names[:, rotations].reshape(-1, n_players)
