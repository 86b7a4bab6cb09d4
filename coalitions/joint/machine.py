r"""Any interaction index by models of the game and a correction for what they get wrong.

.. math:: \hat I = I(f) + \sum_{U \text{ in the pool}} w(U) [v(U) - f(U)] + \lambda\,c

f is a mixture of models of the odd part of the game and one of its even part. What was evaluated
counts as it is, the models speak for the rest, and c is the unbiased estimate, size by size, of
what they get wrong there, from residuals of pairs that the models had not seen.
:math:`\lambda = \max(0, 1 - \sum V / |c|^2)`, order by order, tends to 1 if the models are wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coalitions.joint.coalitions import Parts, joined, listed
from coalitions.joint.correction import correction, importance_of
from coalitions.joint.index import Index
from coalitions.joint.model import Fit, Model, Question
from coalitions.joint.numbers import numbers
from coalitions.joint.polynomials import low_degree, trees
from coalitions.joint.processes import processes
from coalitions.joint.sums import weighted_sums
from coalitions.one_thread import one_blas_thread
from coalitions.sampling.estimator import Sampled
from coalitions.sampling.evaluator import Evaluator
from coalitions.sampling.pairs import random_pairs
from coalitions.surrogates.pool import Pool
from coalitions.surrogates.surrogate import HEAD_START, mixing_weights

FITS: tuple[Fit, ...] = (processes, low_degree, trees, numbers)
"""Models in the order of their head start."""

EVENLY = 0.1
"""Share of the pairs that goes to all sizes alike: models want to see them all."""

CAUTION = 1.5
"""Factor on the variance: the same pairs choose the models and tell how good they are."""


def sampled_index(game: Evaluator, index: Index, seed: int, fits: Sequence[Fit] = FITS) -> Sampled:
    """Return the corrected indices of the mixture, and their standard errors."""
    import scipy.linalg  # noqa: F401 (before its threads are limited)

    n = game.n_players
    masses = index.masses(n)
    importance = importance_of(masses, n)
    root = np.sqrt(importance)
    shares = (1 - EVENLY) * root / root[1:].sum() + EVENLY / max(1, len(root) - 1)
    ends = game.ends
    rows = random_pairs(n, (game.budget - 2) // 2, seed, shares=shares)
    pool = Pool.of(rows, game(np.concatenate([rows, ~rows])), ends, seed)
    question = Question(index, masses, pool, np.maximum(importance, 1e-4 * importance.max()))
    with one_blas_thread():
        even, odd = (_mixture(question, parity, found) for parity, found in _models(question, fits))
        values, variance = _corrected(question, even, odd)
    total, doubt = joined(values), joined(variance)
    if index.efficient and doubt.sum() > 0.0:
        total += doubt * ((ends[1] - ends[0] - total.sum()) / doubt.sum())
    few = 1 + n / max(1, len(rows))
    return Sampled(total, np.sqrt(doubt * few), max(1, len(rows)))


def _models(asked: Question, fits: Sequence[Fit]) -> list[tuple[int, list[Model]]]:
    even: list[Model] = []
    odd: list[Model] = []
    for fit in fits:
        of_even, of_odd = fit(asked)
        even += of_even
        odd += of_odd
    return [(0, even), (1, odd)]


def _mixture(asked: Question, parity: int, models: list[Model]) -> Model:
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
    return Model(parts, fitted, held_out)


def _corrected(asked: Question, even: Model, odd: Model) -> tuple[Parts, Parts]:
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
        seen = weighted_sums(mass, listed(n, size), rows, known)
        found = correction(pool, mass, size, inside, outside)
        square = float(found.values @ found.values)
        share = max(0.0, 1 - float(found.variance.sum()) / square) if square > 0.0 else 0.0
        values[size] = even.indices[size] + odd.indices[size] + seen + share * found.values
        variance[size] = CAUTION * found.variance + ((1 - share) * found.values) ** 2
    return values, variance
