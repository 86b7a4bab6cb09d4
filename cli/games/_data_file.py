"""Games of a table of data: its rows, its sources or its columns, judged by a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cli.games._game_file import tell
from coalitions.errors import InvalidInputError, UnknownNameError, did_you_mean
from coalitions.extras import needed

if TYPE_CHECKING:
    from coalitions.files.records import Column
    from coalitions.problems.named import NamedGame

MODELS = {
    "linear": ("sklearn.linear_model", "LogisticRegression", "Ridge"),
    "forest": ("sklearn.ensemble", "RandomForestClassifier", "RandomForestRegressor"),
    "nearest": ("sklearn.neighbors", "KNeighborsClassifier", "KNeighborsRegressor"),
    "tree": ("sklearn.tree", "DecisionTreeClassifier", "DecisionTreeRegressor"),
}
"""Where each model is, and what it is called for classes and for numbers."""

MOST_CLASSES = 20
"""Whole numbers with more different values than this are predicted as numbers."""

TEST_SHARE = 0.25
"""The share of the rows that the model is judged by."""


@dataclass(frozen=True)
class DataQuestion:
    """A table and what is asked of it."""

    file: str
    target: str
    model: str
    units: str
    seed: int


def read_data_game(asked: DataQuestion) -> tuple[NamedGame, dict[str, Any]]:
    """Return the game of a table, and what was understood."""
    needed("sklearn")
    if asked.model not in MODELS:
        raise UnknownNameError(
            f"there is no model named {asked.model!r}; {did_you_mean(asked.model, MODELS)}there"
            f" are: {', '.join(MODELS)}"
        )
    import numpy as np

    from coalitions.files.records import read_records
    from coalitions.problems.columns import column_game
    from coalitions.problems.data import data_game

    if asked.file.lower().endswith((".xlsx", ".xls", ".ods")):
        raise InvalidInputError(f"{asked.file}: a table of data is text; save the sheet as .csv")
    records = read_records(asked.file)
    table = dict(records.columns)
    source = None if asked.units in ("points", "features") else asked.units
    for column in (asked.target, source):
        if column is not None and column not in table:
            raise UnknownNameError(
                f"{asked.file}: has no column {column!r}; {did_you_mean(column, table)}there are:"
                f" {', '.join(table)}"
            )
    y, classes = _targets(table.pop(asked.target), asked)
    owner = None if source is None else _names(table.pop(source))
    if not table:
        raise InvalidInputError(f"{asked.file}: has no column left to predict from")
    X, groups = _inputs(table, records.lines.tolist(), asked.file)
    order = np.random.default_rng(asked.seed).permutation(len(y))
    cut = max(1, round(len(y) * TEST_SHARE))
    test, train = np.sort(order[:cut]), np.sort(order[cut:])
    if len(train) < 2:
        raise InvalidInputError(f"{asked.file}: has {len(y)} rows, which is too few to learn from")
    if records.notes:
        tell(f"{asked.file}: read with {' and '.join(records.notes)}")
    split = X[train], y[train], X[test], y[test]
    metric = "accuracy" if classes else "r2"
    understood = {"metric": metric, "train": len(train), "test": len(test)}
    module, classifier, regressor = MODELS[asked.model]
    model = getattr(import_module(module), classifier if classes else regressor)()
    scaled = import_module("sklearn.pipeline").make_pipeline(
        import_module("sklearn.preprocessing").StandardScaler(), model
    )
    least = model.get_params().get("n_neighbors", 2)
    if asked.units == "features":
        return column_game(scaled, *split, groups, metric=metric), understood
    if owner is None:
        lines = [str(records.lines[row]) for row in train]
        return data_game(
            scaled, *split, metric=metric, names=lines, least_points=least, seed=asked.seed
        ), understood
    game = data_game(
        scaled, *split, "groups", metric, groups=owner[train], least_points=least, seed=asked.seed
    )
    return game, understood


def _targets(column: Column, asked: DataQuestion) -> tuple[Any, bool]:
    """Return the targets, and whether they are classes."""
    import numpy as np

    if column.dtype == object:
        if "" in column:
            raise InvalidInputError(f"{asked.file}: the target {asked.target} has blank cells")
        if len(set(column)) < 2:
            raise InvalidInputError(
                f"{asked.file}: the target {asked.target} is the same everywhere"
            )
        return column.astype(str), True
    if np.isnan(column).any():
        raise InvalidInputError(f"{asked.file}: the target {asked.target} has blank cells")
    whole = (column == np.round(column)).all()
    classes = bool(whole and len(np.unique(column)) <= MOST_CLASSES)
    if len(np.unique(column)) < 2:
        raise InvalidInputError(f"{asked.file}: the target {asked.target} is the same everywhere")
    return column, classes


def _inputs(
    table: dict[str, Column], lines: Sequence[int], file: str
) -> tuple[Any, dict[str, list[int]]]:
    """Return the columns as numbers, words one column each, and which belong together."""
    import numpy as np

    parts: list[Any] = []
    groups: dict[str, list[int]] = {}
    for name, column in table.items():
        words = column.dtype == object
        blank = column == "" if words else np.isnan(column)
        if blank.any():
            raise InvalidInputError(
                f"{file}: column {name} has a blank cell in row {lines[int(blank.argmax())]};"
                " fill it in"
            )
        pieces = [column]
        if words:
            texts = column.astype(str)
            pieces = [(texts == word).astype(float) for word in np.unique(texts)]
        groups[name] = list(range(len(parts), len(parts) + len(pieces)))
        parts += pieces
    return np.stack(parts, axis=1), groups


def _names(column: Column) -> Any:  # noqa: ANN401 (an array of texts)
    """Return who owns each row, in words: 7, not 7.0."""
    import numpy as np

    return np.array([cell if isinstance(cell, str) else f"{cell:g}" for cell in column])
