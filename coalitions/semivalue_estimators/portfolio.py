"""Semivalues of models of the game, corrected by what they get wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from coalitions.joint.machine import sampled_index
from coalitions.joint.semivalue import Semivalue
from coalitions.sampling.estimator import SEMIVALUE_ESTIMATORS, Sampled, SemivalueEstimator
from coalitions.sampling.evaluator import Evaluator


@SEMIVALUE_ESTIMATORS.register("portfolio")
@dataclass(frozen=True, eq=False)
class Portfolio(SemivalueEstimator):
    """The semivalue of a mixture of models, see `coalitions.joint.machine`.

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
