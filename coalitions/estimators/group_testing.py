"""Group testing: differences of Shapley values from random groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.sampling.estimator import ESTIMATORS, Estimator, Sampled
from coalitions.sampling.evaluator import Evaluator
from coalitions.sampling.paths import mean_and_error
from coalitions.sampling.subsets import BLOCK


@ESTIMATORS.register("group-testing")
@dataclass(frozen=True)
class GroupTesting(Estimator):
    r"""Group testing [Jia2019]_.

    A group of k players is drawn with probability :math:`q(k) = Z^{-1} (1/k + 1/(n-k))`, uniform
    among the groups of its size. Then :math:`\phi_i - \phi_j = Z\,E[v(S)(\beta_i - \beta_j)]` with
    β = 1 for members. Of all values that add up to v(N) − v(∅), those that fit all differences
    best in the sense of least squares are

    .. math:: \hat\phi_i = \frac{v(N) - v(\emptyset)}{n} + \frac{Z}{T} \sum_{t=1}^T
              (v(S_t) - \bar v)(\beta_{ti} - k_t / n)

    (the paper asks for any feasible values). A constant changes nothing in expectation, so v̄, the
    mean of v(∅) and v(N), is subtracted to keep the variance small.
    """

    unbiased: ClassVar[bool] = True
    axioms: ClassVar[frozenset[str]] = frozenset({"efficiency", "linearity"})
    stderr_means: ClassVar[str] = "standard deviation of the mean of independent groups"

    def minimum_budget(self, n_players: int) -> int:
        """Return both ends and two groups."""
        del n_players
        return 4

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the least-squares solution and its standard errors."""
        n = game.n_players
        empty, grand = game.ends
        n_groups = game.budget - 2
        rng = np.random.default_rng(seed)
        sizes = np.arange(1, n)
        chances = 1 / sizes + 1 / (n - sizes)
        normaliser = chances.sum()
        rows = np.empty((n_groups, n), np.bool_)
        for start in range(0, n_groups, BLOCK):
            size = rng.choice(sizes, BLOCK, p=chances / normaliser)
            rank = rng.random((BLOCK, n)).argsort(axis=1).argsort(axis=1)
            part = rows[start : start + BLOCK]
            part[:] = (rank < size[:, None])[: len(part)]
        centred = game(rows) - (empty + grand) / 2
        terms = normaliser * centred[:, None] * (rows - rows.mean(axis=1, keepdims=True))
        mean, error = mean_and_error(terms)
        return Sampled(mean + (grand - empty) / n, error, n_groups - 1)
