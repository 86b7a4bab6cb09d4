"""Marginal contributions sampled for each player and each size of coalition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.sampling.estimator import ESTIMATORS, Estimator, Sampled
from coalitions.sampling.evaluator import Evaluator
from coalitions.sampling.subsets import BLOCK

FEWEST = 2
"""Samples of a stratum from which its variance can be estimated."""


@ESTIMATORS.register("stratified")
@dataclass(frozen=True)
class Stratified(Estimator):
    r"""Stratified sampling [Maleki2013]_ [Castro2017]_.

    .. math:: \hat\phi_i = \frac1n \sum_{s=0}^{n-1} \frac1k \sum_{r=1}^k
              \big[ v(S_{isr} \cup \{i\}) - v(S_{isr}) \big]

    with :math:`S_{isr}` uniform among the coalitions of size s without i. Sizes 0 and n−1 have one
    coalition each and are exact. Each of the n(n−2) other strata needs two samples of two
    evaluations, so this is for small games with large budgets.
    """

    unbiased: ClassVar[bool] = True
    axioms: ClassVar[frozenset[str]] = frozenset({"null player", "linearity"})
    stderr_means: ClassVar[str] = "standard deviation from the variances of independent strata"

    def minimum_budget(self, n_players: int) -> int:
        """Return the cost of two samples in every stratum, or all coalitions if that is less."""
        return min(_cost(n_players, FEWEST), 1 << n_players)

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return mean and standard error over the strata."""
        n = game.n_players
        count = max(FEWEST, _affordable(n, game.budget))
        empty, grand = game.ends
        alone, together = game(np.concatenate([np.eye(n) == 1, np.eye(n) == 0])).reshape(2, n)
        total = (alone - empty) + (grand - together)
        if n == 2:
            return Sampled(total / n, np.zeros(n))
        means, variances = _sampled_strata(game, count, seed)
        values = (total + means.sum(axis=1)) / n
        errors = np.sqrt(variances.sum(axis=1) / count) / n
        return Sampled(values, errors, (count - 1) * (n - 2))


def _cost(n: int, count: int) -> int:
    """Return the most evaluations that `count` samples in each stratum take."""
    return 2 + 2 * n + 2 * n * (n - 2) * count


def _affordable(n: int, budget: int) -> int:
    if budget >= 1 << n:
        return budget // (n * n) + 1  # no number of samples can exceed the budget
    return (budget - 2 - 2 * n) // (2 * n * (n - 2))


def _sampled_strata(
    game: Evaluator, count: int, seed: int
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float64]], ...]:
    """Return mean and variance of the marginals in each stratum (player, size 1 … n−2)."""
    n = game.n_players
    rng = np.random.default_rng(seed)
    sizes = np.arange(1, n - 1)
    per_call = max(1, BLOCK * BLOCK // (n * n))
    marginals = np.empty((count, n, n - 2))
    for start in range(0, count, per_call):
        rows = np.stack([_stratum_rows(n, sizes, rng) for _ in range(min(per_call, count - start))])
        joined = rows | np.eye(n, dtype=np.bool_)[:, None, :]
        both = game(np.stack([rows, joined]).reshape(-1, n)).reshape(2, *rows.shape[:3])
        marginals[start : start + len(rows)] = both[1] - both[0]
    return marginals.mean(axis=0), marginals.var(axis=0, ddof=1)


def _stratum_rows(
    n: int, sizes: np.ndarray[tuple[int], np.dtype[np.int64]], rng: np.random.Generator
) -> np.ndarray[tuple[int, int, int], np.dtype[np.bool_]]:
    """Return one coalition of each size without each player, [n, n−2, n]."""
    keys = rng.random((n, len(sizes), n))
    keys[np.arange(n), :, np.arange(n)] = 2.0  # the player comes last: never among the chosen
    rank = keys.argsort(axis=2).argsort(axis=2)
    return np.asarray(rank < sizes[None, :, None])
