"""A client's rows as arrays: numbers scaled by its own training rows, categories as slots.

No statistic leaves a client. Where that is allowed, sums and counts are pooled instead, and
everybody scales alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError, shown
from coalitions.files.records import Column, blanks
from learners.data.tables.owners import Rows, require_column
from learners.data.tables.schema import FIRST, MISSING, UNSEEN, InputColumn, all_blank

Floats = NDArray[np.float64]

_LARGEST = 1e30
_FARTHEST = 1e6
"""A number so many deviations from the mean says no more than that it is far."""


@dataclass(frozen=True, eq=False)
class Scale:
    """Centre and unit of each column of numbers."""

    centre: Floats
    unit: Floats

    def __call__(self, values: Floats) -> Floats:
        """Return values in units from the centre; NaN stays NaN."""
        scaled: Floats = np.clip((values - self.centre) / self.unit, -_FARTHEST, _FARTHEST)
        return scaled


def scale_of(values: Sequence[Floats]) -> Scale:
    """Return mean and standard deviation of columns, pooled over the arrays [N, d] of clients.

    What leaves a client if there are several are sums and counts: of the numbers, then of their
    squared distances from the common mean. A column without numbers, or with one value, is only
    centred.
    """
    counts = sum(np.isfinite(each).sum(axis=0) for each in values)
    there = np.maximum(counts, 1)
    centre = sum(np.nansum(each, axis=0) for each in values) / there
    spread = np.sqrt(sum(np.nansum((each - centre) ** 2, axis=0) for each in values) / there)
    flat = spread <= 1e-12 * np.maximum(np.abs(centre), 1e-300)
    return Scale(np.asarray(centre, dtype=float), np.where(flat, 1.0, spread))


def raw_numbers(rows: Rows, columns: Sequence[InputColumn], client: str) -> Floats:
    """Return the columns of numbers as they are, float64[N, d], NaN where nothing is."""
    found = np.empty((len(rows), len(columns)))
    for place, column in enumerate(columns):
        cells = _cells(rows, column.name, client)
        if cells.dtype == object and all_blank(cells):
            cells = np.full(len(cells), np.nan)
        what = f"client {shown(client)}, column {shown(column.name)}"
        if cells.dtype == object:
            row = int(np.argmin(blanks(cells)))
            raise InvalidInputError(
                f"{rows.place(row)}: {what} has {shown(cells[row])}, and the schema says numbers"
            )
        bad = np.isinf(cells) | (np.abs(cells) > _LARGEST)
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidInputError(
                f"{rows.place(row)}: {what} has {cells[row]:g}; numbers up to {_LARGEST:g} can be"
                " learnt from"
            )
        found[:, place] = cells
    return found


def number_array(raw: Floats, scale: Scale, columns: Sequence[InputColumn]) -> NDArray[np.float32]:
    """Return scaled numbers, float32[N, d]; then whether each that may be missing was.

    What is missing gets the mean, which is 0.
    """
    filled = np.nan_to_num(scale(raw))
    may_miss = [place for place, column in enumerate(columns) if column.missing]
    return np.hstack([filled, np.isnan(raw[:, may_miss])]).astype(np.float32)


def category_array(rows: Rows, columns: Sequence[InputColumn], client: str) -> NDArray[np.int64]:
    """Return the slots of the categories, int64[N, c]."""
    found = np.empty((len(rows), len(columns)), dtype=np.int64)
    for place, column in enumerate(columns):
        cells = _cells(rows, column.name, client)
        slots = {name: FIRST + k for k, name in enumerate(column.categories)}
        found[:, place] = _slots(cells, slots)
    return found


def _slots(cells: Column, slots: Mapping[str, int]) -> list[int]:
    if cells.dtype != object:  # numbers that a schema declares to be categories
        from coalitions.errors import spoken

        cells = np.array(["" if np.isnan(c) else spoken(float(c)) for c in cells], dtype=object)
    empty = blanks(cells)
    return [
        MISSING if nothing and cell not in slots else slots.get(cell, UNSEEN)
        for cell, nothing in zip(cells, empty, strict=True)
    ]


def _cells(rows: Rows, name: str, client: str) -> Column:
    require_column(rows.table, name, f"column of the schema at client {shown(client)}:")
    return rows.column(name)
