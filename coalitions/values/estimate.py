"""Results: values, or interactions, with their errors and what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.extras import needed
from coalitions.game import FloatVector

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from pandas import DataFrame

    from coalitions.values.estimates import RankCorrelation


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
        from coalitions.drawing.value_tables import estimate_frame

        return estimate_frame(self)

    def to_json(self) -> str:
        """Return a JSON document, as ``coalitions shapley --json`` prints it."""
        from coalitions.drawing.value_tables import estimate_json

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
        from coalitions.drawing.figures import estimate_figure

        return estimate_figure(self, kind, path)

    def _repr_html_(self) -> str:
        """Return a table of the values, as notebooks show it."""
        from coalitions.drawing.value_tables import estimate_shown

        return estimate_shown(self).html

    def __str__(self) -> str:
        """Return the same table as text."""
        from coalitions.drawing.value_tables import estimate_shown

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
        from coalitions.values.estimates import difference

        return difference(self, other)

    def rank_correlation(self, other: Estimate, level: float = 0.95) -> RankCorrelation:
        """Return how far two estimates agree on the order of the players, with an interval.

        See `coalitions.RankCorrelation`.
        """
        from coalitions.values.estimates import rank_correlation

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


# ----------------------------------------------------------------------------------------
# A number for each coalition up to an order


@dataclass(frozen=True, eq=False)
class Interactions:
    """An interaction index of all coalitions up to an order, with errors and cost.

    Attributes
    ----------
    index, order
        Name of the index, and the size of the largest coalitions.
    n_players, labels
        The players and their names.
    coalitions
        The coalitions, smaller ones first; players in ascending order.
    values, stderr
        A number for each coalition, and its standard error; all 0 if the values are exact.
    evaluations, method, reason, degrees_of_freedom, stopped
        As in `Estimate`.

    Examples
    --------
    >>> from coalitions import TableGame, interactions
    >>> glove = TableGame([0, 0, 0, 1, 0, 1, 0, 1], labels=["left", "right", "other"])
    >>> found = interactions(glove, "SII", order=2)
    >>> found[0, 1], found[1, 2], len(found)
    (0.5, -0.5, 6)
    >>> found.named["left", "right"]
    0.5
    >>> found.values_of_order(2)
    {(0, 1): 0.5, (0, 2): 0.5, (1, 2): -0.5}
    """

    index: str
    order: int
    n_players: int
    labels: tuple[str, ...]
    coalitions: tuple[tuple[int, ...], ...]
    values: FloatVector
    stderr: FloatVector
    evaluations: int
    method: str
    reason: str = ""
    degrees_of_freedom: float = np.inf
    stopped: str = ""

    @cached_property
    def _places(self) -> dict[tuple[int, ...], int]:
        return {coalition: place for place, coalition in enumerate(self.coalitions)}

    def __getitem__(self, coalition: object) -> float:
        """Return the index of a coalition: players in any order, or a lone player."""
        players = (coalition,) if isinstance(coalition, int | np.integer) else coalition
        try:
            place = self._places[tuple(sorted(set(players)))]  # type: ignore[call-overload]
        except (TypeError, KeyError):
            raise InvalidInputError(
                f"{coalition!r} is not a coalition of at most {self.order} of the players"
                f" 0 … {self.n_players - 1}"
            ) from None
        return float(self.values[place])

    def __len__(self) -> int:
        """Return the number of coalitions."""
        return len(self.coalitions)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """Return the coalitions one by one."""
        return iter(self.coalitions)

    @property
    def mapping(self) -> dict[tuple[int, ...], float]:
        """The index of each coalition."""
        return dict(zip(self.coalitions, self.values.tolist(), strict=True))

    @property
    def named(self) -> dict[tuple[str, ...], float]:
        """The same by the names of the players."""
        return {tuple(self.labels[i] for i in c): value for c, value in self.mapping.items()}

    def values_of_order(self, size: int) -> dict[tuple[int, ...], float]:
        """Return the index of the coalitions of one size."""
        return {c: value for c, value in self.mapping.items() if len(c) == size}

    def interval(self, level: float = 0.95) -> tuple[FloatVector, FloatVector]:
        """Return the lower and the upper ends of the confidence intervals."""
        same = Estimate(
            self.values,
            self.stderr,
            self.evaluations,
            self.method,
            degrees_of_freedom=self.degrees_of_freedom,
        )
        return same.interval(level)

    def to_frame(self) -> DataFrame:
        """Return a table: the names of a coalition, its size, value and standard error."""
        needed("pandas")
        import pandas as pd

        return pd.DataFrame(
            {
                "coalition": [" × ".join(names) for names in self.named],
                "order": [len(coalition) for coalition in self.coalitions],
                "value": self.values,
                "stderr": self.stderr,
            }
        )

    def plot(self, path: str | Path | None = None) -> Figure:
        """Return a matplotlib figure: players on a circle, lines of pairs, areas of more.

        Parameters
        ----------
        path
            Where to write the picture as well: ``.png``, ``.svg`` or ``.pdf``.

        Raises
        ------
        MissingDependencyError
            matplotlib is not installed.
        """
        from coalitions.drawing.figures import interaction_network

        title = (
            f"{self.index} up to order {self.order}; {self.method}, {self.evaluations} evaluations"
        )
        return interaction_network(self.mapping, self.labels, title, path)

    def _repr_html_(self) -> str:
        """Return a table of the strongest interactions, as notebooks show it."""
        from coalitions.drawing.value_tables import interactions_shown

        return interactions_shown(self).html

    def __str__(self) -> str:
        """Return the same table as text."""
        from coalitions.drawing.value_tables import interactions_shown

        return interactions_shown(self).text

    def to_json(self) -> str:
        """Return a JSON document, as ``coalitions value --json`` prints it."""
        from coalitions.files.opening import json_text

        return json_text(self.document)

    @property
    def document(self) -> dict[str, Any]:
        """What the JSON document holds."""
        numbers = zip(self.named, self.values.tolist(), self.stderr.tolist(), strict=True)
        return {
            "index": self.index,
            "order": self.order,
            "interactions": [
                {"players": list(names), "value": value, "stderr": error}
                for names, value, error in numbers
            ],
            "evaluations": self.evaluations,
            "method": self.method,
            **({"stopped": self.stopped} if self.stopped else {}),
        }
