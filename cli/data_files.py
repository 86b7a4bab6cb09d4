"""A table of data for `value`: its columns, and what is done with blank cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cli.terminal.output import tell
from coalitions.errors import InvalidInputError, UnknownNameError, did_you_mean
from coalitions.extras import needed
from coalitions.formatting import in_order, many

if TYPE_CHECKING:
    from coalitions.files.records import Column, Records
    from coalitions.problems.named import NamedGame

# ----------------------------------------------------------------------------------------
# Blank cells in a table of data: refused, left out with their rows, or filled in.

Rule = str | float | None
"""mean, median or drop; a number that is filled in; None to refuse blanks."""

WORDS = ("mean", "median", "drop")


class Filled(NamedTuple):
    """A table that can be learnt from, what was done to it, and to how many cells or rows."""

    table: Records
    notes: tuple[str, ...] = ()
    counts: dict[str, int] = {}  # noqa: RUF012 (nobody changes it)


def rule_of(typed: str | None) -> Rule:
    """Return what --missing says.

    Examples
    --------
    >>> rule_of("0"), rule_of("mean"), rule_of(None)
    (0.0, 'mean', None)
    """
    if typed is None or typed in WORDS:
        return typed
    number = _number(typed)
    if number is None:
        raise InvalidInputError(
            f"--missing is {typed!r}; for a table of data it is mean, median, a number, or drop"
        )
    return number


def number_of(typed: str | None) -> float | None:
    """Return what --missing says of a synergy graph."""
    number = None if typed is None else _number(typed)
    if typed is not None and number is None:
        raise InvalidInputError(
            f"--missing is {typed!r}; in a synergy graph a blank pair is worth a number, such as 0"
            " (words are for tables of data, with --target)"
        )
    return number


def without_blanks(table: Records, named: list[str], rule: Rule) -> Filled:
    """Return a table in which nothing is blank but numbers that the rule fills in.

    Parameters
    ----------
    named
        Columns that cannot be filled in: the target, and who owns a row.
    """
    from coalitions.files.records import blanks

    empty = {name: blanks(cells) for name, cells in table.columns.items() if name not in named}
    hollow = [name for name, cells in empty.items() if cells.all()]
    notes = [f"column {name} left out, which is blank everywhere" for name in hollow]
    columns = {name: cells for name, cells in table.columns.items() if name not in hollow}
    table = replace(table, columns=columns)
    empty = {name: cells for name, cells in empty.items() if name not in hollow}
    nameless = {name: _unnamed(columns[name]) for name in named}
    if rule == "drop":
        return _dropped(table, [*empty.values(), *nameless.values()], notes)
    for name, cells in nameless.items():
        if cells.any():
            raise InvalidInputError(
                f"{_place(table, name, cells)}, and cannot be made up; fill it in, or leave such"
                " rows out: --missing drop"
            )
    count = sum(int(cells.sum()) for cells in empty.values())
    if not count:
        return Filled(table, tuple(notes))
    if rule is None:
        name = next(name for name, cells in empty.items() if cells.any())
        more = f", and {many(count - 1, 'other cell')} too" if count > 1 else ""
        raise InvalidInputError(
            f"{_place(table, name, empty[name])}{more}; fill in what is missing, or say what to do"
            " with it: --missing mean, median, a number, or drop"
        )
    words = sum(int(cells.sum()) for name, cells in empty.items() if columns[name].dtype == object)
    if count > words:
        by = f"{rule:g}" if isinstance(rule, float) else f"the {rule} of the training rows"
        notes.append(f"{many(count - words, 'blank number')} filled in by {by}")
    if words:
        notes.append(f"{many(words, 'blank word')} taken as one more word")
    return Filled(table, tuple(notes), {"filled": count})


def imputer(rule: Rule) -> Any:  # noqa: ANN401 (scikit-learn has no types)
    """Return what fills in numbers, fitted with the rows that a model is trained on."""
    from sklearn.impute import SimpleImputer

    if isinstance(rule, float):
        return SimpleImputer(strategy="constant", fill_value=rule, keep_empty_features=True)
    return SimpleImputer(strategy=rule, keep_empty_features=True)


def _dropped(table: Records, empty: list[Any], notes: list[str]) -> Filled:
    import numpy as np

    kept = ~np.any(empty, axis=0)
    gone = int((~kept).sum())
    if not kept.any():
        raise InvalidInputError(f"{table.where}: every row has a blank cell; none would be left")
    if not gone:
        return Filled(table, tuple(notes))
    columns = {name: cells[kept] for name, cells in table.columns.items()}
    rest = replace(table, columns=columns, lines=table.lines[kept])
    notes.append(f"{gone} of {many(len(kept), 'row')} left out, which have blank cells")
    return Filled(rest, tuple(notes), {"left_out": gone})


def _unnamed(cells: Any) -> Any:  # noqa: ANN401 (a column)
    """Return which cells name nothing: a class may be called NA, so only empty ones do not."""
    import numpy as np

    from coalitions.files.cells import is_empty

    return np.array([is_empty(cell) for cell in cells], np.bool_)


def _place(table: Records, name: str, cells: Any) -> str:  # noqa: ANN401
    return f"{table.where}: line {table.lines[int(cells.argmax())]}, column {name} is blank"


def _number(typed: str) -> float | None:
    try:
        number = float(typed)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


# ----------------------------------------------------------------------------------------
# Games of a table of data: its rows, its sources or its columns, judged by a trained model.

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

    from coalitions.data_models import DATA_MODELS, Prepared
    from coalitions.files.records import read_records, with_days
    from coalitions.problems.columns import column_game
    from coalitions.problems.data import check_model, data_game
    from learners.data.own.table_files import READERS  # without torch

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
