"""Interactions of all pairs of models of the game, corrected by what they get wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.game import FloatMatrix, FloatVector
from coalitions.joint.index import INDICES, OTHER_NAMES
from coalitions.joint.machine import sampled_index
from coalitions.joint.pairs import OfPairs
from coalitions.sampling.estimator import PAIR_ESTIMATORS, PairEstimator, Sampled
from coalitions.sampling.evaluator import Evaluator


@PAIR_ESTIMATORS.register("portfolio")
@dataclass(frozen=True)
class Portfolio(PairEstimator):
    """The interactions of a mixture of models, see `coalitions.joint.machine`.

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
        index = OfPairs(2, INDICES[OTHER_NAMES[self.index]](2))
        found = sampled_index(game, index, seed)
        return Sampled(_matrix(found.values, n), _matrix(found.stderr, n), found.degrees_of_freedom)


def _matrix(pairs: FloatVector, n: int) -> FloatMatrix:
    matrix = np.zeros((n, n))
    i, j = np.triu_indices(n, 1)
    matrix[i, j] = matrix[j, i] = pairs
    return matrix
