"""What an estimator of Shapley values is, and what it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector
from coalitions.registry import Registry
from coalitions.sampling.evaluator import Evaluator

AXIOMS = frozenset({"efficiency", "null player", "linearity", "symmetry"})
"""What characterises the Shapley value [Shapley1953]_.

Efficiency: the values sum to v(N) − v(∅). Null player: who never changes anything gets 0.
Linearity: with the same seed, the estimate of a weighted sum of games is that sum of estimates.
Symmetry: players that can be exchanged get the same.
"""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Shapley values with their errors, and what they cost.

    Attributes
    ----------
    values
        The Shapley value of each player.
    stderr
        The standard error of each value; what it means depends on the method, see
        `Estimator.stderr_means`. All zero if the values are exact.
    evaluations
        How many distinct coalitions were evaluated.
    method
        Name of the method that answered.
    reason
        Why this method was taken.
    degrees_of_freedom
        Of the standard errors: their intervals are Student's, not the normal distribution's.
    """

    values: FloatVector
    stderr: FloatVector
    evaluations: int
    method: str
    reason: str = ""
    degrees_of_freedom: float = np.inf

    def interval(self, level: float = 0.95) -> tuple[FloatVector, FloatVector]:
        """Return the lower and the upper ends of the players' confidence intervals.

        Examples
        --------
        >>> estimate = Estimate(np.array([1.0]), np.array([0.1]), 20, "permutation")
        >>> [round(float(end[0]), 3) for end in estimate.interval()]
        [0.804, 1.196]
        """
        from scipy.special import ndtri, stdtrit

        if not 0 < level < 1:
            raise InvalidInputError(f"the level is {level}; it must lie between 0 and 1")
        tail = (1 + level) / 2
        finite = np.isfinite(self.degrees_of_freedom)
        factor = stdtrit(max(1.0, self.degrees_of_freedom), tail) if finite else ndtri(tail)
        half = float(factor) * self.stderr
        return self.values - half, self.values + half


@dataclass(frozen=True, eq=False)
class Sampled:
    """What an estimator hands back: the numbers, without what the front door knows better."""

    values: FloatVector
    stderr: FloatVector
    degrees_of_freedom: float = np.inf
    evaluations: int | None = None
    """Only if the coalitions were not evaluated through the `Evaluator`, which counts."""


class Estimator(ABC):
    """A way to estimate Shapley values; its options are dataclass fields of the subclass.

    The front door sees to everything that is the same for all: lone players, budgets, stopping,
    counting. `estimate` is asked for a game of at least two players and a budget of at least
    `minimum_budget`. Which coalitions it asks for may depend on the seed, on the budget and on
    values it has seen. A smaller budget must lead to a subset of the coalitions (so that an
    estimate can be extended); all but the last few evaluations go into a few large calls.
    """

    unbiased: ClassVar[bool]
    """Whether the expected value of an estimate is the Shapley value, at every budget."""

    axioms: ClassVar[frozenset[str]]
    """Which of `AXIOMS` every single estimate fulfils, up to rounding."""

    stderr_means: ClassVar[str]
    """What the standard error stands for, in a sentence."""

    @abstractmethod
    def minimum_budget(self, n_players: int) -> int:
        """Return the fewest evaluations the method can work with."""

    @abstractmethod
    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the estimates; at most ``game.budget`` distinct coalitions may be evaluated."""


ESTIMATORS: Registry[type[Estimator]] = Registry("estimator", "coalitions.estimators")
