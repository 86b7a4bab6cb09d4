"""Games of a table of data: its rows, its sources or its columns, judged by a trained model."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from coalitions.errors import InvalidInputError, UnknownNameError, did_you_mean
from coalitions.extras import needed

if TYPE_CHECKING:
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

    from coalitions.problems.columns import column_game
    from coalitions.problems.data import data_game

    table = _read(asked.file)
    source = None if asked.units in ("points", "features") else asked.units
    for column in (asked.target, source):
        if column is not None and column not in table:
            raise UnknownNameError(
                f"{asked.file}: has no column {column!r}; {did_you_mean(column, table)}there are:"
                f" {', '.join(table)}"
            )
    y, classes = _targets(table.pop(asked.target), asked)
    owner = None if source is None else np.array(table.pop(source))
    if not table:
        raise InvalidInputError(f"{asked.file}: has no column left to predict from")
    X, groups = _inputs(table, asked.file)
    order = np.random.default_rng(asked.seed).permutation(len(y))
    cut = max(1, round(len(y) * TEST_SHARE))
    test, train = np.sort(order[:cut]), np.sort(order[cut:])
    if len(train) < 2:
        raise InvalidInputError(f"{asked.file}: has {len(y)} rows, which is too few to learn from")
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
        lines = [str(row + 2) for row in train]  # the header is line 1
        return data_game(
            scaled, *split, metric=metric, names=lines, least_points=least, seed=asked.seed
        ), understood
    game = data_game(
        scaled, *split, "groups", metric, groups=owner[train], least_points=least, seed=asked.seed
    )
    return game, understood


def _read(file: str) -> dict[str, list[str]]:
    """Return the columns of a table with a header."""
    from coalitions.files.opening import opened
    from coalitions.files.text import decoded

    with opened(file) as (where, stream):
        text = decoded(stream.read(), where)
    try:
        dialect: Any = csv.Sniffer().sniff(text[:10_000], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    rows = [row for row in csv.reader(io.StringIO(text), dialect) if row]
    if len(rows) < 2:
        raise InvalidInputError(f"{file}: expected a header and rows below it")
    header = [name.strip() for name in rows[0]]
    if len(set(header)) != len(header):
        raise InvalidInputError(f"{file}: two columns have the same name")
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise InvalidInputError(
                f"{file}: row {number} has {len(row)} cells, the header {len(header)}"
            )
    cells = zip(*rows[1:], strict=True)
    return {
        name: [cell.strip() for cell in column] for name, column in zip(header, cells, strict=True)
    }


def _numbers(column: list[str]) -> Any:  # noqa: ANN401 (an array, or None)
    import numpy as np

    try:
        found = np.array([float(cell) for cell in column])
    except ValueError:
        return None
    return found if np.isfinite(found).all() else None


def _targets(column: list[str], asked: DataQuestion) -> tuple[Any, bool]:
    """Return the targets, and whether they are classes."""
    import numpy as np

    found = _numbers(column)
    if found is None:
        if "" in column:
            raise InvalidInputError(f"{asked.file}: the target {asked.target} has blank cells")
        return np.array(column), True
    whole = (found == np.round(found)).all()
    classes = bool(whole and len(np.unique(found)) <= MOST_CLASSES)
    if len(np.unique(found)) < 2:
        raise InvalidInputError(f"{asked.file}: the target {asked.target} is the same everywhere")
    return found, classes


def _inputs(table: dict[str, list[str]], file: str) -> tuple[Any, dict[str, list[int]]]:
    """Return the columns as numbers, words one column each, and which belong together."""
    import numpy as np

    parts: list[Any] = []
    groups: dict[str, list[int]] = {}
    for name, column in table.items():
        if "" in column:
            raise InvalidInputError(
                f"{file}: column {name} has a blank cell in row {column.index('') + 2}; fill it in"
            )
        found = _numbers(column)
        if found is None:
            words = np.array(column)
            pieces = [(words == word).astype(float) for word in np.unique(words)]
        else:
            pieces = [found]
        groups[name] = list(range(len(parts), len(parts) + len(pieces)))
        parts += pieces
    return np.stack(parts, axis=1), groups
