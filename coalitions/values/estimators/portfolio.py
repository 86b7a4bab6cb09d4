r"""Portfolios: several models of a game, mixed by their held-out errors, and corrected.

.. math:: \hat I = I(f) + \sum_{U \text{ in the pool}} w(U) [v(U) - f(U)] + \lambda\,c

f is the mixture of the models that is best on pairs which they have not seen. Evaluated coalitions
count as they are, and the models stand for all others. c is the unbiased estimate, size by size, of
their error there, from held-out residuals with the variance V.
:math:`\lambda = \max(0, 1 - \sum V / |c|^2)` tends to 1 if the models are wrong. So a wrong model
costs evaluations, not correctness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import BoolVector, FloatMatrix, FloatVector
from coalitions.runtime import one_blas_thread
from coalitions.values.budget import Evaluator
from coalitions.values.designs import Pool, ShapleyFit, Surrogate, random_pairs
from coalitions.values.estimator import (
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
    INDICES,
    OTHER_NAMES,
    Index,
    PairsOnly,
    Parts,
    Semivalue,
    coalitions_of_size,
    concatenated,
    weighted_sums,
)
from coalitions.values.models.correction import PRIOR_PAIRS, correction, importance_of
from coalitions.values.models.index_models import (
    IndexFit,
    IndexModel,
    IndexQuestion,
    low_degree_parts,
    symmetric_parts,
    tree_parts,
)
from coalitions.values.models.index_process import process_parts
from coalitions.values.models.polynomials import additive, borders, symmetric, trees
from coalitions.values.models.process import process

# ----------------------------------------------------------------------------------------
# The mixture, and the correction of Shapley values

# `python -m benchmarks.values FOLDER` shows what a change of these does to errors on thirty games.

HEAD_START = 10.0
"""How many pairs the doubt in a comparison of models counts for, see `coalitions.values.models`."""

DOUBT = 20.0
"""The same, in effective pairs, where a surrogate fits more freely than another."""


LUCK = 5.0
"""Effective pairs that a surrogate which fits freely may explain by luck."""


def mixed(pool: Pool, surrogates: Sequence[Surrogate]) -> Surrogate:
    """Return the mean of some surrogates, weighted so that the held-out error is smallest.

    Errors count as they do in the Shapley value: by the size of the coalition, and by how many of
    the size are not in the pool. Few pairs rank surrogates badly, so those that are guarded have a
    head start, see `_handicap`.
    """
    n, s = pool.n_players, pool.sizes
    importance = pool.missing[s] / np.maximum(1, s * (n - s)) / pool.taken[s] ** 2.0
    if importance.sum() == 0.0:  # nothing is missing, so any mixture is exact
        importance = np.ones(len(s))
    residuals = np.array([pool.odd - one.held_out for one in surrogates])
    free = np.array([not one.guarded for one in surrogates])
    weights = mixing_weights(residuals, importance, free * _handicap(residuals, importance, free))
    values, fitted, held_out, _ = zip(*surrogates, strict=True)
    return Surrogate(sum_of(weights, values), sum_of(weights, fitted), sum_of(weights, held_out))


def mixing_weights(
    residuals: FloatMatrix, importance: FloatVector, handicaps: FloatVector
) -> FloatVector:
    """Return the weights with the least sum of squares of mixed residuals; sum 1, none below 0.

    The handicaps are added to the sums of squares, as if they were independent of each other.
    """
    products = (residuals * importance) @ residuals.T
    products[np.diag_indices(len(products))] += handicaps
    return _convex(products)


def _handicap(residuals: FloatMatrix, importance: FloatVector, free: BoolVector) -> float:
    """Return what is added to the errors of surrogates that fit freely.

    Where pairs count differently they are effectively fewer: (Σe)² / Σe² by their shares e of an
    error. The least of all errors is in doubt by these. And that of the best guarded surrogate says
    how many pairs speak against it: a tree that explains a single one may do so by luck.
    """
    errors = residuals**2 * importance
    best = errors[errors.sum(axis=1).argmin()]
    doubt = float(best.sum()) * DOUBT / _effective(best)
    if not free.all():
        guarded = errors[~free]
        best = guarded[guarded.sum(axis=1).argmin()]
        doubt += float(best.sum()) * (LUCK / _effective(best)) ** 2
    return doubt


def _effective(errors: FloatVector) -> float:
    squares = float(errors @ errors)
    return max(1.0, float(errors.sum()) ** 2 / squares) if squares > 0.0 else 1.0


def sum_of(weights: FloatVector, parts: Sequence[FloatVector]) -> FloatVector:
    """Return the weighted sum of some vectors."""
    total: FloatVector = np.einsum("k,kj->j", weights, np.array(parts))
    return total


def _convex(products: FloatVector) -> FloatVector:
    """Return the weights w ≥ 0 of sum 1 with the least w·products·w; there are few of them."""
    p = len(products)
    best, weights = np.inf, np.full(p, 1 / p)
    ridge = 1e-12 * np.trace(products) + 1e-300
    for count in range(1, p + 1):
        for chosen in combinations(range(p), count):
            part = products[np.ix_(chosen, chosen)] + ridge * np.eye(count)
            some = np.linalg.lstsq(part, np.ones(count), rcond=None)[0]
            if some.sum() <= 0 or (some < 0).any():
                continue
            some = some / some.sum()
            loss = float(some @ part @ some)
            if loss < best:
                best, weights = loss, np.zeros(p)
                weights[list(chosen)] = some
    return weights


def left_over(pool: Pool, residual: FloatVector) -> tuple[FloatVector, FloatVector, FloatVector]:
    """Return the Shapley values of the residual outside the pool, their variances, and the doubt.

    The pairs of one size are a random sample: what a surrogate misses on held-out pairs with
    player i, less that on pairs without i, is an unbiased estimate of what it misses on pairs
    that were never evaluated. The sum over the players needs no estimate: it is known.
    If a simple game fits all pairs, a residual of 0 proves little: see `Pool.surprise`. The doubt
    is the variance, with what rare pairs may add of which none was seen: see `unseen`.
    """
    n = pool.n_players
    total, variance, doubt = np.zeros((3, n))
    centred = residual.copy()
    for s in range(1, n // 2 + 1):
        if 2 * s < n and pool.taken[s]:
            centred[pool.sizes == s] -= residual[pool.sizes == s].mean()
    # Variances are about 0, not about the mean of a size: that of a single pair would be nothing.
    squares = np.bincount(pool.sizes, residual**2, minlength=n // 2 + 1)
    partly = pool.missing > 0
    usual = squares[partly].sum() / max(1, pool.taken[partly].sum())
    # Laplace's rule of succession: the next pair may be the first that is not so simple.
    least = pool.surprise_of_fit(residual) / (len(pool.odd) + 1)
    usual = max(usual, least, pool.surprise)
    for s in range(1, n // 2 + 1):
        if pool.missing[s] == 0.0:
            continue
        if pool.taken[s] == 0:  # no guess, and all the doubt that a single pair would leave
            single = usual * (1.0 if 2 * s == n else n * n / (s * (n - s)))
            variance += single
            doubt += single
            continue
        of_size = pool.sizes == s
        signs, rest, square = pool.signs[of_size], centred[of_size], residual[of_size] ** 2
        m = len(rest)
        spread = max(least, (squares[s] + PRIOR_PAIRS * usual) / (m + PRIOR_PAIRS))
        if 2 * s == n:
            guess = (signs * rest[:, None]).mean(axis=0)
            count, each = np.full((1, n), m), np.full((1, n), spread)
        else:
            inside = np.where(signs > 0, 1.0, 0.0)
            count = np.array([m - inside.sum(axis=0), inside.sum(axis=0)])
            part = rest @ inside
            both = count.min(axis=0) > 0
            guess = np.where(both, part / np.maximum(1, count).prod(axis=0) * m, 0.0)
            power = np.array([square @ (1 - inside), square @ inside])
            each = np.maximum(least, (power + PRIOR_PAIRS * spread) / (count + PRIOR_PAIRS))
        wide = np.maximum(each, unseen(pool, residual, s))
        total += pool.missing[s] * guess
        variance += pool.missing[s] * (each / np.maximum(1, count)).sum(axis=0)
        doubt += pool.missing[s] * (wide / np.maximum(1, count)).sum(axis=0)
    total *= 2 / n
    return total - total.mean(), variance * (2 / n) ** 2, doubt * (2 / n) ** 2


def unseen(pool: Pool, residual: FloatVector, s: int) -> FloatMatrix:
    """Return the mean squares of residuals by rare pairs of which none was seen [2, n].

    They are those of pairs of the size s without each player, and with each; pairs of n/2 players
    have one side only [1, n]. Where most pairs of a size have the same value, the others are rare.
    If none of the rare ones is on a player's side, its residuals say nothing of those that were
    missed. By Laplace's rule of succession, the next pair there is a rare one with chance
    1/(1 + pairs seen), but no more often than at the sizes where there are some; and then the
    models miss it as they miss the others. Where one was seen, or nothing is rare, it is 0.
    """
    rare, n_sides = pool.rare, 1 if 2 * s == pool.n_players else 2
    if not rare.usual[s] or not rare.pairs.any():
        return np.zeros((n_sides, pool.n_players))
    counted = rare.counted_at(s, pool.sizes)
    inside = pool.signs[counted] > 0
    sides = np.array([~inside, inside]) if n_sides == 2 else np.ones((1, *inside.shape), np.bool_)
    chance = np.minimum(rare.share, 1 / (1 + sides.sum(axis=1)))
    chance[(sides & rare.pairs[counted][:, None]).any(axis=1)] = 0.0
    mean: FloatMatrix = chance * (residual[rare.pairs] ** 2).mean()
    return mean


# ----------------------------------------------------------------------------------------
# Shapley values: models of the odd part of a game

CAUTION = 1.5
"""Factor on the variance: the same pairs choose the surrogates and tell how good they are."""


@ESTIMATORS.register("portfolio")
@dataclass(frozen=True)
class Portfolio(Estimator):
    r"""The Shapley values of a mixture of surrogates, corrected by what it misses.

    Pairs (S, N∖S) are drawn without replacement, of all sizes, and of single players all there are.
    Each surrogate f is fitted to all of them and tells besides what it would have said of each
    pair without having seen it. The mixture has the least error on such held-out pairs. Then

    .. math:: \hat\phi = \phi(f) + \sum_{S \text{ in the pool}} w(S) [u(S) - f(S)]
              + \lambda\,c, \quad \lambda = \max(0, 1 - \sum_i V_i / |c|^2),

    with the weights w(S) of the odd part u in the Shapley value: what was evaluated counts as it
    is, and the surrogate speaks for the rest. The correction c is the unbiased estimate, size by
    size, of what it gets wrong there, from held-out residuals, and V is its variance. A surrogate
    that is as good as it seems makes c mere noise, and λ is near 0; one that is systematically
    wrong makes λ tend to 1. So a bad surrogate costs evaluations, not correctness. With all pairs
    the values are exact.

    Attributes
    ----------
    surrogates
        The fits; the mixture has a head start for those of their surrogates that are guarded.
    """

    surrogates: tuple[ShapleyFit, ...] = (process, additive, trees, symmetric, borders)

    unbiased: ClassVar[bool] = False
    axioms: ClassVar[frozenset[str]] = frozenset({"efficiency"})
    stderr_means: ClassVar[str] = (
        "standard deviation of the correction by held-out pairs as if it were made in full, with"
        " what was left uncorrected and some caution: intervals tend to be too wide"
    )

    def __post_init__(self) -> None:
        if not self.surrogates:
            raise InvalidInputError("a portfolio needs at least one surrogate")

    def minimum_budget(self, n_players: int) -> int:
        """Return 4: both ends and one pair."""
        del n_players
        return 4

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the corrected values of the mixture and their standard errors."""
        import scipy.linalg  # noqa: F401 (before its threads are limited)

        n = game.n_players
        ends = game.ends
        rows = random_pairs(n, (game.budget - 2) // 2, seed, borders=True)
        pool = Pool.of(rows, game(np.concatenate([rows, ~rows])), ends, seed)
        few = 1 + n / max(1, len(rows))  # few pairs say little about their spread
        if not pool.odd.any():
            _, _, doubt = left_over(pool, pool.odd)
            return Sampled(np.zeros(n), np.sqrt(CAUTION * doubt * few), len(rows))
        with one_blas_thread():
            model = mixed(pool, [one for fit in self.surrogates for one in fit(pool)])
            values = model.values + (pool.odd - model.fitted) @ pool.shares
            values += (2 * pool.odd[0] - values.sum()) / n
            correction, variance, doubt = left_over(pool, pool.odd - model.held_out)
        size = float(correction @ correction)
        factor = max(0.0, 1 - float(variance.sum()) / size) if size > 0.0 else 0.0
        values += factor * correction
        # What was not corrected may be an error.
        doubt = CAUTION * doubt + ((1 - factor) * correction) ** 2
        return Sampled(values, np.sqrt(doubt * few), len(rows))


# ----------------------------------------------------------------------------------------
# Any interaction index: models of the odd part and of the even part

INDEX_FITS: tuple[IndexFit, ...] = (process_parts, low_degree_parts, tree_parts, symmetric_parts)
"""Models in the order of their head start."""

EVEN_SHARE = 0.1
"""Share of the pairs that goes to all sizes alike: models want to see them all."""

INDEX_CAUTION = 1.5
"""Factor on the variance: the same pairs choose the models and tell how good they are."""


def sampled_index(
    game: Evaluator, index: Index, seed: int, fits: Sequence[IndexFit] = INDEX_FITS
) -> Sampled:
    """Return the corrected indices of the mixture, and their standard errors."""
    import scipy.linalg  # noqa: F401 (before its threads are limited)

    n = game.n_players
    masses = index.masses(n)
    importance = importance_of(masses, n)
    root = np.sqrt(importance)
    shares = (1 - EVEN_SHARE) * root / root[1:].sum() + EVEN_SHARE / max(1, len(root) - 1)
    ends = game.ends
    rows = random_pairs(n, (game.budget - 2) // 2, seed, shares=shares)
    pool = Pool.of(rows, game(np.concatenate([rows, ~rows])), ends, seed)
    question = IndexQuestion(index, masses, pool, np.maximum(importance, 1e-4 * importance.max()))
    with one_blas_thread():
        even, odd = (_mixture(question, parity, found) for parity, found in _models(question, fits))
        values, variance = _corrected(question, even, odd)
    total, doubt = concatenated(values), concatenated(variance)
    if index.efficient and doubt.sum() > 0.0:
        total += doubt * ((ends[1] - ends[0] - total.sum()) / doubt.sum())
    few = 1 + n / max(1, len(rows))
    return Sampled(total, np.sqrt(doubt * few), max(1, len(rows)))


def _models(asked: IndexQuestion, fits: Sequence[IndexFit]) -> list[tuple[int, list[IndexModel]]]:
    even: list[IndexModel] = []
    odd: list[IndexModel] = []
    for fit in fits:
        of_even, of_odd = fit(asked)
        even += of_even
        odd += of_odd
    return [(0, even), (1, odd)]


def _mixture(asked: IndexQuestion, parity: int, models: list[IndexModel]) -> IndexModel:
    """Return the mean of some models, weighted so that the held-out error is smallest."""
    pool, target = asked.pool, asked.target(parity)
    s = pool.sizes
    count = pool.missing[s] * asked.importance[s] / pool.taken[s] ** 2.0
    if count.sum() == 0.0:  # nothing is missing, so any mixture is exact
        count = np.ones(len(s))
    residuals = np.array([target - model.held_out for model in models])
    # Few pairs rank models badly, so the first has a head start.
    least = float((residuals**2 @ count).min())
    doubt = least * HEAD_START / max(1, int(pool.taken[pool.missing > 0].sum()))
    weights = mixing_weights(residuals, count, np.where(np.arange(len(models)) > 0, doubt, 0.0))
    parts = {
        size: sum(w * model.indices[size] for w, model in zip(weights, models, strict=True))
        for size in asked.masses
    }
    fitted = sum(w * model.fitted for w, model in zip(weights, models, strict=True))
    held_out = sum(w * model.held_out for w, model in zip(weights, models, strict=True))
    return IndexModel(parts, fitted, held_out)


def _corrected(asked: IndexQuestion, even: IndexModel, odd: IndexModel) -> tuple[Parts, Parts]:
    """Return the indices and their variances, size by size."""
    pool, n = asked.pool, asked.pool.n_players
    rows = np.concatenate([pool.signs > 0, pool.signs < 0])
    known = np.concatenate([pool.inside, pool.outside])
    known -= np.concatenate([even.fitted + odd.fitted, even.fitted - odd.fitted])
    inside = pool.inside - even.held_out - odd.held_out
    outside = pool.outside - even.held_out + odd.held_out
    values: Parts = {}
    variance: Parts = {}
    for size, mass in asked.masses.items():
        seen = weighted_sums(mass, coalitions_of_size(n, size), rows, known)
        found = correction(pool, mass, size, inside, outside)
        square = float(found.values @ found.values)
        share = max(0.0, 1 - float(found.variance.sum()) / square) if square > 0.0 else 0.0
        values[size] = even.indices[size] + odd.indices[size] + seen + share * found.values
        variance[size] = INDEX_CAUTION * found.variance + ((1 - share) * found.values) ** 2
    return values, variance


# ----------------------------------------------------------------------------------------
# The same for interactions of any order, for semivalues and for pairs


@INTERACTION_ESTIMATORS.register("portfolio")
@dataclass(frozen=True)
class InteractionPortfolio(InteractionEstimator):
    """The indices of a mixture of models, corrected by what it misses.

    See `coalitions.values.estimators.portfolio`. A wrong model costs evaluations, not correctness.

    Attributes
    ----------
    fits
        The models; the mixture has a head start for the first.
    """

    fits: tuple[IndexFit, ...] = INDEX_FITS

    nested: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.fits:
            raise InvalidInputError("a portfolio needs at least one model")

    def minimum_budget(self, n_players: int) -> int:
        """Return 4: both ends and one pair."""
        del n_players
        return 4

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the corrected indices and their standard errors."""
        return sampled_index(game, self.index, seed, self.fits)


@SEMIVALUE_ESTIMATORS.register("portfolio")
@dataclass(frozen=True, eq=False)
class SemivaluePortfolio(SemivalueEstimator):
    """The semivalue of a mixture of models, see `coalitions.values.estimators.portfolio`.

    Consistent, even if all models are wrong. The Gaussian process takes part if the semivalue is
    that of tossed coins, as Banzhaf's and Beta-Shapley are.
    """

    nested: ClassVar[bool] = True

    def minimum_budget(self, n_players: int) -> int:
        """Return 4: both ends and one pair."""
        del n_players
        return 4

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the corrected values and their standard errors."""
        index = Semivalue(1, self.sizes) if self.index is None else self.index
        return sampled_index(game, index, seed)


@PAIR_ESTIMATORS.register("portfolio")
@dataclass(frozen=True)
class PairPortfolio(PairEstimator):
    """The interactions of a mixture of models, see `coalitions.values.estimators.portfolio`.

    Consistent, even if all models are wrong.
    """

    indices: ClassVar[frozenset[str]] = frozenset({"shapley", "banzhaf"})

    nested: ClassVar[bool] = True

    def minimum_budget(self, n_players: int) -> int:
        """Return 4: both ends and one pair of complements."""
        del n_players
        return 4

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the corrected interactions and their standard errors."""
        n = game.n_players
        index = PairsOnly(2, INDICES[OTHER_NAMES[self.index]](2))
        found = sampled_index(game, index, seed)
        return Sampled(_matrix(found.values, n), _matrix(found.stderr, n), found.degrees_of_freedom)


def _matrix(pairs: FloatVector, n: int) -> FloatMatrix:
    matrix = np.zeros((n, n))
    i, j = np.triu_indices(n, 1)
    matrix[i, j] = matrix[j, i] = pairs
    return matrix
