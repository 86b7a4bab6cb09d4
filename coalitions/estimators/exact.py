"""Exact Shapley values: a closed form, or one pass over all 2^n values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.game import FloatVector, Kernel, closed_form_of, table_of
from coalitions.sampling.estimator import AXIOMS, ESTIMATORS, Estimator, Sampled
from coalitions.sampling.evaluator import Evaluator
from coalitions.sampling.weights import membership_weights
from coalitions.subset_sums import coalition_sizes, sums_with_player

NUMPY_PLAYERS = 12
"""Up to this many players NumPy folds the table in a tenth of a millisecond: no wait for numba."""


@ESTIMATORS.register("exact")
@dataclass(frozen=True)
class Exact(Estimator):
    r"""The Shapley values themselves.

    .. math:: \phi_i = \sum_{S \not\ni i} \frac{|S|!\,(n-1-|S|)!}{n!}
              \big[ v(S \cup \{i\}) - v(S) \big]

    Collecting the terms of each coalition gives, up to a constant that efficiency settles,
    :math:`\phi_i = \sum_{S \ni i} c_{|S|} v(S) + \text{const}` with
    :math:`c_s = \frac{n}{s (n-s)} \binom{n}{s}^{-1}`. These n sums take 2·2^n additions in one
    streaming pass: the sum over the half of the table that has the last player is that player's,
    and adding the two halves leaves the same problem with one player less.

    A game with a closed form is not evaluated at all.
    """

    unbiased: ClassVar[bool] = True
    axioms: ClassVar[frozenset[str]] = AXIOMS
    stderr_means: ClassVar[str] = "zero: the values are exact"

    def minimum_budget(self, n_players: int) -> int:
        """Return 2^n; the front door knows that closed forms and tables cost nothing."""
        return 1 << n_players

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the Shapley values; the seed plays no part."""
        del seed
        n = game.n_players
        zero = np.zeros(n)
        closed_form = closed_form_of(game.game)
        if closed_form is not None:
            return Sampled(np.asarray(closed_form(), np.float64), zero, evaluations=0)
        kernel = game.kernel
        table = table_of(game.game)
        with np.errstate(over="ignore", invalid="ignore"):  # the door refuses what is infinite
            if table is None and kernel is not None:
                values = exact_of_kernel(kernel, n)
            else:
                values = exact_of_table(game.table() if table is None else table)
        return Sampled(values, zero, evaluations=1 << n)


def exact_of_table(table: FloatVector) -> FloatVector:
    """Return the exact Shapley values of the game with these 2^n values.

    Examples
    --------
    >>> exact_of_table(np.array([0.0, 1.0, 2.0, 4.0]))
    array([1.5, 2.5])
    """
    table = np.ascontiguousarray(table, np.float64)
    n = len(table).bit_length() - 1
    weights = membership_weights(n)
    if n <= NUMPY_PLAYERS:
        sums = sums_with_player(weights[coalition_sizes(n)] * (table - table[0]))
    else:
        from coalitions.sampling.fold import membership_sums_of_table, weight_rows

        sums = membership_sums_of_table(table, n, weight_rows(n, weights))
    return _settled(sums, float(table[-1] - table[0]))


def exact_of_kernel(kernel: Kernel, n_players: int) -> FloatVector:
    """Return the exact Shapley values of a compiled game; nothing of size 2^n is stored."""
    from coalitions.sampling.fold import weight_rows
    from coalitions.sampling.kernels import compiled_add
    from coalitions.sampling.subset_loop import membership_sums_of_kernel

    sums = membership_sums_of_kernel(
        compiled_add(kernel),
        kernel.start,
        kernel.parameters,
        kernel.empty,
        n_players,
        weight_rows(n_players, membership_weights(n_players)),
    )
    return _settled(sums[:-1], sums[-1] - kernel.empty)


def _settled(sums: FloatVector, total: float) -> FloatVector:
    """Return the sums shifted by the one constant that makes them efficient."""
    values: FloatVector = sums - sums.mean() + total / len(sums)
    return values
