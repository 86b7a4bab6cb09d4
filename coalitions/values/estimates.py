"""Several results: two beside each other, or those of many games with the same players."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coalitions.drawing.figures import MORE, drawn
from coalitions.drawing.pictures import new_figure
from coalitions.errors import InvalidInputError
from coalitions.formatting import figure, fitting
from coalitions.game import FloatMatrix, FloatVector, Game
from coalitions.results import MOST_ROWS, PublicResult, Row, SmallTable
from coalitions.values.estimate import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# ----------------------------------------------------------------------------------------
# Two results: what differs, and how far they agree on the order


@dataclass(frozen=True)
class RankCorrelation(PublicResult):
    r"""Kendall's rank correlation of two results, and what it can be at least and at most.

    .. math:: \tau = \frac{2}{n(n-1)} \sum_{i<j}
              \operatorname{sign}(\phi_i - \phi_j)\,\operatorname{sign}(\psi_i - \psi_j)

    A pair of players counts +1 if both results put it in the same order, −1 if not, and 0 for a
    tie. For the ends a pair whose order one of the results has not settled may count either way.
    Settled means that the intervals of the two players lie apart, all intervals together holding
    with the confidence `level`. So the true correlation lies between the ends with that
    confidence, if the standard errors are right; usually well inside.

    Attributes
    ----------
    value
        The correlation of the estimates themselves.
    low, high
        The ends.
    confidence
        The confidence of the interval.
    """

    value: float
    low: float
    high: float
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Return the correlation, its ends and their confidence."""
        return dict(vars(self))

    def _rows(self) -> list[Row]:
        return [self.to_dict()]


def difference(one: Estimate, other: Estimate) -> Estimate:
    """Return the first minus the second; see `Estimate.difference`."""
    other = _matched(one, other)
    variance, other_variance = one.stderr**2, other.stderr**2
    stderr = np.sqrt(variance + other_variance)
    # Welch and Satterthwaite, player by player; the least serves all.
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = variance**2 / one.degrees_of_freedom + other_variance**2 / other.degrees_of_freedom
        freedom = np.where(parts > 0, stderr**4 / parts, np.inf)
    return Estimate(
        values=one.values - other.values,
        stderr=stderr,
        evaluations=one.evaluations + other.evaluations,
        method="difference",
        reason=f"{one.method} minus {other.method}, their errors taken as independent",
        degrees_of_freedom=float(freedom.min()),
        labels=one.labels,
        base=None if one.base is None or other.base is None else one.base - other.base,
    )


def rank_correlation(one: Estimate, other: Estimate, confidence: float) -> RankCorrelation:
    """Return the correlation and its ends; see `RankCorrelation`."""
    other = _matched(one, other)
    n = len(one.values)
    if n < 2:
        raise InvalidInputError("a rank correlation needs the values of two players or more")
    if not 0 < confidence < 1:
        raise InvalidInputError(f"the confidence is {confidence}; it must lie between 0 and 1")
    each = 1 - (1 - confidence) / (2 * n)  # Bonferroni: 2 n intervals
    ends = [*one.interval(each), *other.interval(each)]
    value = low = high = 0.0
    for k in range(n - 1):  # row by row: all pairs at once would be n² numbers
        agree = _signs(one.values, k) * _signs(other.values, k)
        value += float(agree.sum())
        first, second = _settled(ends[0], ends[1], k), _settled(ends[2], ends[3], k)
        sure = ~np.isnan(first) & ~np.isnan(second)
        known = float((first[sure] * second[sure]).sum())
        # A tie that is certain in one of them counts 0 whatever the other says.
        open_ = ~sure & ~((first == 0) | (second == 0))
        unsure = int(np.count_nonzero(open_))
        low += known - unsure
        high += known + unsure
    pairs = n * (n - 1) / 2
    return RankCorrelation(value / pairs, low / pairs, high / pairs, confidence)


def _signs(values: FloatVector, player: int) -> FloatVector:
    signs: FloatVector = np.sign(values[player] - values[player + 1 :])
    return signs


def _settled(low: FloatVector, high: FloatVector, player: int) -> FloatVector:
    """Return the order of a player and each later one: 1, −1, 0 for a tie, NaN if it is open."""
    later_low, later_high = low[player + 1 :], high[player + 1 :]
    tie = (low[player] == high[player]) & (later_low == later_high) & (later_low == low[player])
    order: FloatVector = np.select(
        [low[player] > later_high, high[player] < later_low, tie], [1.0, -1.0, 0.0], np.nan
    )
    return order


