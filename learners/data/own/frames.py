"""Data frames as tables: of pandas, polars and other libraries, none of which is imported.

A frame becomes the same `Records` as a file, so the same rows give the same arrays. Its types are
kept, as those of Parquet are: text is text, even if all of it looks like numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from coalitions.errors import InvalidInputError, shown, spoken
from coalitions.files.records import Column, Records, with_days
from learners.data.own.columns import ClientTable, check_all_tested, client_table, client_tables

_DAY = timedelta(days=1)
_NO_CELL = ("NAType", "NaTType")
"""Types of pandas' missing values, which are not even equal to themselves."""


def is_frame(given: object) -> bool:
    """Tell whether something is a data frame of any library."""
    return hasattr(given, "columns") and hasattr(given, "__getitem__")


def frame_table(frame: Any, where: str) -> Records:  # noqa: ANN401 (of any library)
    """Return the table in a data frame; `where` is what messages call it."""
    if hasattr(frame, "collect"):
        raise InvalidInputError(f"{where} is a query that was not run yet; give its .collect()")
    labels = list(getattr(frame, "column_names", frame.columns))  # Arrow's columns have no names
    names = [str(label) for label in labels]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidInputError(f"{where}: two columns have the name {shown(twice[0])}")
    columns = {
        name: column_of(frame[label], f"{where}: column {shown(name)}")
        for name, label in zip(names, labels, strict=True)
    }
    return records_of(columns, where)


def records_of(columns: Mapping[str, Column], where: str) -> Records:
    """Return columns that a program holds as a table; its rows count from 0."""
    n_rows = len(next(iter(columns.values()), ()))
    if not n_rows:
        raise InvalidInputError(f"{where}: has no rows")
    return Records(where, dict(columns), np.arange(n_rows), unit="row")


def column_of(cells: Any, what: str) -> Column:  # noqa: ANN401 (what numpy makes an array of)
    """Return a column of a program as a file's column would be read.

    Numbers and times become numbers, NaN where there is none; truth values and all else text.
    Times are days since the start of 1970, in UTC if they have a time zone.
    """
    array = np.asarray(cells)
    if array.ndim != 1:
        raise InvalidInputError(f"{what} has cells that are arrays or lists; a cell is one value")
    if array.dtype.kind in "iuf":
        return array.astype(float)
    if array.dtype.kind == "M":
        days = array.astype("datetime64[us]").astype(np.int64) / (_DAY / timedelta(microseconds=1))
        return np.where(np.isnat(array), np.nan, days)
    if array.dtype.kind not in "bOUT":
        raise InvalidInputError(
            f"{what} holds {array.dtype}; a table has numbers, texts, truth values and times"
        )
    return _column_of_objects(
        [None if _is_missing(cell) else cell for cell in array.tolist()], what
    )


def _is_missing(cell: object) -> bool:
    if isinstance(cell, float):
        return cell != cell
    return cell is None or type(cell).__name__ in _NO_CELL


def _column_of_objects(cells: list[Any], what: str) -> Column:
    there = [cell for cell in cells if cell is not None]
    numbers = [isinstance(cell, int | float | np.number | Decimal) for cell in there]
    if all(numbers) and not all(isinstance(cell, bool | np.bool_) for cell in there):
        return np.array([np.nan if cell is None else float(cell) for cell in cells])
    if there and all(isinstance(cell, date) for cell in there):  # a datetime is a date, too
        return np.array([np.nan if cell is None else _day(cell) for cell in cells])
    for cell in there:
        if isinstance(cell, list | tuple | set | dict | np.ndarray | bytes | complex | timedelta):
            raise InvalidInputError(
                f"{what} holds {type(cell).__name__}; a table has numbers, texts, truth values and"
                " times"
            )
    return np.array(["" if cell is None else _text(cell) for cell in cells], dtype=object)


