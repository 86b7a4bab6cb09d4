"""Values by least squares: KernelSHAP, LeverageSHAP, Banzhaf values and interactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.errors import BudgetError
from coalitions.game import BoolMatrix, FloatMatrix, FloatVector
from coalitions.runtime import one_blas_thread
from coalitions.values.budget import Evaluator
from coalitions.values.designs import (
    BLOCK,
    fair_coalitions,
    n_coefficients,
    n_subsets,
    random_pairs,
)
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
# Shapley values: an additive game is fitted to pairs of complements


class RegressionEstimator(Estimator):
    """What estimators share that fit an additive game to pairs of complements."""

    unbiased: ClassVar[bool] = False
    axioms: ClassVar[frozenset[str]] = frozenset({"efficiency", "linearity"})
    stderr_means: ClassVar[str] = "sandwich estimate of least squares, right for large budgets"

    def minimum_budget(self, n_players: int) -> int:
        """Return both ends and n pairs, or all coalitions if that is less."""
        return min(2 + 2 * n_players, 1 << n_players)


@one_blas_thread()
def additive_fit(
    rows: BoolMatrix, odd: FloatVector, weights: FloatVector, total: float, spread: FloatVector
) -> tuple[FloatVector, FloatVector]:
    r"""Return the values that fit pairs of complements best, and their standard errors.

    The additive game of values φ has the odd part ½ z·φ, z = ±1. So with u = ½[v(S) − v(N∖S)]

    .. math:: \hat\phi = \arg\min_{\sum_i \phi_i = v(N) - v(\emptyset)}
              \sum_k w_k \big( u_k - \tfrac12 z_k \cdot \phi \big)^2 .

    The errors are the sandwich estimate: what each pair adds to the answer, squared and summed.

    Parameters
    ----------
    rows
        One coalition of each pair, [m, n].
    odd
        u of each pair.
    weights
        Weight of each pair.
    total
        v(N) − v(∅).
    spread
        Variance of how often a pair is in the sample, relative to independent draws: 1 for these,
        0 for a pair that is always there.
    """
    m, n = rows.shape
    signs = np.where(rows, 0.5, -0.5)
    middle = signs.mean(axis=1)
    target = odd - middle * total
    design = signs - middle[:, None]
    scaled = design * weights[:, None]
    # Singular by construction (rows sum to 0), and further if there are few pairs: the smallest
    # deviation from equal shares is taken.
    inverse = np.linalg.pinv(scaled.T @ design, rcond=1e-10, hermitian=True)
    deviation = inverse @ (scaled.T @ target)
    residual = target - design @ deviation
    influence = (scaled * residual[:, None]) @ inverse
    # n−1 directions are fitted; the residuals are that much too small.
    inflation = m / max(1, m - (n - 1))
    variance = inflation * (spread[:, None] * influence**2).sum(axis=0)
    return deviation + total / n, np.sqrt(variance)


DRAWS_PER_PAIR = 20
"""Most draws for each distinct pair: a small game has few pairs and would be drawn for ever."""


@ESTIMATORS.register("kernel")
@dataclass(frozen=True)
class KernelShap(RegressionEstimator):
    r"""KernelSHAP with paired sampling [Lundberg2017]_ [Covert2021]_.

    Coalitions are drawn independently with probability
    :math:`p(S) \propto \big[ \binom{n}{|S|} |S| (n-|S|) \big]^{-1}`, each with its complement; the
    values are the additive game that fits them best and is efficient. A pair drawn again costs
    nothing and counts again.
    """

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the constrained least-squares fit and its standard errors."""
        n = game.n_players
        empty, grand = game.ends
        rows, counts = _drawn_pairs(n, (game.budget - 2) // 2, seed)
        values = game(np.concatenate([rows, ~rows])).reshape(2, -1)
        odd = (values[0] - values[1]) / 2
        # A pair drawn c times is c independent draws: its squared share in the sum is c, not c².
        fit = additive_fit(rows, odd, counts, grand - empty, 1 / counts)
        return Sampled(*fit, max(1, int(counts.sum()) - n))


def _drawn_pairs(n: int, n_pairs: int, seed: int) -> tuple[BoolMatrix, FloatVector]:
    """Return distinct pairs in the order of their first draw, and how often each was drawn."""
    rng = np.random.default_rng(seed)
    sizes = np.arange(1, n)
    chances = 1 / (sizes * (n - sizes))
    chances /= chances.sum()
    counts: dict[bytes, int] = {}
    found: list[BoolMatrix] = []
    draws = 0
    while draws < DRAWS_PER_PAIR * n_pairs:
        size = rng.choice(sizes, BLOCK, p=chances)
        rank = rng.random((BLOCK, n)).argsort(axis=1).argsort(axis=1)
        block = rank < size[:, None]
        block[~block[:, 0]] ^= True  # one name for both coalitions of a pair
        for row in block:
            key = row.tobytes()
            if key not in counts:
                if len(counts) == n_pairs:
                    return np.array(found), np.array(list(counts.values()), np.float64)
                found.append(row)
            counts[key] = counts.get(key, 0) + 1
            draws += 1
    return np.array(found), np.array(list(counts.values()), np.float64)


@ESTIMATORS.register("leverage")
@dataclass(frozen=True)
class LeverageShap(RegressionEstimator):
    r"""Leverage-score sampling for the Shapley regression [Musco2025]_.

    The leverage score of a coalition is proportional to :math:`\binom{n}{|S|}^{-1}`, so every size
    gets the same number of coalitions. They are drawn without replacement and in pairs, and the
    fit weighs each by its kernel weight over its chance to be drawn. With all pairs it is exact.
    """

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the constrained least-squares fit and its standard errors."""
        n = game.n_players
        empty, grand = game.ends
        rows = random_pairs(n, (game.budget - 2) // 2, seed)
        values = game(np.concatenate([rows, ~rows])).reshape(2, -1)
        size = rows.sum(axis=1)
        taken = np.bincount(size, minlength=n // 2 + 1)
        existing = [n_subsets(n, s, halved=2 * s == n) if s else 1 for s in range(n // 2 + 1)]
        chance = np.array(
            [min(1.0, int(t) / all_) for t, all_ in zip(taken, existing, strict=True)]
        )
        # A size's pairs share its kernel weight 1/(s(n−s)); the pairs of size n/2 have half of it.
        halves = np.where(2 * size == n, 0.5, 1.0)
        weights = halves / (size * (n - size)) / taken[size]
        odd = (values[0] - values[1]) / 2
        fit = additive_fit(rows, odd, weights, grand - empty, 1 - chance[size])
        return Sampled(*fit, max(1, len(rows) - n + 1))


# ----------------------------------------------------------------------------------------
# Banzhaf values and interactions: a model of degree one or two is fitted to fair coalitions


@one_blas_thread()
def least_squares(design: FloatMatrix, values: FloatVector) -> tuple[FloatVector, FloatVector, int]:
    """Return the coefficients of the best fit, their standard errors and degrees of freedom.

    The errors are White's, with the small-sample factor: what the fit leaves over is not noise
    but the higher orders of the game, and its size may depend on the coalition.
    """
    m, n_coefficients = design.shape
    freedom = m - n_coefficients
    if freedom < 1:
        raise BudgetError(
            f"a fit of {n_coefficients} coefficients needs more than {m} evaluations; allow twice"
            " as many as coefficients"
        )
    lengths, axes = np.linalg.eigh(design.T @ design / m)
    if lengths[0] < 1e-9:
        raise BudgetError(
            f"{m} evaluations do not tell all {n_coefficients} coefficients apart; allow twice as"
            " many as coefficients"
        )
    inverse = (axes / lengths) @ axes.T / m
    coefficients = inverse @ (design.T @ values)
    residual = values - design @ coefficients
    weighted = (design @ inverse) * residual[:, None]
    stderr = np.sqrt((weighted**2).sum(axis=0) * m / freedom)
    return coefficients, stderr, freedom


@SEMIVALUE_ESTIMATORS.register("regression")
@dataclass(frozen=True, eq=False)
class BanzhafRegression(SemivalueEstimator):
    """Coefficients of the best linear approximation of v [Hammer1992]_, fitted to samples.

    What the other players explain is no noise here. The bias is of the order of 1 / budget.
    """

    banzhaf_only: ClassVar[bool] = True

    def minimum_budget(self, n_players: int) -> int:
        """Return more evaluations, in pairs, than there are coefficients."""
        return 2 * ((n_players + 1) // 2 + 1)

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the coefficients, and their standard errors."""
        coalitions = fair_coalitions(game.budget, game.n_players, np.random.default_rng(seed))
        values = game(coalitions)
        signs = np.where(coalitions, 1.0, -1.0)
        design = np.column_stack([np.ones(len(values)), signs])
        coefficients, errors, freedom = least_squares(design, values)
        # A step from out (−1) to in (+1) is twice the coefficient.
        return Sampled(2 * coefficients[1:], 2 * errors[1:], freedom)


@PAIR_ESTIMATORS.register("regression")
@dataclass(frozen=True)
class PairRegression(PairEstimator):
    """Coefficients of x_i x_j in the best approximation of v of degree two [Hammer1992]_.

    What single players and pairs explain is no noise here, so it needs the fewest samples; a
    2-additive game is fitted without error. The bias is of the order of 1 / budget.
    """

    indices: ClassVar[frozenset[str]] = frozenset({"banzhaf"})

    def minimum_budget(self, n_players: int) -> int:
        """Return more evaluations, in pairs, than there are coefficients."""
        return 2 * (n_coefficients(n_players) // 2 + 1)

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the coefficients, and their standard errors."""
        n = game.n_players
        coalitions = fair_coalitions(game.budget, n, np.random.default_rng(seed))
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
