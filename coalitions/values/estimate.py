"""Results: values, or interactions, with their errors and what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.formatting import figure
from coalitions.game import FloatMatrix, FloatVector
from coalitions.results import MOST_ROWS, PublicResult, Row, SmallTable
from coalitions.structure import Labels, numbering

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from coalitions.values.estimates import RankCorrelation


@dataclass(frozen=True, eq=False)
class Estimate(PublicResult):
    """Values of players with their errors, and what they cost.

    ``estimate["ann"]`` and ``estimate[0]`` are a player's value, ``len`` is the number of players,
    and ``np.asarray(estimate)`` are the values.

    Attributes
    ----------
    values
        The value of each player [n].
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

    @classmethod
    def exact(
        cls,
        values: FloatVector,
        labels: tuple[str, ...],
        evaluations: int,
        reason: str = "",
        **more: Any,  # noqa: ANN401 (what a subclass has more)
    ) -> Self:
        """Return values without errors."""
        return cls(
            values, np.zeros(len(values)), evaluations, "exact", reason, labels=labels, **more
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the players, or their numbers."""
        return self.labels or tuple(map(str, range(len(self.values))))

    @property
    def named(self) -> dict[str, float]:
        """The value of each player by its name.

        Examples
        --------
        >>> from coalitions import cost_game, shapley
        >>> shapley(cost_game({"ann": 3, "bob": 5, ("ann", "bob"): 6})).named
        {'ann': 2.0, 'bob': 4.0}
        """
        return dict(zip(self.names, self.values.tolist(), strict=True))

    def __getitem__(self, player: Any) -> Any:  # noqa: ANN401 (a player, or a list of them)
        """Return the value of a player, by name or by number, or those of a list of players."""
        number = numbering(Labels(self.names))
        if isinstance(player, list | np.ndarray):
            return self.values[[number(each) for each in player]]
        return float(self.values[number(player)])

    def __len__(self) -> int:
        """Return the number of players."""
        return len(self.values)

    def __iter__(self) -> Iterator[float]:
        """Return the values one by one."""
        return iter(self.values.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:  # noqa: ANN401
        """Return the values."""
        return np.array(self.values, dtype, copy=copy is not False)

    def to_dict(self) -> dict[str, Any]:
        """Return values and errors by name, what they cost and where they come from."""
        return {
            "values": self.named,
            "stderr": dict(zip(self.names, self.stderr.tolist(), strict=True)),
            "evaluations": self.evaluations,
            "method": self.method,
            "reason": self.reason,
            "base": self.base,
            "stopped": self.stopped,
        }

    def _rows(self) -> list[Row]:
        columns = [self.values, self.stderr, *self.interval()]
        numbers = zip(*(column.tolist() for column in columns), strict=True)
        return [
            {"player": name, "value": value, "stderr": error, "low": low, "high": high}
            for name, (value, error, low, high) in zip(self.names, numbers, strict=True)
        ]

    def _below(self) -> str:
        stopped = f"; stopped: {self.stopped}" if self.stopped else ""
        return f"{self.method}, {self.evaluations} evaluations{stopped}"

    def _shown(self) -> SmallTable:
        """Return a table of the largest values, and below it where they come from."""
        return largest_shown(self._rows(), self._below(), exact=not self.stderr.any())

    def plot(self, kind: str | None = None, path: str | Path | None = None) -> Figure:
        """Return a matplotlib figure of the values.

        Parameters
        ----------
        kind
            ``"bar"``, the default, has the 95 % intervals; ``"waterfall"`` goes from the value of
            the empty coalition to that of all players, one step for each, and ``"force"`` shows
            the same in one line.
        path
            Where to write the picture as well: ``.png``, ``.svg`` or ``.pdf``.

        Raises
        ------
        MissingDependencyError
            matplotlib is not installed.
        """
        from coalitions.drawing.figures import estimate_figure

        return estimate_figure(self, kind, path)

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

    def rank_correlation(self, other: Estimate, confidence: float = 0.95) -> RankCorrelation:
        """Return how far two estimates agree on the order of the players, with an interval.

        See `coalitions.RankCorrelation`.
        """
        from coalitions.values.estimates import rank_correlation

        return rank_correlation(self, other, confidence)

    def interval(self, confidence: float = 0.95) -> tuple[FloatVector, FloatVector]:
        """Return the lower and the upper ends of the confidence intervals.

        Examples
        --------
        >>> estimate = Estimate(np.array([1.0]), np.array([0.1]), 20, "permutation")
        >>> [round(float(end[0]), 3) for end in estimate.interval()]
        [0.804, 1.196]
        """
        half = self.standard_errors(confidence) * self.stderr
        return self.values - half, self.values + half

    def standard_errors(self, confidence: float) -> float:
        """Return how many standard errors an interval reaches to either side."""
        return standard_errors(confidence, self.degrees_of_freedom)


def standard_errors(confidence: float, degrees_of_freedom: float) -> float:
    """Return how many standard errors an interval reaches to either side."""
    from scipy.special import ndtri, stdtrit

    if not 0 < confidence < 1:
        raise InvalidInputError(f"the confidence is {confidence}; it must lie between 0 and 1")
    tail = (1 + confidence) / 2
    finite = np.isfinite(degrees_of_freedom)
    return float(stdtrit(max(1.0, degrees_of_freedom), tail) if finite else ndtri(tail))


def largest_shown(rows: list[Row], below: str, *, exact: bool) -> SmallTable:
    """Return a table of the rows with the largest values, with their errors if there are any."""
    cells = [
        {name: each for name, each in row.items() if name not in ("stderr", "low", "high")}
        | (
            {}
            if exact
            else {
                "± standard error": figure(row["stderr"], 2),
                "95 % interval": f"{figure(row['low'], 4)} … {figure(row['high'], 4)}",
            }
        )
        for row in sorted(rows, key=lambda row: -abs(row["value"]))[:MOST_ROWS]
    ]
    return SmallTable.of(cells, below, left_out=len(rows) - MOST_ROWS)


# ----------------------------------------------------------------------------------------
# A number for each coalition up to an order


@dataclass(frozen=True, eq=False)
class Interactions(PublicResult):
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

    @property
    def matrix(self) -> FloatMatrix:
        """The interactions of pairs [n, n], symmetric with a zero diagonal."""
        matrix = np.zeros((self.n_players, self.n_players))
        for (one, other), value in self.values_of_order(2).items():
            matrix[one, other] = matrix[other, one] = value
        return matrix

    def interval(self, confidence: float = 0.95) -> tuple[FloatVector, FloatVector]:
        """Return the lower and the upper ends of the confidence intervals."""
        half = standard_errors(confidence, self.degrees_of_freedom) * self.stderr
        return self.values - half, self.values + half

    def to_dict(self) -> dict[str, Any]:
        """Return the index of each coalition with its error, and what it cost."""
        numbers = zip(self.coalitions, self.values.tolist(), self.stderr.tolist(), strict=True)
        return {
            "index": self.index,
            "order": self.order,
            "interactions": [
                {"coalition": [self.labels[i] for i in c], "value": value, "error": error}
                for c, value, error in numbers
            ],
            "evaluations": self.evaluations,
            "method": self.method,
            "reason": self.reason,
            "stopped": self.stopped,
        }

    def _rows(self) -> list[Row]:
        columns = [self.values, self.stderr, *self.interval()]
        numbers = zip(*(column.tolist() for column in columns), strict=True)
        return [
            {"coalition": names, "order": len(names), "value": value, "stderr": error}
            | {"low": low, "high": high}
            for names, (value, error, low, high) in zip(self.named, numbers, strict=True)
        ]

    def _shown(self) -> SmallTable:
        """Return a table of the strongest interactions, and below it where they come from."""
        rows = [
            {"players": " × ".join(row["coalition"]) or "nobody"}
            | {name: row[name] for name in ("value", "stderr", "low", "high")}
            for row in self._rows()
        ]
        stopped = f"; stopped: {self.stopped}" if self.stopped else ""
        below = f"{self.index}; {self.method}, {self.evaluations} evaluations{stopped}"
        return largest_shown(rows, below, exact=not self.stderr.any())

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
