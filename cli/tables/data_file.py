"""Games of a table of data: its rows, its sources or its columns, judged by a trained model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.tables.blanks import Rule, imputer, without_blanks
from cli.terminal.output import tell
from coalitions.characters import in_order
from coalitions.errors import InvalidInputError, UnknownNameError, did_you_mean
from coalitions.extras import needed

if TYPE_CHECKING:
    from coalitions.files.records import Column
    from coalitions.problems.named import NamedGame

MOST_CLASSES = 20
"""Whole numbers with more different values than this are predicted as numbers."""

TEST_SHARE = 0.25
"""The share of the rows that the model is judged by."""


@dataclass(frozen=True)
class DataQuestion:
    """A table and what is asked of it; `missing` is what becomes of blank cells."""

    file: str
    target: str
    model: str
    units: str
    seed: int
    missing: Rule = None


def read_data_game(asked: DataQuestion, *, quiet: bool = False) -> tuple[NamedGame, dict[str, Any]]:
    """Return the game of a table, and what was understood."""
    needed("sklearn")
    import numpy as np
    from sklearn.preprocessing import StandardScaler

    from coalitions.data_models.model import DATA_MODELS, Prepared
    from coalitions.files.dates import with_days
    from coalitions.files.records import read_records
    from coalitions.problems.columns import column_game
    from coalitions.problems.data import check_model, data_game
    from learners.data.tables.reading import READERS  # without torch

    make = DATA_MODELS[asked.model]
    path = Path(asked.file)
    records = READERS.get(path.suffix.lower(), read_records)(path)
    source = None if asked.units in ("points", "features") else asked.units
    named = [asked.target] if source is None else [asked.target, source]
    for column in named:
        if column not in records.columns:
            raise UnknownNameError(
                f"{asked.file}: has no column {column!r};"
                f" {did_you_mean(column, records.columns)}there are: {', '.join(records.columns)}"
            )
    filled = without_blanks(with_days(records, named[1:]), named, asked.missing)
    records, table = filled.table, dict(filled.table.columns)
    y, classes = _targets(table.pop(asked.target), asked)
    owner = None if source is None else _names(table.pop(source))
    if not table:
        raise InvalidInputError(f"{asked.file}: has no column left to predict from")
    X, groups = _inputs(table)
    order = np.random.default_rng(asked.seed).permutation(len(y))
    cut = max(1, round(len(y) * TEST_SHARE))
    test, train = np.sort(order[:cut]), np.sort(order[cut:])
    if len(train) < 2:
        raise InvalidInputError(f"{asked.file}: has {len(y)} rows, which is too few to learn from")
    read = [f"read with {' and '.join(records.notes)}"] if records.notes else []
    if (read or filled.notes) and not quiet:
        tell(f"{asked.file}: {', '.join([*read, *filled.notes])}")
    split = X[train], y[train], X[test], y[test]
    metric = "accuracy" if classes else "r2"
    understood = {"metric": metric, "train": len(train), "test": len(test), **filled.counts}
    model = make(classes)
    check_model(model)
    filling = [imputer(asked.missing)] if np.isnan(X).any() else []
    scaled = Prepared(model, *filling, StandardScaler())
    if asked.units == "features":
        return column_game(scaled, *split, groups, metric=metric), understood
    lines = map(str, records.lines[train])
    game = data_game(
        scaled,
        *split,
        "points" if owner is None else "groups",
        metric,
        groups=None if owner is None else owner[train],
        names=lines if owner is None else in_order(set(owner)),
        least_points=getattr(model, "n_neighbors", 2),
        seed=asked.seed,
    )
    return game, understood


def _targets(column: Column, asked: DataQuestion) -> tuple[Any, bool]:
    """Return the targets, and whether they are classes."""
    import numpy as np

    if len(set(column.tolist())) < 2:
        raise InvalidInputError(f"{asked.file}: the target {asked.target} is the same everywhere")
    if column.dtype == object:
        return column.astype(str), True
    whole = (column == np.round(column)).all()
    return column, bool(whole and len(np.unique(column)) <= MOST_CLASSES)


def _inputs(table: dict[str, Column]) -> tuple[Any, dict[str, list[int]]]:
    """Return the columns as numbers, words one column each, and which belong together."""
    import numpy as np

    from coalitions.files.records import blanks

    parts: list[Any] = []
    groups: dict[str, list[int]] = {}
    for name, column in table.items():
        pieces = [column]
        if column.dtype == object:
            texts = np.where(blanks(column), "", column).astype(str)
            pieces = [(texts == word).astype(float) for word in np.unique(texts)]
        groups[name] = list(range(len(parts), len(parts) + len(pieces)))
        parts += pieces
    return np.stack(parts, axis=1), groups


def _names(column: Column) -> Any:  # noqa: ANN401 (an array of texts)
    """Return who owns each row, in words: 7, not 7.0."""
    import numpy as np

    return np.array([cell if isinstance(cell, str) else f"{cell:g}" for cell in column])
