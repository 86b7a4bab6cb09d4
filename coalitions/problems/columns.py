"""The column game: what a model can do if it is trained with some of the columns only."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from coalitions.errors import InvalidInputError, with_keywords
from coalitions.game import BoolMatrix, FloatVector
from coalitions.problems.data import DataGame, data_game
from coalitions.problems.features import Groups, grouped
from coalitions.problems.metrics import Metric
from coalitions.problems.named import NamedGame, names_of
from coalitions.runtime import one_blas_thread


@with_keywords()
def column_game(
    model: Any,  # noqa: ANN401 (whatever has fit and predict)
    X: Any,  # noqa: ANN401 (a table of numbers)
    y: Any,  # noqa: ANN401
    X_test: Any,  # noqa: ANN401
    y_test: Any,  # noqa: ANN401
    groups: Groups | None = None,
    names: Iterable[Hashable] | None = None,
    metric: str | Metric = "accuracy",
    *,
    empty: float | None = None,
) -> ColumnGame:
    """Return the game in which columns are worth what a model that was trained with them can do.

    It tells which columns matter for the whole of the data; `feature_game` explains one row. The
    model, the metric and `empty` are those of `data_game`; groups and names those of
    `feature_game`, but a column in no group is never used.

    Examples
    --------
    >>> from coalitions import shapley
    >>> class Line:  # least squares through the origin
    ...     def fit(self, X, y):
    ...         self.weights = np.linalg.lstsq(X, y, rcond=None)[0]
    ...     def predict(self, X):
    ...         return X @ self.weights
    >>> X, y = np.array([[1, 2], [0, 0], [2, 1], [-1, 1]]), [1.0, 0.0, 2.0, -1.0]
    >>> shapley(column_game(Line(), X, y, X, y, metric="r2")).values.round(6)
    array([0.95, 0.05])
    """
    data = data_game(
        model, np.asarray(X), y, np.asarray(X_test), y_test, metric=metric, empty=empty
    )
    if names is None and hasattr(X, "columns"):
        names = X.columns
    players = grouped(groups, names_of(names, data.X.shape[1], "columns"))
    return ColumnGame(data, players)


class ColumnGame(NamedGame):
    """The game of the columns of a table; see `column_game`."""

    def __init__(self, data: DataGame, players: dict[str, tuple[int, ...]]) -> None:
        self.data = data
        self.labels = tuple(players)
        self.players = tuple(players.values())

    def _values(self, rows: BoolMatrix) -> FloatVector:
        with one_blas_thread():
            return np.array([self._value(row) for row in rows], np.float64)

    def _value(self, row: BoolMatrix) -> float:
        data = self.data
        if not row.any():
            return data.value_of_nothing()
        used = sorted(k for player in np.flatnonzero(row) for k in self.players[player])
        model = copy.deepcopy(data.model)
        try:
            model.fit(data.X[:, used], data.y)
            predicted = model.predict(data.X_test[:, used])
        except ValueError as error:
            raise InvalidInputError(
                f"the model cannot be trained on columns {used[:9]} ({error})"
            ) from error
        return data.measured(predicted)
