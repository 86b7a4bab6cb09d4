"""Tables of records: a header with the names of columns, a row for each case, and dates."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any

import numpy as np

from coalitions.errors import InvalidInputError, shown, spoken
from coalitions.files.cells import Cell, decimal_mark, is_blank, is_empty, number
from coalitions.files.opening import SPREADSHEETS, encodings, opened
from coalitions.files.spreadsheets import Sheet, opened_sheet
from coalitions.files.tables import (
    SAMPLE,
    SEPARATORS,
    Row,
    Understood,
    csv_rows,
    found_mark,
    named_separator,
)

Column = np.ndarray[Any, np.dtype[Any]]
"""float64[N], NaN where a cell is blank; or texts as objects [N], as they are."""


@dataclass(frozen=True, eq=False)
class Records:
    """The columns of a table.

    Attributes
    ----------
    where
        What messages call the table.
    columns
        By name, in order.
    lines
        The line in the file of each row.
    notes
        What was found out about the file, in a few words each.
    unit
        What messages call a line; tables that do not come from a file have rows.
    """

    where: str
    columns: dict[str, Column]
    lines: np.ndarray[Any, np.dtype[np.int64]]
    notes: tuple[str, ...] = ()
    unit: str = "line"

    def __len__(self) -> int:
        return len(self.lines)

    def place(self, row: int) -> str:
        """Return where a row is, for messages."""
        return f"{self.where}, {self.unit} {self.lines[row]}"


def read_records(path: str | Path) -> Records:
    """Return the table in a text file or spreadsheet.

    A text may have any separator, decimal mark and encoding; of a spreadsheet, the first sheet with
    anything in it is read.
    """
    kind = Path(path).suffix.lower()
    with opened(path) as (where, stream):
        if kind == ".xlsx":
            return _first_sheet(stream, where)
        if kind.lstrip(".") in SPREADSHEETS:
            raise InvalidInputError(f"{where}: is not read; save the sheet as .xlsx or .csv")
        return _decoded(stream, where, "\t" if kind in (".tsv", ".tab") else ",")


def _first_sheet(stream: IO[bytes], where: str) -> Records:
    with opened_sheet(stream, where, odd_dates=False) as sheet:
        found = _of_rows(_as_broad(sheet), where, "", list(sheet.notes))
        if any(blanks(column).any() for column in found.columns.values()):
            sheet.refuse_unsaved()
        return found


def _as_broad(sheet: Sheet) -> Iterator[Row]:
    """Give all rows as many cells as the first that has any: a sheet leaves out the last blanks."""
    width = n_cells = 0
    for line, cells in sheet.rows():
        width = width or len(cells)
        n_cells += width
        sheet.check_cells(n_cells)
        yield line, cells + [""] * (width - len(cells))


def _decoded(stream: IO[bytes], where: str, expected: str) -> Records:
    failed: UnicodeError | None = None
    for encoding, hint in encodings(stream, where):
        stream.seek(0)
        lines = io.TextIOWrapper(stream, encoding, newline="")
        try:
            return _parsed(lines, where, expected, [hint] if hint else [])
        except UnicodeError as error:
            failed = error
        finally:
            lines.detach()  # the caller opened the stream and closes it
    odd = f" ({failed.object[failed.start]:#04x})" if isinstance(failed, UnicodeDecodeError) else ""
    raise InvalidInputError(f"{where}: is not UTF-8 text{odd}; save it as UTF-8")


def _parsed(lines: io.TextIOWrapper, where: str, expected: str, notes: list[str]) -> Records:
    sample = lines.read(SAMPLE)
    separator = _separator(sample, expected, where)
    if separator != expected:
        notes.append(SEPARATORS.get(separator, shown(separator)))
    lines.seek(0)
    return _of_rows(csv_rows(lines, separator, where), where, separator, notes)


def _of_rows(given: Iterator[Row], where: str, separator: str, notes: list[str]) -> Records:
    rows = [row for row in given if not all(map(is_empty, row[1]))]
    if len(rows) < 2:
        raise InvalidInputError(f"{where}: expected a header and rows below it")
    header = _header(rows[0], rows[1:], where)
    for line, cells in rows[1:]:
        if len(cells) != len(rows[0][1]):
            raise InvalidInputError(
                f"{where}: line {line} has {len(cells)} cells, the header {len(rows[0][1])}"
            )
    mark = found_mark(iter(rows), where, Understood(separator=separator))
    if mark == ",":
        notes.append("decimal commas")
    columns = {
        name: _column([cells[place] for _, cells in rows[1:]], name, mark, where)
        for place, name in header.items()
    }
    return Records(where, columns, np.array([line for line, _ in rows[1:]]), tuple(notes))


def _separator(sample: str, expected: str, where: str) -> str:
    """Return the separator of a text: the one that gives the header most cells, and rows as many.

    A comma may be a decimal mark, so what is rarer in prose is preferred among equals.
    """
    if (named := named_separator(sample)) is not None:
        return named
    best, most = expected, (0.0, 1)
    for separator in dict.fromkeys(["\t", ";", "|", ",", expected]):
        rows = _sampled(sample, separator, where)
        if not rows or len(rows[0]) < 2:
            continue
        agreeing = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
        if (agreeing, len(rows[0])) > most:
            best, most = separator, (agreeing, len(rows[0]))
    return best


def _sampled(sample: str, separator: str, where: str) -> list[list[Any]]:
    """Return the first rows that a separator would make; none if it makes no sense."""
    cut = sample if len(sample) < SAMPLE else sample[: sample.rfind("\n") + 1] or sample
    try:
        found = csv_rows(io.StringIO(cut, newline=""), separator, where)
        rows: Iterator[Row] = itertools.islice(found, 100)
        return [cells for _, cells in rows if not all(map(is_empty, cells))]
    except InvalidInputError:
        return []


def _header(head: Row, body: list[Row], where: str) -> dict[int, str]:
    """Return the columns' names by their places; numbered rows (pandas, R) are no column."""
    names = [_text(cell) for cell in head[1]]
    places = list(range(len(names)))
    if not names[0] and [_text(cells[0]) for _, cells in body] in (
        [str(k) for k in range(len(body))],
        [str(k) for k in range(1, len(body) + 1)],
    ):
        places = places[1:]
    while places and not names[places[-1]] and all(len(r) > places[-1] for _, r in body):
        if any(not is_empty(cells[places[-1]]) for _, cells in body):
            break
        places.pop()  # rows that end in a separator
    for place in places:
        if not names[place]:
            raise InvalidInputError(f"{where}: column {place + 1} has no name in the header")
        if names.index(names[place], places[0]) != place:
            raise InvalidInputError(f"{where}: two columns have the name {shown(names[place])}")
    return {place: names[place] for place in places}


