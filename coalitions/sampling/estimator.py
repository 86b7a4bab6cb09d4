"""What an estimator is, what it answers, and where estimators of each kind are found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector
from coalitions.joint.index import Index
from coalitions.registry import Registry
from coalitions.sampling.evaluator import Evaluator

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from pandas import DataFrame

    from coalitions.results.comparison import RankCorrelation

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
    labels
        Names of the players; empty if they have none.
    base
        The value of the empty coalition, if it was evaluated: what the values are added to.
    stopped
        Why there are fewer evaluations than the budget allows: ``"target error"``, or
        ``"interrupted"`` by Ctrl-C; empty if neither.
    """

    values: FloatVector
    stderr: FloatVector
    evaluations: int
    method: str
    reason: str = ""
    degrees_of_freedom: float = np.inf
    labels: tuple[str, ...] = ()
    base: float | None = None
    stopped: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the players, or their numbers."""
        return self.labels or tuple(map(str, range(len(self.values))))

    @property
    def named(self) -> dict[Any, float]:
        """The value of each player by its name, or of each pair by both names.

        Examples
        --------
        >>> from coalitions import cost_game, shapley
        >>> shapley(cost_game({"ann": 3, "bob": 5, ("ann", "bob"): 6})).named
        {'ann': 2.0, 'bob': 4.0}
        """
        return {name: value for name, value, _ in rows_of(self)}

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each player: value, error, 95 % interval.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        from coalitions.results.tables import estimate_frame

        return estimate_frame(self)

    def to_json(self) -> str:
        """Return a JSON document, as ``coalitions shapley --json`` prints it."""
        from coalitions.results.tables import estimate_json

        return estimate_json(self)

    def plot(self, kind: str | None = None, path: str | Path | None = None) -> Figure:
        """Return a matplotlib figure of the values.

        Parameters
        ----------
        kind
            ``"bar"``, the default, has the 95 % intervals; ``"waterfall"`` goes from the value of
            the empty coalition to that of all players, one step for each, and ``"force"`` shows
            the same in one line. Of pairs the one kind is ``"network"``.
        path
            Where to write the picture as well: ``.png``, ``.svg`` or ``.pdf``.

        Raises
        ------
        MissingDependencyError
            matplotlib is not installed.
        """
        from coalitions.results.figures import estimate_figure

        return estimate_figure(self, kind, path)

    def _repr_html_(self) -> str:
        """Return a table of the values, as notebooks show it."""
        from coalitions.results.tables import estimate_shown

        return estimate_shown(self).html

    def __str__(self) -> str:
        """Return the same table as text."""
        from coalitions.results.tables import estimate_shown

        return estimate_shown(self).text

    def difference(self, other: Estimate) -> Estimate:
        """Return these values minus the other ones, with the errors of both.

        The errors are taken as independent: give the two estimates different seeds. With one seed
        both have asked for the same coalitions, and the true error is smaller if the games are
        alike. Players are matched by name.

        Examples
        --------
        >>> one = Estimate(np.array([1.0, 2.0]), np.array([0.3, 0.0]), 20, "permutation")
        >>> two = Estimate(np.array([0.5, 2.0]), np.array([0.4, 0.0]), 20, "permutation")
        >>> one.difference(two).values, one.difference(two).stderr
        (array([0.5, 0. ]), array([0.5, 0. ]))
        """
        from coalitions.results.comparison import difference

        return difference(self, other)

    def rank_correlation(self, other: Estimate, level: float = 0.95) -> RankCorrelation:
        """Return how far two estimates agree on the order of the players, with an interval.

        See `coalitions.RankCorrelation`.
        """
        from coalitions.results.comparison import rank_correlation

        return rank_correlation(self, other, level)

    def interval(self, level: float = 0.95) -> tuple[FloatVector, FloatVector]:
        """Return the lower and the upper ends of the confidence intervals.

        Examples
        --------
        >>> estimate = Estimate(np.array([1.0]), np.array([0.1]), 20, "permutation")
        >>> [round(float(end[0]), 3) for end in estimate.interval()]
        [0.804, 1.196]
        """
        half = self.standard_errors(level) * self.stderr
        return self.values - half, self.values + half

    def standard_errors(self, level: float) -> float:
        """Return how many standard errors an interval reaches to either side."""
        from scipy.special import ndtri, stdtrit

        if not 0 < level < 1:
            raise InvalidInputError(f"the level is {level}; it must lie between 0 and 1")
        tail = (1 + level) / 2
        finite = np.isfinite(self.degrees_of_freedom)
        return float(stdtrit(max(1.0, self.degrees_of_freedom), tail) if finite else ndtri(tail))


def rows_of(estimate: Estimate) -> Iterator[tuple[Any, float, float]]:
    """Give name, value and standard error of each player; of each pair, both names."""
    names = estimate.names
    values, errors = estimate.values.tolist(), estimate.stderr.tolist()
    if estimate.values.ndim == 1:
        yield from zip(names, values, errors, strict=True)
        return
    for i, j in combinations(range(len(names)), 2):
        yield (names[i], names[j]), values[i][j], errors[i][j]


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