def _day(moment: date) -> float:
    if not isinstance(moment, datetime):
        return float((moment - date(1970, 1, 1)).days)
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return (
        (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1) / (_DAY.total_seconds() * 1e6)
    )


def _text(cell: Any) -> str:  # noqa: ANN401 (a cell of any type)
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"  # as Parquet's truth values are read
    return spoken(float(cell)) if isinstance(cell, float) else str(cell).strip()


# -- whose rows are whose --------------------------------------------------------------------------


def owners_of_all(data: Any, client_column: str, names: Collection[str]) -> list[ClientTable]:  # noqa: ANN401
    """Return the clients of one frame with the rows of all, or of two: training and test rows.

    Parameters
    ----------
    data
        A frame, or a pair of them.
    client_column
        The column with the client's name.
    names
        Columns that name something, whose texts stay texts even if they are dates.
    """
    if is_frame(data):
        return client_tables(with_days(frame_table(data, "your table"), names), None, client_column)
    if not (isinstance(data, Sequence) and len(data) == 2 and all(map(is_frame, data))):
        raise InvalidInputError(
            f"client_column ({shown(client_column)}) is for one table with the rows of all clients,"
            " or a pair of them, (training rows, test rows); leave it out if each client has tables"
            " of its own"
        )
    train, test = (
        with_days(frame_table(each, f"your {part} table"), names)
        for part, each in zip(("training", "test"), data, strict=True)
    )
    return client_tables(train, test, client_column)


def owners_of_pairs(
    pairs: Mapping[str, tuple[Any, Any]], target: str, names: Collection[str]
) -> list[ClientTable]:
    """Return the clients of frames, where each client has its own.

    Parameters
    ----------
    pairs
        What each client trains on and is tested on; None if test rows are to be drawn, or the
        frame has a column named split. Both are a frame with a column of targets, or a pair of a
        frame of inputs and its targets.
    target
        The column of targets.
    names
        Columns that name something, whose texts stay texts even if they are dates.
    """
    owners = []
    for client, parts in pairs.items():
        train, test = (
            None
            if part is None
            else with_days(_part_table(part, target, f"{word} data of {client}"), names)
            for word, part in zip(("training", "test"), parts, strict=True)
        )
        assert train is not None
        owners.append(client_table(client, train, test))
    check_all_tested(owners)
    return owners


def holds_frame(part: object) -> bool:
    """Tell whether what a client has is a frame, or a frame of inputs with its targets."""
    return is_frame(part) or _is_frame_and_targets(part)


def named_target(part: Any) -> str | None:  # noqa: ANN401 (what a client has)
    """Return the name of the targets beside a frame of inputs; None if the frame has them."""
    if not _is_frame_and_targets(part):
        return None
    targets = part[1]
    label = next(iter(targets.columns), None) if is_frame(targets) else None
    return str(label or getattr(targets, "name", None) or "target")


def _is_frame_and_targets(part: object) -> bool:
    return isinstance(part, tuple | list) and len(part) == 2 and is_frame(part[0])


def _part_table(part: Any, target: str, where: str) -> Records:  # noqa: ANN401 (what a client has)
    if is_frame(part):
        return frame_table(part, where)
    if not _is_frame_and_targets(part):
        raise InvalidInputError(
            f"{where}: are no table but {type(part).__name__}, and others are tables; give tables"
            " everywhere"
        )
    inputs, truth = frame_table(part[0], where), np.asarray(part[1])
    if target in inputs.columns:
        raise InvalidInputError(
            f"{where}: column {shown(target)} is among the inputs, and the targets beside them have"
            " the same name; leave one of them out"
        )
    if truth.ndim == 2 and truth.shape[1] == 1:
        truth = truth[:, 0]
    if truth.shape != (len(inputs),):
        raise InvalidInputError(
            f"{where}: there are {len(inputs)} rows and targets of shape {truth.shape}; each row"
            " has one target"
        )
    targets = column_of(truth, f"{where}: column {shown(target)}")
    return records_of({**inputs.columns, target: targets}, where)
