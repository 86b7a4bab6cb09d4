"""Blank cells in a table of data: refused, left out with their rows, or filled in."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from coalitions.characters import many
from coalitions.errors import InvalidInputError

if TYPE_CHECKING:
    from coalitions.files.records import Records

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
