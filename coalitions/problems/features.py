"""The feature game: what a model says if it knows only some of the features."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import index
from typing import Any, TypeAlias

import numpy as np

from coalitions.checks import whole_number
from coalitions.errors import InvalidInputError, shown, with_keywords
from coalitions.game import BoolMatrix, FloatVector
from coalitions.problems.named import NamedGame, names_of

CELLS_PER_CALL = 1 << 22
"""A call to the model has at most about this many cells, so that memory stays flat."""

Predict: TypeAlias = Callable[[Any], Any]
Groups: TypeAlias = Mapping[Any, Iterable[Any]] | Sequence[Iterable[Any]]


@with_keywords()
def feature_game(
    predict: Predict,
    x: Any,  # noqa: ANN401 (one row of whatever the model takes)
    background: Any,  # noqa: ANN401 (an array or a DataFrame)
    groups: Groups | None = None,
    names: Iterable[Hashable] | None = None,
    *,
    output: int | None = None,
    batch_size: int | None = None,
) -> FeatureGame:
    r"""Return the game of the features of one row: its Shapley values explain a prediction.

    Features outside the coalition are unknown. They are taken from the rows of the background, and
    the predictions are averaged (marginal imputation, [Lundberg2017]_):

    .. math:: v(S) = \frac{1}{|B|} \sum_{b \in B} f(x_S, b_{\bar S})

    Parameters
    ----------
    predict
        The model: a function of a table of rows that returns one number for each, such as
        ``model.predict``, or several, such as ``model.predict_proba`` with `output`.
    x
        The row to explain.
    background
        Rows that stand for what is usual, [b, d] or a DataFrame; a single row is a baseline. A
        hundred rows are plenty: each coalition costs as many predictions.
    groups
        Features that are known or unknown together, as players: ``{"place": ["lat", "lon"], …}``,
        or a list of lists; features by number or name. One that is in no group is always known.
    names
        Names of the features; those of the DataFrame, or numbers, if there are none.
    output
        Which column of the predictions, if there are several.
    batch_size
        Most rows of one call to `predict` (but at least one coalition's).

    Examples
    --------
    A linear model: each feature has its weight times its distance from the mean.

    >>> from coalitions import shapley
    >>> game = feature_game(lambda rows: rows @ [2.0, -1.0, 0.5], [3, 1, 4], [[0, 0, 0], [2, 0, 0]])
    >>> shapley(game).values
    array([ 4., -1.,  2.])
    >>> game = feature_game(lambda rows: rows @ [2.0, -1.0, 0.5], [3, 1, 4], [1, 0, 0],
    ...                     groups={"ends": [0, 2], "middle": [1]})
    >>> game.labels, shapley(game).values
    (('ends', 'middle'), array([ 6., -1.]))
    """
    if not callable(predict):
        raise InvalidInputError(
            f"predict is a {type(predict).__name__}; it must be a function of rows, such as"
            " model.predict"
        )
    usual: Any = background if _is_frame(background) else np.atleast_2d(np.asarray(background))
    if usual.ndim != 2 or not len(usual) or not usual.shape[1]:
        raise InvalidInputError(
            f"the background has shape {np.shape(background)}; expected rows of features"
        )
    mixed = _is_frame(usual) and isinstance(x, list | tuple)  # each value keeps its kind
    row = np.asarray(x, object if mixed else None)
    row = row[0] if row.ndim == 2 and len(row) == 1 else row
    d = usual.shape[1]
    if row.shape != (d,):
        raise InvalidInputError(
            f"the row has shape {np.shape(x)}, but the background has {d} features; explain many"
            " rows by feature_games"
        )
    if _is_frame(usual):
        _check_categories(row, usual)
        names = usual.columns if names is None else names
    features = names_of(names, d, "features")
    players = grouped(groups, features)
    if output is not None:
        output = _output(output)
    rows_per_call = max(1, CELLS_PER_CALL // d)
    if batch_size is not None:
        rows_per_call = whole_number(batch_size, "the batch size", 1)
    return FeatureGame(predict, row, usual, players, output, rows_per_call)


@with_keywords()
def feature_games(
    predict: Predict,
    rows: Any,  # noqa: ANN401 (rows of whatever the model takes)
    background: Any,  # noqa: ANN401 (an array or a DataFrame)
    groups: Groups | None = None,
    names: Iterable[Hashable] | None = None,
    *,
    output: int | None = None,
    batch_size: int | None = None,
) -> tuple[FeatureGame, ...]:
    """Return the games of many rows, one each; the arguments are those of `feature_game`.

    Examples
    --------
    >>> from coalitions import shapley
    >>> games = feature_games(lambda rows: rows.prod(axis=1), [[2, 3], [4, 5]], [1, 1])
    >>> [shapley(game).values.tolist() for game in games]
    [[2.0, 3.0], [9.0, 10.0]]
    """
    table = rows.to_numpy() if _is_frame(rows) else np.asarray(rows)
    if table.ndim != 2:
        raise InvalidInputError(f"the rows have shape {table.shape}; expected [rows, features]")
    labels = None if names is None else tuple(names)
    return tuple(
        feature_game(predict, row, background, groups, labels, output=output, batch_size=batch_size)
        for row in table
    )


class FeatureGame(NamedGame):
    """The game of a row's features; see `feature_game`.

    Attributes
    ----------
    players
        The features that each player stands for, by number.
    """

    def __init__(
        self,
        predict: Predict,
        row: Any,  # noqa: ANN401 (a vector of any kind)
        background: Any,  # noqa: ANN401
        players: Mapping[str, tuple[int, ...]],
        output: int | None,
        rows_per_call: int,
    ) -> None:
        self.predict = predict
        self.row = row
        self.background = background
        self.labels = tuple(players)
        self.players = tuple(players.values())
        self.output = output
        self.rows_per_call = rows_per_call

    def _values(self, rows: BoolMatrix) -> FloatVector:
        known = np.ones((len(rows), len(self.row)), np.bool_)
        for player, features in enumerate(self.players):
            known[:, features] = rows[:, [player]]
        size = len(self.background)
        step = max(1, self.rows_per_call // size)
        values = np.empty(len(rows))
        for start in range(0, len(rows), step):
            part = known[start : start + step]
            answers = self._predictions(self._imputed(part), len(part) * size)
            values[start : start + step] = answers.reshape(-1, size).mean(axis=1)
        return values

    def _imputed(self, known: BoolMatrix) -> Any:  # noqa: ANN401 (an array or a DataFrame)
        """Return the rows to predict: for each coalition the whole background, the known set."""
        if not _is_frame(self.background):
            table = np.where(known[:, None, :], self.row, self.background)
            return table.reshape(-1, table.shape[2])
        # Column by column, so that each keeps its kind.
        size = len(self.background)
        every = np.tile(np.arange(size), len(known))
        columns = {}
        for k, name in enumerate(self.background.columns):
            here, column = np.repeat(known[:, k], size), self.background.iloc[:, k]
            if _has_categories(column):
                columns[name] = column.array.take(every)
                columns[name][here] = self.row[k]
            else:
                columns[name] = np.where(here, np.asarray(self.row[k]), column.to_numpy()[every])
        return type(self.background)(columns)

    def _predictions(self, table: Any, n_rows: int) -> FloatVector:  # noqa: ANN401
        answer = np.asarray(self.predict(table))
        outputs = answer.shape[1] if answer.ndim == 2 else 1
        if self.output is None and outputs > 1:
            raise InvalidInputError(
                f"the model has {outputs} outputs; say which one to explain: output=…"
            )
        output = self.output or 0
        if not -outputs <= output < outputs:
            raise InvalidInputError(
                f"the output is {output}, but the number of outputs is {outputs}, counted from 0"
            )
        if answer.ndim == 2:
            answer = answer[:, output]
        if answer.shape != (n_rows,) or answer.dtype.kind not in "biuf":
            raise InvalidInputError(
                f"the model was asked for {n_rows} rows and answered with an array of shape"
                f" {answer.shape} of {answer.dtype}; expected one number for each row"
            )
        return answer.astype(np.float64)


def _is_frame(table: Any) -> bool:  # noqa: ANN401 (pandas is not ours to import)
    return hasattr(table, "columns") and hasattr(table, "iloc")


def _output(output: object) -> int:
    try:
        return index(output)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidInputError(
            f"the output is {shown(output)}; it must be a whole number, the column of the"
            " predictions to explain"
        ) from None


def _has_categories(column: Any) -> bool:  # noqa: ANN401
    return hasattr(column.dtype, "categories")


def _check_categories(row: Any, background: Any) -> None:  # noqa: ANN401
    """Refuse a value that is none of the categories of its column."""
    for k, name in enumerate(background.columns):
        column = background.iloc[:, k]
        if _has_categories(column):
            try:
                column.array[:1].copy()[:] = row[k]
            except TypeError:
                raise InvalidInputError(
                    f"the row has {shown(row[k])} as {shown(name)}, which is none of the"
                    f" categories of the background: {shown(column.dtype.categories.tolist())}"
                ) from None


def grouped(groups: Groups | None, features: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Return the features of each player, by number."""
    if groups is None:
        return {name: (k,) for k, name in enumerate(features)}
    if not isinstance(groups, Iterable):
        raise InvalidInputError(
            f"groups are {shown(groups)}; expected lists of features, such as {{'place': [0, 1]}}"
        )
    named = groups if isinstance(groups, Mapping) else dict(enumerate(groups))
    players: dict[str, tuple[int, ...]] = {}
    owner: dict[int, str] = {}
    for name, members in named.items():
        label = str(name)
        if label in players:
            raise InvalidInputError(f"two groups are named {shown(label)}; each needs its own name")
        if not isinstance(members, Iterable):
            raise InvalidInputError(
                f"the group {shown(label)} is {shown(members)}; expected a list of features, such"
                f" as [{shown(members)}]"
            )
        listed = [members] if isinstance(members, str) else list(members)
        players[label] = tuple(_feature(member, features) for member in listed)
        if not listed:
            raise InvalidInputError(f"the group {shown(label)} has no features")
        for feature in players[label]:
            if owner.setdefault(feature, label) != label:
                raise InvalidInputError(
                    f"the feature {shown(features[feature])} is in two groups,"
                    f" {shown(owner[feature])} and {shown(label)}"
                )
    if not players:
        raise InvalidInputError("there are no groups of features, so there are no players")
    return players


def _feature(member: Any, features: tuple[str, ...]) -> int:  # noqa: ANN401 (a name or a number)
    if str(member) in features and isinstance(member, str):
        return features.index(member)
    try:
        number = index(member)
    except TypeError:
        number = -1
    if not 0 <= number < len(features):
        raise InvalidInputError(
            f"{shown(member)} is no feature; expected a name or a number from 0 to"
            f" {len(features) - 1}"
        )
    return number
