"""Dates in text files: days since the start of 1970, as Parquet's dates are read.

Only what can be read in one way: 2024-03-09 and 9.3.2024, with or without a time of day, which is
UTC if it says how far it is ahead of UTC. What 3/9/2024 means depends on where it was written, so
it stays a text.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from coalitions.files.cells import is_blank
from coalitions.files.records import Column, Records

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