def _column(cells: list[Any], name: str, mark: str, where: str) -> Column:
    numbers = _numbers(cells, mark)
    if numbers is not None:
        return numbers
    other = "," if mark == "." else "."
    marked = any(decimal_mark(cell) == other for cell in cells)
    if marked and _numbers(cells, other) is not None:
        raise InvalidInputError(
            f"{where}: column {shown(name)} has numbers with a decimal"
            f" {'comma' if other == ',' else 'point'}, and other columns have the other mark;"
            " write one of the two everywhere"
        )
    return np.array([_text(cell) for cell in cells], dtype=object)


def _text(cell: Cell) -> str:
    return cell.strip() if isinstance(cell, str) else spoken(cell)


def _numbers(cells: list[Any], mark: str) -> Column | None:
    """Return the cells as numbers; None if one is something else, or all are blank."""
    found = np.empty(len(cells))
    for place, cell in enumerate(cells):
        value = number(cell, mark)
        if value is None:
            return None
        found[place] = value
    return None if all(map(is_blank, cells)) else found


def blanks(cells: Column) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which cells say nothing."""
    if cells.dtype == object:
        return np.array([is_blank(cell) for cell in cells], dtype=bool)
    return np.isnan(cells)


# ----------------------------------------------------------------------------------------
# Dates: days since the start of 1970, as Parquet's dates are read
#
# Only what can be read in one way is a date: 2024-03-09 and 9.3.2024, with or without a time of
# day. What 3/9/2024 means depends on where it was written, so it stays a text.

_TIME = (
    r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d+))?)?"
    r"(?:Z|(?P<ahead>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d))?)?"
)
_FORMS = tuple(
    re.compile(date + _TIME, re.ASCII)
    for date in (
        r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)",
        r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})",
    )
)
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1) // _MICROSECOND


def day_of(text: str) -> float | None:
    """Return the day of a date, with the time as a part of it; None if a text is no date.

    Examples
    --------
    >>> day_of("1970-01-02"), day_of("3.1.1970 12:00"), day_of("3/1/1970"), day_of("31.2.1970")
    (1.0, 2.5, None, None)
    >>> round(day_of("1970-01-02 02:00:00.5+02:00") * 86_400, 6)
    86400.5
    """
    found = next((match for form in _FORMS if (match := form.fullmatch(text))), None)
    if found is None:
        return None
    names = ("year", "month", "day", "hour", "minute", "second", "hours", "minutes")
    year, month, day, hour, minute, second, hours, minutes = (
        int(found[name] or 0) for name in names
    )
    try:
        since = datetime(year, month, day, hour, minute, second) - _EPOCH
    except ValueError:  # there is no such day
        return None
    since += timedelta(microseconds=int((found["fraction"] or "")[:6].ljust(6, "0")))
    ahead = timedelta(hours=hours, minutes=minutes)
    since += ahead if found["ahead"] == "-" else -ahead
    # One division of whole numbers, as for the times of data frames: the same bits.
    return since // _MICROSECOND / _DAY


def with_days(table: Records, but: Collection[str] = ()) -> Records:
    """Return a table whose columns of dates are numbers of days, and say so in its notes.

    Parameters
    ----------
    table
        The table.
    but
        Columns that stay as they are, because they name something.
    """
    found = {
        name: days
        for name, cells in table.columns.items()
        if name not in but and (days := _days(cells)) is not None
    }
    if not found:
        return table
    notes = (*table.notes, f"dates as days ({', '.join(found)})")
    return replace(table, columns={**table.columns, **found}, notes=notes)


def _days(cells: Column) -> Column | None:
    """Return a column of dates as days, NaN where a cell is blank; None if one is no date."""
    if cells.dtype != object or all(map(is_blank, cells)):
        return None
    days = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        if not is_blank(cell):
            day = day_of(cell.strip())
            if day is None:
                return None
            days[row] = day
    return days
