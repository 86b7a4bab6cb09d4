"""What an estimator is, what it answers, and where estimators of each kind are found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector
from coalitions.joint.index import Index
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
    """Values with their errors, and what they cost.

    Attributes
    ----------
    values
        The value of each player [n], or the interaction of each pair [n, n], symmetric with a zero
        diagonal.
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
        """Return the lower and the upper ends of the confidence intervals.

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


class Sampler(ABC):
    """A way to estimate values of a game; its options are dataclass fields of the subclass.

    `coalitions.values.door` sees to everything that is the same for all: budgets, stopping,
    counting. `estimate` is asked for a budget of at least `minimum_budget`. Which coalitions it
    asks for may depend on the seed, on the budget and on values it has seen; all but the last few
    evaluations go into a few large calls.
    """

    nested: ClassVar[bool] = False
    """Whether a smaller budget leads to a subset of the coalitions, so that it can be extended."""

    @abstractmethod
    def minimum_budget(self, n_players: int) -> int:
        """Return the fewest evaluations the method can work with."""

    @abstractmethod
    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the estimates; at most ``game.budget`` distinct coalitions may be evaluated."""


class Estimator(Sampler):
    """A way to estimate Shapley values, of a game of at least two players."""

    nested: ClassVar[bool] = True

    unbiased: ClassVar[bool]
    """Whether the expected value of an estimate is the Shapley value, at every budget."""

    axioms: ClassVar[frozenset[str]]
    """Which of `AXIOMS` every single estimate fulfils, up to rounding."""

    stderr_means: ClassVar[str]
    """What the standard error stands for, in a sentence."""


@dataclass(frozen=True, eq=False)
class SemivalueEstimator(Sampler):
    """A way to estimate a semivalue.

    Attributes
    ----------
    sizes
        How likely a player meets k others [n], see `coalitions.semivalue`.
    index
        The same as an index of single players, if more is known about it than the sizes.
    """

    sizes: FloatVector
    index: Index | None = None

    banzhaf_only: ClassVar[bool] = False
    """Whether the method knows the Banzhaf value alone, whatever the sizes."""


@dataclass(frozen=True)
class PairEstimator(Sampler):
    """A way to estimate the interactions of all pairs.

    Attributes
    ----------
    index
        ``"shapley"`` or ``"banzhaf"``.
    """

    index: str

    indices: ClassVar[frozenset[str]]
    """The indices the method knows."""


@dataclass(frozen=True)
class InteractionEstimator(Sampler):
    """A way to estimate an interaction index of all coalitions up to its order.

    Its values stand one after the other: size by size, and in each in lexicographic order.

    Attributes
    ----------
    index
        The index and its order.
    """

    index: Index


ESTIMATORS: Registry[type[Estimator]] = Registry("estimator", "coalitions.estimators")
SEMIVALUE_ESTIMATORS: Registry[type[SemivalueEstimator]] = Registry(
    "semivalue estimator", "coalitions.semivalue_estimators"
)
PAIR_ESTIMATORS: Registry[type[PairEstimator]] = Registry(
    "pair estimator", "coalitions.pair_estimators"
)
INTERACTION_ESTIMATORS: Registry[type[InteractionEstimator]] = Registry(
    "interaction estimator", "coalitions.interaction_estimators"
)
