"""Shapley interactions from players who follow each other in random orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.game import IntMatrix
from coalitions.sampling.estimator import PAIR_ESTIMATORS, PairEstimator, Sampled
from coalitions.sampling.evaluator import Evaluator


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
