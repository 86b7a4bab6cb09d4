"""Whose rows are whose: a table's clients, by name, in the order of their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalitions.characters import in_order
from coalitions.errors import InvalidInputError, UnknownNameError, did_you_mean, shown
from coalitions.errors import spoken as spoken_number
from coalitions.files.cells import is_empty
from coalitions.files.records import Column, Records

PARTS = {"train": "train", "training": "train", "test": "test"}
"""What a row's part may be called in a column named split."""

SPLIT = "split"


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a table, or all of them."""

    table: Records
    chosen: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.chosen)

    def column(self, name: str) -> Column:
        """Return the cells of a column."""
        return self.table.columns[name][self.chosen]

    def place(self, row: int) -> str:
        """Return where a row is, for messages."""
        return self.table.place(int(self.chosen[row]))

    def __getitem__(self, some: NDArray[np.int64]) -> Rows:
        return Rows(self.table, self.chosen[some])


@dataclass(frozen=True, eq=False)
class Owner:
    """A client's rows; `test` is None if they are to be taken from `train`."""

    name: str
    train: Rows
    test: Rows | None

    @property
    def parts(self) -> list[Rows]:
        """All there is."""
        return [self.train] if self.test is None else [self.train, self.test]


def all_rows(table: Records) -> Rows:
    """Return every row of a table."""
    return Rows(table, np.arange(len(table)))


def require_column(table: Records, name: str, what: str) -> None:
    """Refuse a column that is not there."""
    if name not in table.columns:
        raise UnknownNameError(
            f"{table.where}: has no {what} {shown(name)}; {did_you_mean(name, table.columns)}"
            f"there are: {', '.join(table.columns)}"
        )


def owners_of(train: Records, test: Records | None, client_column: str) -> list[Owner]:
    """Return the clients of a table, and of a second one with test rows if there is one.

    A column named split whose cells are all train or test says which row is which.
    """
    rows = _by_name(train, client_column)
    if test is not None:
        tested = _by_name(test, client_column)
        for name in tested:
            if name not in rows:
                raise InvalidInputError(
                    f"{test.where}: client {shown(name)} has no rows in {train.where}"
                )
        return [Owner(name, rows[name], _tested(tested, name, test)) for name in in_order(rows)]
    if (parts := parts_of(train)) is None:
        return [Owner(name, rows[name], None) for name in in_order(rows)]
    return [_parted(name, rows[name], parts) for name in in_order(rows)]


def owner_of(name: str, train: Records, test: Records | None) -> Owner:
    """Return the client of a table of its own, and of a second one with test rows if there is one.

    A column named split means what it means to `owners_of`.
    """
    if test is not None:
        return Owner(name, all_rows(train), all_rows(test))
    parts = parts_of(train)
    return (
        Owner(name, all_rows(train), None)
        if parts is None
        else _parted(name, all_rows(train), parts)
    )


def check_all_tested(owners: Sequence[Owner]) -> None:
    """Refuse clients of which some come with test rows and others do not."""
    drawn = [owner for owner in owners if owner.test is None]
    tested = [owner for owner in owners if owner.test is not None]
    if drawn and tested:
        raise InvalidInputError(
            f"{drawn[0].train.table.where}: client {shown(drawn[0].name)} has no test data, and"
            f" client {shown(tested[0].name)} has some; give test data to all clients or to none"
        )


def parts_of(table: Records) -> Column | None:
    """Return which part each row is for, None if the table does not say."""
    column = table.columns.get(SPLIT)
    if column is None or column.dtype != object:
        return None
    words = [PARTS.get(cell.casefold()) for cell in column]
    return None if None in words else np.array(words)


def _parted(name: str, rows: Rows, parts: Column) -> Owner:
    mine = parts[rows.chosen]
    found = {part: rows[np.flatnonzero(mine == part)] for part in ("train", "test")}
    for part, some in found.items():
        if not len(some):
            raise InvalidInputError(
                f"{rows.table.where}: client {shown(name)} has no row whose {SPLIT} is {part}"
            )
    return Owner(name, found["train"], found["test"])


def _tested(tested: dict[str, Rows], name: str, test: Records) -> Rows:
    if name not in tested:
        raise InvalidInputError(f"{test.where}: client {shown(name)} has no test rows here")
    return tested[name]


def _by_name(table: Records, client_column: str) -> dict[str, Rows]:
    require_column(table, client_column, "client column")
    names = names_of(table, client_column)
    kinds, numbers = np.unique(names, return_inverse=True)
    return {
        str(kind): Rows(table, np.flatnonzero(numbers == number))
        for number, kind in enumerate(kinds)
    }


def names_of(table: Records, client_column: str) -> Column:
    """Return the client's name in each row; none may be empty."""
    cells = table.columns[client_column]
    if cells.dtype != object:
        cells = np.array(
            ["" if np.isnan(cell) else spoken_number(cell) for cell in cells], dtype=object
        )
    for row, cell in enumerate(cells):
        if is_empty(cell):
            raise InvalidInputError(
                f"{table.place(row)}: the client's name in column {shown(client_column)} is empty"
            )
    return cells.astype(str)
