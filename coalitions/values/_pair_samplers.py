"""Ways to sample the interactions of all pairs at once; each returns means and their errors."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import BudgetError
from coalitions.game import BoolMatrix, FloatMatrix, FloatVector
from coalitions.one_thread import one_blas_thread
from coalitions.sampling.coins import fair_coalitions, least_squares
from coalitions.sampling.estimator import Sampled
from coalitions.sampling.evaluator import Evaluator

IntMatrix: TypeAlias = NDArray[np.int64]

FITTED_PLAYERS = 48
"""Up to this many players a model of degree two is fitted: 1177 coefficients."""


def n_coefficients(n_players: int) -> int:
    """Return the number of coefficients of a model of degree two."""
    return 1 + n_players * (n_players + 1) // 2


def chains_budget(n_players: int) -> int:
    """Return the fewest evaluations `chains` can work with."""
    return 2 * n_players * (2 * n_players - 2) + 2


def stratified(game: Evaluator, rng: np.random.Generator) -> Sampled:
    r"""Estimate Shapley interactions by size, with a model that takes most of the noise away.

    With means over the coalitions of size u that hold both players, one of them or none,

    .. math:: I_{ij} = \frac{1}{n-1} \sum_u \big[ \bar v_u(ij) - \bar v_u(i \bar j)
        - \bar v_u(\bar i j) + \bar v_u(\bar i \bar j) \big],

    every coalition counts for every pair (as in SVARM-IQ [Kolpaczki2024b]_). The means are
    taken of what a fitted model leaves over: a value for every size, every player and, if there
    are enough evaluations, every pair, whose own interactions are known. Small and large sizes
    are evaluated completely where they are few.
    """
    samples = _by_size(game.n_players, game.budget, rng)
    members = np.concatenate([sample.coalitions for sample in samples])
    return _by_strata(samples, members, game(members))


class SizeSample(NamedTuple):
    """Coalitions of one size, and whether they are all of them."""

    coalitions: BoolMatrix
    complete: bool


@one_blas_thread()
def _by_strata(samples: list[SizeSample], members: BoolMatrix, values: FloatVector) -> Sampled:
    """Return what the values of all samples together say of every pair."""
    n = members.shape[1]
    design = _model(members)
    # Sizes, players and pairs overlap (all three can say "two more"); any best fit will do.
    lengths, axes = np.linalg.eigh(design.T @ design)
    kept = lengths > 1e-10 * lengths[-1]
    fit = (axes[:, kept] / lengths[kept]) @ (axes[:, kept].T @ (design.T @ values))
    residual = values - design @ fit
    by_size, by_pair = fit[: n + 1], fit[2 * n + 1 :]
    mean = np.full((n, n), (by_size[2:] - 2 * by_size[1:-1] + by_size[:-2]).mean())
    if len(by_pair):
        i, j = np.triu_indices(n, 1)
        mean[i, j] += by_pair
        mean[j, i] += by_pair
    freedom = max(1, len(values) - int(kept.sum()))
    # The noise is that of values the model has not seen: residuals over the share that is free.
    unseen = (len(values) / freedom) ** 2
    variance = np.zeros((n, n))
    ends = np.cumsum([len(sample.coalitions) for sample in samples])
    for size, (sample, rest) in enumerate(zip(samples, np.split(residual, ends), strict=False)):
        inside, outside = sample.coalitions.astype(float), (~sample.coalitions).astype(float)
        both, both_share = _stratum(inside, inside, rest)
        one, one_share = _stratum(inside, outside, rest)
        none, none_share = _stratum(outside, outside, rest)
        mean += (both - one - one.T + none) / (n - 1)
        if not sample.complete:
            noise = unseen * float(rest @ rest) / len(rest)
            share = (size >= 2) * both_share + (size <= n - 2) * none_share
            variance += noise * (share + one_share + one_share.T) / (n - 1) ** 2
    return Sampled(mean, np.sqrt(variance), freedom)


def _by_size(n_players: int, budget: int, rng: np.random.Generator) -> list[SizeSample]:
    """Return coalitions of every size from 0 to n: all of them, or equally many of each.

    Sizes are completed from both ends inwards as long as an equal share of the budget pays for it.
    """
    left, sizes = budget, list(range(n_players + 1))
    samples: dict[int, SizeSample] = {}
    while sizes and comb(n_players, sizes[0]) <= left // len(sizes):
        for size in dict.fromkeys((sizes[0], sizes[-1])):
            rows = np.zeros((comb(n_players, size), n_players), np.bool_)
            listed = combinations(range(n_players), size)
            for row, coalition in zip(rows, listed, strict=True):
                row[list(coalition)] = True
            samples[size] = SizeSample(rows, True)
            sizes.remove(size)
            left -= len(rows)
    if left < 2 * len(sizes):
        raise BudgetError(f"stratified needs {2 * n_players} evaluations or more, not {budget}")
    for place, size in enumerate(sizes):
        count = left // len(sizes) + (place < left % len(sizes))
        rank = rng.permuted(np.tile(np.arange(n_players), (count, 1)), axis=1)
        samples[size] = SizeSample(rank < size, False)
    return [samples[size] for size in range(n_players + 1)]


def _model(members: BoolMatrix) -> FloatMatrix:
    """Return the columns of the model: sizes, players and, if there are rows enough, pairs."""
    m, n = members.shape
    centred = members - 0.5
    columns = [np.eye(n + 1)[members.sum(axis=1)], centred]
    if n <= FITTED_PLAYERS and m >= 2 * (n + n_coefficients(n)):
        i, j = np.triu_indices(n, 1)
        columns.append(centred[:, i] * centred[:, j])
    return np.column_stack(columns)


def _stratum(
    left: FloatMatrix, right: FloatMatrix, values: FloatVector
) -> tuple[FloatMatrix, FloatMatrix]:
    """Return the mean of the values where i is on the left and j on the right, and 1 / count.

    Where there are none the mean is 0: the model's word stands, with the doubt of one value.
    """
    count = np.maximum(left.T @ right, 1.0)
    return (left.T * values) @ right / count, 1 / count


def chains(game: Evaluator, rng: np.random.Generator) -> Sampled:
    """Estimate Shapley interactions from players who follow each other in random orders."""
    n = game.n_players
    # An order needs the prefixes of 1 … n − 1 players and the n − 1 prefixes of 2 … n players
    # without the last but one; ∅ and N are the same for all orders.
    n_rounds = (game.budget - 2) // (n * (2 * n - 2))
    if n_rounds < 2:
        raise BudgetError(
            f"chains need {chains_budget(n)} evaluations or more for {n} players, not {game.budget}"
        )
    order = _neighbourly_orders(n, n_rounds, rng)
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
    # The two draws of a pair in a round depend on each other, rounds do not: a round is one draw.
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


def maximum_sample_reuse(game: Evaluator, rng: np.random.Generator) -> Sampled:
    """Estimate Banzhaf interactions as mean products of signs and values."""
    if game.budget < 8:
        raise BudgetError(f"msr needs a budget of at least 8 evaluations, not {game.budget}")
    coalitions = fair_coalitions(game.budget, game.n_players, rng)
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


def regression(game: Evaluator, rng: np.random.Generator) -> Sampled:
    """Estimate Banzhaf interactions as coefficients of the best model of degree two."""
    n = game.n_players
    coalitions = fair_coalitions(game.budget, n, rng)
    values = game(coalitions)
    signs = np.where(coalitions, 1.0, -1.0)
    i, j = np.triu_indices(n, 1)
    design = np.column_stack([np.ones(len(values)), signs, signs[:, i] * signs[:, j]])
    coefficients, errors, freedom = least_squares(design, values)
    mean, stderr = np.zeros((n, n)), np.zeros((n, n))
    # A step from out (−1) to in (+1) of both players is four times the coefficient.
    mean[i, j] = mean[j, i] = 4 * coefficients[1 + n :]
    stderr[i, j] = stderr[j, i] = 4 * errors[1 + n :]
    return Sampled(mean, stderr, freedom)
