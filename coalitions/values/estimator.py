"""What an estimator is, and where estimators of each kind are found.

An estimator is asked for values with a budget; it gets the game as an `Evaluator`
(`coalitions.values.budget`) and returns numbers and their errors. There are four kinds: for Shapley
values, for semivalues, for the interactions of pairs, and for indices of any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from coalitions.game import FloatVector
from coalitions.registry import Registry
from coalitions.values.interaction_indices import Index

if TYPE_CHECKING:
    from coalitions.values.budget import Evaluator

AXIOMS = frozenset({"efficiency", "null player", "linearity", "symmetry"})
"""What characterises the Shapley value [Shapley1953]_.

Efficiency: the values sum to v(N) − v(∅). Null player: who never changes anything gets 0.
Linearity: with the same seed, the estimate of a weighted sum of games is that sum of estimates.
Symmetry: players that can be exchanged get the same.
"""


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

    `coalitions.values.budget` sees to everything that is the same for all: budgets, stopping,
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
        """Return the estimates; at most ``game.budget`` distinct coalitions may be evaluated.

        A game of huge or tiny values is seen in units of a power of two, and what is returned is
        multiplied back. Numbers of the game's own units go through ``game.in_units``.
        """


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


_PLACES = ("coalitions.values.exact", "coalitions.values.estimators")

ESTIMATORS: Registry[type[Estimator]] = Registry("estimator", *_PLACES)
SEMIVALUE_ESTIMATORS: Registry[type[SemivalueEstimator]] = Registry("semivalue estimator", *_PLACES)
PAIR_ESTIMATORS: Registry[type[PairEstimator]] = Registry("pair estimator", *_PLACES)
INTERACTION_ESTIMATORS: Registry[type[InteractionEstimator]] = Registry(
    "interaction estimator", *_PLACES
)
