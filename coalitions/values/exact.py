"""Exact values: from a closed form, or from all 2^n values in O(2^n) or O(n 2^n) operations."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np

from coalitions.enumeration import coalition_sizes, sums_with_pair, sums_with_player
from coalitions.game import FloatMatrix, FloatVector, Kernel, closed_form_of, table_of
from coalitions.values.budget import Evaluator
from coalitions.values.estimator import (
    AXIOMS,
    ESTIMATORS,
    INTERACTION_ESTIMATORS,
    PAIR_ESTIMATORS,
    SEMIVALUE_ESTIMATORS,
    Estimator,
    InteractionEstimator,
    PairEstimator,
    Sampled,
    SemivalueEstimator,
)
from coalitions.values.interaction_indices import (
    Index,
    Parts,
    coalitions_of_size,
    concatenated,
    counting_sizes,
    gathered,
    weighted_sums,
)

# ----------------------------------------------------------------------------------------
# Shapley values


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


NUMPY_PLAYERS = 12
"""Up to this many players NumPy folds the table in a tenth of a millisecond: no wait for numba."""


@ESTIMATORS.register("exact")
@dataclass(frozen=True)
class ExactShapley(Estimator):
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
                values = shapley_of_kernel(kernel, n)
            else:
                values = shapley_of_table(game.table() if table is None else table)
        return Sampled(values, zero, evaluations=1 << n)


def shapley_of_table(table: FloatVector) -> FloatVector:
    """Return the exact Shapley values of the game with these 2^n values.

    Examples
    --------
    >>> shapley_of_table(np.array([0.0, 1.0, 2.0, 4.0]))
    array([1.5, 2.5])
    """
    table = np.ascontiguousarray(table, np.float64)
    n = len(table).bit_length() - 1
    weights = membership_weights(n)
    if n <= NUMPY_PLAYERS:
        sums = sums_with_player(weights[coalition_sizes(n)] * (table - table[0]))
    else:
        from coalitions.values._table_sums import membership_sums_of_table, weight_rows

        sums = membership_sums_of_table(table, n, weight_rows(n, weights))
    return _settled(sums, float(table[-1] - table[0]))


def shapley_of_kernel(kernel: Kernel, n_players: int) -> FloatVector:
    """Return the exact Shapley values of a compiled game; nothing of size 2^n is stored."""
    from coalitions.compiling import compiled_add
    from coalitions.values._kernel_sums import membership_sums_of_kernel
    from coalitions.values._table_sums import weight_rows

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


# ----------------------------------------------------------------------------------------
# Semivalues


@SEMIVALUE_ESTIMATORS.register("exact")
@dataclass(frozen=True, eq=False)
class ExactSemivalue(SemivalueEstimator):
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


# ----------------------------------------------------------------------------------------
# Interactions of all pairs


@PAIR_ESTIMATORS.register("exact")
@dataclass(frozen=True)
class ExactPairs(PairEstimator):
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


# ----------------------------------------------------------------------------------------
# Interaction indices of any order


@INTERACTION_ESTIMATORS.register("exact")
@dataclass(frozen=True)
class ExactInteractions(InteractionEstimator):
    """The index itself: all 2^n coalitions, or those of the sizes that count."""

    def minimum_budget(self, n_players: int) -> int:
        """Return the number of coalitions that the index depends on."""
        return sum(comb(n_players, size) for size in counting_sizes(self.index, n_players))

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the indices; the seed plays no part."""
        del seed
        n, index = game.n_players, self.index
        sizes = counting_sizes(index, n)
        if len(sizes) > n or table_of(game.game) is not None:
            values = concatenated(indices_of_table(game.table(), index))
            return Sampled(values, np.zeros(len(values)), evaluations=1 << n)
        rows = np.zeros((self.minimum_budget(n), n), np.bool_)
        first = 0
        for size in sizes:
            members = coalitions_of_size(n, size)
            np.put_along_axis(rows[first : first + len(members)], members, True, axis=1)
            first += len(members)
        worth = game(rows)
        masses = index.masses(n)
        parts = {
            s: weighted_sums(masses[s], coalitions_of_size(n, s), rows, worth)
            for s in index.sizes()
        }
        values = concatenated(parts)
        return Sampled(values, np.zeros(len(values)))


def indices_of_table(table: FloatVector, index: Index) -> Parts:
    """Return the index of all coalitions up to the order from the 2^n values.

    Each point of the measures takes n 2^n operations, and there are about n/2 of them, or one.
    """
    n = len(table).bit_length() - 1
    places = {size: (1 << coalitions_of_size(n, size)).sum(axis=1) for size in index.sizes()}
    plain = {size: np.zeros(len(places[size])) for size in index.sizes()}
    weights: dict[float, dict[int, float]] = {}
    for size in index.sizes():
        for point, weight in zip(*index.measure(size, n), strict=True):
            weights.setdefault(float(point), {})[size] = float(weight)
    values = table - table[0]  # a constant cancels; rounding is relative to what remains
    for point, by_size in weights.items():
        expected = expected_contributions(values, point)
        for size, weight in by_size.items():
            plain[size] += weight * expected[places[size]]
    if 0 in plain:
        plain[0] += table[0]
    return gathered(index, plain, n)


def expected_contributions(table: FloatVector, p: float) -> FloatVector:
    """Return the expected joint contribution of every S if others join with probability p.

    It is a product transform: each player replaces the two halves (a, b) of the table by
    ((1 − p) a + p b, b − a).
    """
    result = table.copy()
    half = 1
    while half < len(table):
        blocks = result.reshape(-1, 2, half)
        difference = blocks[:, 1] - blocks[:, 0]
        blocks[:, 0] += p * difference
        blocks[:, 1] = difference
        half *= 2
    return result
