"""KernelSHAP: least squares on coalitions drawn from the Shapley kernel, in pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coalitions.game import BoolMatrix, FloatVector
from coalitions.sampling.estimator import ESTIMATORS, Sampled
from coalitions.sampling.evaluator import Evaluator
from coalitions.sampling.regression import RegressionEstimator, additive_fit
from coalitions.sampling.subsets import BLOCK

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
