"""Estimates: the values of many games with the same players, a row each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coalitions.characters import figure, fitting
from coalitions.drawing.pictures import new_figure
from coalitions.errors import InvalidInputError
from coalitions.extras import needed
from coalitions.files.text import json_text
from coalitions.game import FloatMatrix, FloatVector, Game
from coalitions.results.figures import MORE, drawn
from coalitions.results.tables import MOST_ROWS, SmallTable, estimate_document
from coalitions.sampling.estimator import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

SHOWN_PLAYERS = 20
"""Players in a picture of many rows: those that matter most."""

UNKNOWN = "#7F7F7F"
"""Colour of a point whose feature is no number."""


class Estimates(Sequence[Estimate]):
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
        if any(one.names != self.labels or one.values.ndim != 1 for one in self._results):
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

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each game and a column for each player.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        needed("pandas")
        import pandas as pd

        return pd.DataFrame(self.values, columns=list(self.labels))

    def to_json(self) -> str:
        """Return a JSON list with the document of each estimate."""
        return json_text([estimate_document(one) for one in self])

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

    def _repr_html_(self) -> str:
        """Return a table of the players by the mean size of their values, as notebooks show it."""
        return self._shown.html

    def __str__(self) -> str:
        """Return the same table as text."""
        return self._shown.text

    @property
    def _shown(self) -> SmallTable:
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
