"""The numbers by which Shapley values weigh coalitions of each size."""

from __future__ import annotations

from math import comb

import numpy as np

from coalitions.game import FloatVector


def membership_weights(n_players: int) -> FloatVector:
    r"""Return :math:`c_s`, s = 0 … n, of :math:`\phi_i = \sum_{S \ni i} c_{|S|} v(S) + const`.

    A coalition of size s weighs (s−1)!(n−s)!/n! for its members and −s!(n−s−1)!/n! for the
    others; the difference of the two is :math:`c_s = \frac{n}{s(n-s)} \binom{n}{s}^{-1}`. The
    grand coalition has no others: :math:`c_n = 1/n`. The empty one's value is subtracted
    beforehand, so :math:`c_0` is 0.
    """
    weights = np.zeros(n_players + 1)
    for s in range(1, n_players):
        weights[s] = n_players / (s * (n_players - s)) / comb(n_players, s)
    weights[n_players] = 1 / n_players
    return weights
