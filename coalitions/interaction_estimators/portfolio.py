"""Models of the game on one pool of coalitions, mixed by their held-out errors and corrected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from coalitions.errors import InvalidInputError
from coalitions.joint.machine import FITS, sampled_index
from coalitions.joint.model import Fit
from coalitions.sampling.estimator import INTERACTION_ESTIMATORS, InteractionEstimator, Sampled
from coalitions.sampling.evaluator import Evaluator


@INTERACTION_ESTIMATORS.register("portfolio")
@dataclass(frozen=True)
class Portfolio(InteractionEstimator):
    """The indices of a mixture of models, corrected by what it misses.

    See `coalitions.joint.machine`. A wrong model costs evaluations, not correctness.

    Attributes
    ----------
    fits
        The models; the mixture has a head start for the first.
    """

    fits: tuple[Fit, ...] = FITS

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
