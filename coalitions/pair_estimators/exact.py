"""Interactions of all pairs from a closed form, or from all 2^n values."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np

from coalitions.game import FloatMatrix, FloatVector, closed_form_of
from coalitions.sampling.estimator import PAIR_ESTIMATORS, PairEstimator, Sampled
from coalitions.sampling.evaluator import Evaluator
from coalitions.subset_sums import coalition_sizes, sums_with_pair, sums_with_player


@PAIR_ESTIMATORS.register("exact")
@dataclass(frozen=True)
class Exact(PairEstimator):
    """The interactions themselves: all 2^n coalitions, unless the game knows them."""

    indices: ClassVar[frozenset[str]] = frozenset({"shapley", "banzhaf"})

    def minimum_budget(self, n_players: int) -> int:
        """Return 2^n; the door knows that closed forms and tables cost nothing."""
        return 1 << n_players

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the interactions; the seed plays no part."""
        del seed
        n = game.n_players
        zero = np.zeros((n, n))
        closed_form = closed_form_of(game.game, "pair_interactions")
        if closed_form is not None:
            return Sampled(closed_form(self.index), zero, evaluations=0)
        return Sampled(pairs_of_table(game.table(), self.index), zero, evaluations=1 << n)


def pairs_of_table(table: FloatVector, index: str) -> FloatMatrix:
    r"""Return the interactions of all pairs from the 2^n values, in O(2^n) operations.

    With weight :math:`w_t` of a T of t players, a coalition U of u players counts
    :math:`w_{u-2}` with both players, :math:`-w_{u-1}` with one and :math:`w_u` with none, so

    .. math:: I_{ij} = \sum_{U \supseteq ij} (w_{u-2} + 2 w_{u-1} + w_u) v(U)
        - \Big(\sum_{U \ni i} + \sum_{U \ni j}\Big) (w_{u-1} + w_u) v(U) + \sum_U w_u v(U).
    """
    n = len(table).bit_length() - 1
    if n < 2:
        return np.zeros((n, n))
    if index == "banzhaf":
        w = np.full(n - 1, 0.5 ** (n - 2))
    else:
        w = np.array([1 / ((n - 1) * comb(n - 2, t)) for t in range(n - 1)])
    none, one, both = np.append(w, [0, 0]), np.array([0, *w, 0]), np.append([0, 0], w)
    sizes = coalition_sizes(n)
    values = table - table[0]
    single = sums_with_player((one + none)[sizes] * values)
    pairs = sums_with_pair((both + 2 * one + none)[sizes] * values)
    result: FloatMatrix = pairs - single[:, None] - single[None, :] + (none[sizes] * values).sum()
    np.fill_diagonal(result, 0.0)
    return result
