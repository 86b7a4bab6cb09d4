"""Semivalues from a closed form, or from all 2^n values."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from coalitions.game import FloatVector, closed_form_of
from coalitions.sampling.estimator import SEMIVALUE_ESTIMATORS, Sampled, SemivalueEstimator
from coalitions.sampling.evaluator import Evaluator
from coalitions.subset_sums import coalition_sizes, sums_with_player


@SEMIVALUE_ESTIMATORS.register("exact")
@dataclass(frozen=True, eq=False)
class Exact(SemivalueEstimator):
    """The semivalue itself: all 2^n coalitions, unless the game knows it."""

    def minimum_budget(self, n_players: int) -> int:
        """Return 2^n; the door knows that closed forms and tables cost nothing."""
        return 1 << n_players

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the values; the seed plays no part."""
        del seed
        n = game.n_players
        closed_form = closed_form_of(game.game, "semivalues")
        if closed_form is not None:
            return Sampled(closed_form(self.sizes), np.zeros(n), evaluations=0)
        values = semivalue_of_table(game.table(), self.sizes)
        return Sampled(values, np.zeros(n), evaluations=1 << n)


def semivalue_of_table(table: FloatVector, sizes: FloatVector) -> FloatVector:
    r"""Return the semivalue of a game given by its 2^n values, in O(2^n) operations.

    With :math:`p_k = q_k / \binom{n-1}{k}`, a coalition with i counts :math:`p_{|T|-1}` and one
    without :math:`-p_{|T|}`, so

    .. math:: \phi_i = \sum_{T \ni i} (p_{|T|-1} + p_{|T|})\, v(T) - \sum_T p_{|T|}\, v(T).
    """
    n = len(sizes)
    p = np.array([q / comb(n - 1, k) for k, q in enumerate(sizes)])
    without, inside = np.append(p, 0.0), np.append(0.0, p)
    of = coalition_sizes(n)
    values = table - table[0]  # a constant cancels; rounding is relative to what remains
    constant = float((without[of] * values).sum())
    return sums_with_player((without + inside)[of] * values) - constant