def _matched(one: Estimate, other: Estimate) -> Estimate:
    """Return the other estimate with its players in the order of the first."""
    if not isinstance(other, Estimate):
        raise InvalidInputError(f"a {type(other).__name__} cannot be compared with an estimate")
    if set(one.names) != set(other.names) or one.values.shape != other.values.shape:
        raise InvalidInputError(
            f"the results are about different players: {len(one.names)} and {len(other.names)},"
            f" {len(set(one.names) & set(other.names))} of them the same; compare results of the"
            " same players"
        )
    place = {name: player for player, name in enumerate(other.names)}
    order = [place[name] for name in one.names]
    return replace(other, values=other.values[order], stderr=other.stderr[order])


# ----------------------------------------------------------------------------------------
# Many games with the same players, such as the rows that a model explains

SHOWN_PLAYERS = 20
"""Players in a picture of many rows: those that matter most."""

UNKNOWN = "#7F7F7F"
"""Colour of a point whose feature is no number."""


class Estimates(PublicResult, Sequence[Estimate]):
    """Results of many games with the same players: rows that a model was asked to explain.

    Parameters
    ----------
    results
        One estimate for each game, of the same players in the same order.
    games
        The games, as `feature_games` returns them; then a picture knows the features of each row.

    Attributes
    ----------
    labels
        Names of the players.
    values, stderr
        The values and their errors [rows, players].
    data
        What each player stands for in each row [rows, players], where it is one feature that is a
        number; NaN elsewhere.

    Examples
    --------
    >>> from coalitions import feature_games, shapley
    >>> games = feature_games(lambda rows: rows.prod(axis=1), [[2, 3], [4, 5]], [1, 1])
    >>> rows = Estimates([shapley(game) for game in games], games)
    >>> rows.values.tolist(), rows.data.tolist()
    ([[2.0, 3.0], [9.0, 10.0]], [[2.0, 3.0], [4.0, 5.0]])
    """

    labels: tuple[str, ...]
    values: FloatMatrix
    stderr: FloatMatrix
    data: FloatMatrix

    def __init__(self, results: Iterable[Estimate], games: Iterable[Game] | None = None) -> None:
        self._results = tuple(results)
        if not self._results or not all(isinstance(one, Estimate) for one in self._results):
            raise InvalidInputError("give the results of one game or more, as shapley returns them")
        self.labels = self._results[0].names
        if any(one.names != self.labels for one in self._results):
            raise InvalidInputError("the results are about different players; show them one by one")
        self.values = np.array([one.values for one in self._results])
        self.stderr = np.array([one.stderr for one in self._results])
        self.data = np.full(self.values.shape, np.nan)
        if games is not None:
            listed = tuple(games)
            if len(listed) != len(self._results):
                raise InvalidInputError(
                    f"there are {len(self._results)} results and {len(listed)} games; give as many,"
                    " in order"
                )
            for row, game in enumerate(listed):
                self.data[row] = _features(game, len(self.labels))

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self._results)

    def __getitem__(self, row: Any) -> Any:  # noqa: ANN401 (a number or a slice)
        return self._results[row]

    @property
    def importance(self) -> FloatVector:
        """The mean size of each player's values, |φ|."""
        sizes: FloatVector = np.abs(self.values).mean(axis=0)
        return sizes

    @property
    def named(self) -> dict[str, float]:
        """The mean size of each player's values, by its name."""
        return dict(zip(self.labels, self.importance.tolist(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values of each estimate, in order."""
        return {"rows": [one.to_dict() for one in self]}

    def _rows(self) -> list[Row]:
        return [{"row": number, **line} for number, one in enumerate(self) for line in one._rows()]

    def plot(self, kind: str = "beeswarm", path: str | Path | None = None) -> Figure:
        """Return a matplotlib figure.

        Parameters
        ----------
        kind
            ``"beeswarm"`` has a point for each row and player, coloured by the feature's own size;
            ``"bar"`` the mean size of each player's values.
        path
            Where to write the picture as well: ``.png``, ``.svg`` or ``.pdf``.

        Raises
        ------
        MissingDependencyError
            matplotlib is not installed.
        """
        return drawn({"beeswarm": _beeswarm, "bar": _means}, kind, path, self)

    def _shown(self) -> SmallTable:
        """Return a table of the players by the mean size of their values."""
        order = np.argsort(-self.importance, kind="stable")[:MOST_ROWS]
        rows = [
            [
                self.labels[player],
                figure(self.importance[player], 6),
                f"{figure(self.values[:, player].min(), 4)} …"
                f" {figure(self.values[:, player].max(), 4)}",
            ]
            for player in order
        ]
        if len(self.labels) > MOST_ROWS:
            rows.append(["…", f"({len(self.labels) - MOST_ROWS} more)"])
        return SmallTable(["player", "mean size", "from … to"], rows, f"{len(self)} rows")

    def __repr__(self) -> str:
        return f"Estimates({len(self)} rows, {len(self.labels)} players)"


def _features(game: Any, n_players: int) -> FloatVector:  # noqa: ANN401 (any game)
    """Return the number behind each player of a row's game; NaN where there is none."""
    numbers = np.full(n_players, np.nan)
    row, players = getattr(game, "row", None), getattr(game, "players", None)
    if row is not None and players is not None and len(players) == n_players:
        for player, features in enumerate(players):
            if len(features) == 1:
                try:
                    numbers[player] = float(row[features[0]])
                except (TypeError, ValueError):  # a word
                    continue
    return numbers


def _shown(rows: Estimates) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.argsort(-rows.importance, kind="stable")[:SHOWN_PLAYERS]


def _means(rows: Estimates) -> Figure:
    order = _shown(rows)
    figure_ = new_figure(7, 1.2 + 0.3 * len(order))
    axes = figure_.subplots()
    axes.barh(range(len(order)), rows.importance[order], color=MORE, height=0.7)
    _finish(axes, rows, order, "mean size of the values")
    return figure_


def _beeswarm(rows: Estimates) -> Figure:
    order = _shown(rows)
    figure_ = new_figure(8, 1.4 + 0.42 * len(order))
    axes = figure_.subplots()
    span = float(np.ptp(rows.values[:, order])) or 1.0
    picture = None
    for place, player in enumerate(order):
        values, features = rows.values[:, player], rows.data[:, player]
        heights = place + swarm(values, span)
        known = np.isfinite(features)
        axes.scatter(values[~known], heights[~known], s=12, c=UNKNOWN, linewidths=0)
        if known.any():
            picture = axes.scatter(
                values[known], heights[known], s=12, c=_share(features[known]), cmap="coolwarm",
                vmin=0.0, vmax=1.0, linewidths=0,
            )  # fmt: skip
    axes.axvline(0, color="black", linewidth=0.8)
    _finish(axes, rows, order, "value, a point for each row")
    if picture is not None:
        scale = figure_.colorbar(picture, ax=axes, ticks=[0, 1], aspect=40)
        scale.ax.set_yticklabels(["low", "high"])
        scale.set_label("feature")
    return figure_


def swarm(values: FloatVector, span: float) -> FloatVector:
    """Return how far from the middle of its line each point lies, so that few cover others.

    Points of nearly the same value stand in turn above and below the line.

    Examples
    --------
    >>> swarm(np.array([0.0, 0.0, 1.0, 0.0]), 1.0).round(2).tolist()
    [0.0, 0.07, 0.0, -0.07]
    """
    bins = np.round(values / span * 80).astype(np.int64)
    offsets = np.zeros(len(values))
    for number in np.unique(bins):
        points = np.flatnonzero(bins == number)
        k = np.arange(len(points))
        steps = (k + 1) // 2 * np.where(k % 2, 1.0, -1.0)
        widest = max(1.0, float(np.abs(steps).max()))
        offsets[points] = steps * min(0.07, 0.4 / widest)
    return offsets + 0.0


def _share(features: FloatVector) -> FloatVector:
    """Return where each number stands between the 5 % smallest and the 5 % largest."""
    low, high = np.quantile(features, [0.05, 0.95])
    if high <= low:
        low, high = features.min(), features.max()
    shares: FloatVector = np.clip((features - low) / ((high - low) or 1.0), 0.0, 1.0)
    return shares


def _finish(axes: Any, rows: Estimates, order: Any, below: str) -> None:  # noqa: ANN401
    axes.set_yticks(range(len(order)), [fitting(rows.labels[player]) for player in order])
    axes.invert_yaxis()
    axes.set_xlabel(below)
    left = len(rows.labels) - len(order)
    more = f", the {len(order)} that matter most of {len(rows.labels)} players" if left else ""
    axes.set_title(f"{len(rows)} rows{more}", fontsize=10)
    axes.spines[["right", "top"]].set_visible(False)
