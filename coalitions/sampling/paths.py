"""Random orders in which the players join, and the marginal contributions along them."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np

from coalitions.game import BoolMatrix, FloatMatrix, FloatVector, Kernel
from coalitions.sampling.estimator import Sampled
from coalitions.sampling.evaluator import ORDINARY, Evaluator, exponent_of

CELLS_PER_CALL = 1 << 26
"""Paths are evaluated together until their coalitions fill this many cells (64 MiB)."""


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


def mean_and_error(samples: FloatMatrix) -> tuple[FloatVector, FloatVector]:
    """Return the mean of the rows and its standard error; the rows are independent."""
    mean = samples.mean(axis=0)
    return mean, samples.std(axis=0, ddof=1) / np.sqrt(len(samples))


def compiled_paths(
    kernel: Kernel, n_players: int, n_units: int, *, antithetic: bool, seed: int
) -> Sampled:
    """Return mean and standard error over random paths of a compiled game.

    A unit is one path or, if `antithetic`, a path and its reverse; there are at least two. Where
    values are so large or small that their squares are not floats, the same paths are walked again
    in other units.
    """
    from coalitions.sampling.kernels import compiled_add
    from coalitions.sampling.path_loop import path_moments

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
