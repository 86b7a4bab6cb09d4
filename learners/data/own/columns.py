"""The columns of a table with a role: client, split and target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError, UnknownNameError, did_you_mean, shown, spoken
from coalitions.errors import spoken as spoken_number
from coalitions.files.cells import is_blank, is_empty
from coalitions.files.records import Column, Records
from coalitions.formatting import in_order
from learners.data.own.arrays import Arrays
from learners.data.partitions import whole_numbers

# ----------------------------------------------------------------------------------------
# Whose rows are whose: a table's clients, by name, in the order of their names.

PARTS = {"train": "train", "training": "train", "test": "test"}
"""What a row's part may be called in a column named split."""

SPLIT = "split"


@dataclass(frozen=True, eq=False)
class ClientRows:
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

    def __getitem__(self, some: NDArray[np.int64]) -> ClientRows:
        return ClientRows(self.table, self.chosen[some])


@dataclass(frozen=True, eq=False)
class ClientTable:
    """A client's rows; `test` is None if they are to be taken from `train`."""

    name: str
    train: ClientRows
    test: ClientRows | None

    @property
    def parts(self) -> list[ClientRows]:
        """All there is."""
        return [self.train] if self.test is None else [self.train, self.test]


def all_rows(table: Records) -> ClientRows:
    """Return every row of a table."""
    return ClientRows(table, np.arange(len(table)))


def require_column(table: Records, name: str, what: str) -> None:
    """Refuse a column that is not there."""
    if name not in table.columns:
        raise UnknownNameError(
            f"{table.where}: has no {what} {shown(name)}; {did_you_mean(name, table.columns)}"
            f"there are: {', '.join(table.columns)}"
        )


def client_tables(train: Records, test: Records | None, client_column: str) -> list[ClientTable]:
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
        return [
            ClientTable(name, rows[name], _tested(tested, name, test)) for name in in_order(rows)
        ]
    if (parts := parts_of(train)) is None:
        return [ClientTable(name, rows[name], None) for name in in_order(rows)]
    return [_parted(name, rows[name], parts) for name in in_order(rows)]


def client_table(name: str, train: Records, test: Records | None) -> ClientTable:
    """Return the client of a table of its own, and of a second one with test rows if there is one.

    A column named split means what it means to `client_tables`.
    """
    if test is not None:
        return ClientTable(name, all_rows(train), all_rows(test))
    parts = parts_of(train)
    return (
        ClientTable(name, all_rows(train), None)
        if parts is None
        else _parted(name, all_rows(train), parts)
    )


def check_all_tested(owners: Sequence[ClientTable]) -> None:
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


def _parted(name: str, rows: ClientRows, parts: Column) -> ClientTable:
    mine = parts[rows.chosen]
    found = {part: rows[np.flatnonzero(mine == part)] for part in ("train", "test")}
    for part, some in found.items():
        if not len(some):
            raise InvalidInputError(
                f"{rows.table.where}: client {shown(name)} has no row whose {SPLIT} is {part}"
            )
    return ClientTable(name, found["train"], found["test"])


def _tested(tested: dict[str, ClientRows], name: str, test: Records) -> ClientRows:
    if name not in tested:
        raise InvalidInputError(f"{test.where}: client {shown(name)} has no test rows here")
    return tested[name]


def _by_name(table: Records, client_column: str) -> dict[str, ClientRows]:
    require_column(table, client_column, "client column")
    names = names_of(table, client_column)
    kinds, numbers = np.unique(names, return_inverse=True)
    return {
        str(kind): ClientRows(table, np.flatnonzero(numbers == number))
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


# ----------------------------------------------------------------------------------------
# Which of a client's rows it is tested on: drawn, each class in proportion.

TEST_SHARE = 0.2
"""Share of a client's rows that it is tested on if nobody says."""

Places = NDArray[np.int64]


def drawn(
    labels: Places | None, n_rows: int, n_drawn: int, rng: np.random.Generator
) -> tuple[Places, Places]:
    """Return which rows are left and which are drawn, in order.

    With labels, every class gives its share, and one with two rows or more gives at least one, as
    long as another has two to give.

    Examples
    --------
    >>> labels = np.array([0] * 16 + [1] * 4)
    >>> left, tested = drawn(labels, 20, 5, np.random.default_rng(0))
    >>> np.bincount(labels[tested]).tolist(), len(left)
    ([4, 1], 15)
    """
    groups = np.zeros(n_rows, dtype=np.int64) if labels is None else labels
    kinds, sizes = np.unique(groups, return_counts=True)
    given = whole_numbers(sizes * n_drawn / n_rows, n_drawn)
    for rare in np.flatnonzero((given == 0) & (sizes > 1)):
        if given.max() > 1:
            given[int(np.argmax(given))] -= 1
            given[rare] = 1
    chosen = np.zeros(n_rows, dtype=bool)
    for kind, number in zip(kinds, given, strict=True):
        chosen[rng.permutation(np.flatnonzero(groups == kind))[:number]] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def divided(
    everything: Arrays, n_test: int | None, rng: np.random.Generator, what: str
) -> tuple[Arrays, Arrays]:
    """Return a client's arrays to train on, and those to test on, a fifth if nobody says.

    Parameters
    ----------
    what
        What messages call the client.
    """
    inputs, targets = everything
    n_test = n_test or max(1, round(TEST_SHARE * len(targets)))
    if n_test > len(targets) - 2:
        raise InvalidInputError(
            f"{what} has {len(targets)} samples, too few to test on {n_test} and train on two"
        )
    labels = targets.astype(np.int64) if targets.ndim == 1 and targets.dtype.kind in "iu" else None
    train, test = (
        ({name: array[some] for name, array in inputs.items()}, targets[some])
        for some in drawn(labels, len(targets), n_test, rng)
    )
    return train, test


# ----------------------------------------------------------------------------------------
# What is to be predicted: classes or a number, and whether it can be learnt at all.

FEW = 20
"""Whole numbers with more different values than this are predicted as numbers."""

MOST_CLASSES = 100
"""More classes than this are hardly classes."""


def task_of(owners: Sequence[ClientTable], target: str, task: str | None) -> str:
    """Return the task that a target asks for, or the one that was demanded, if it can be done.

    Text and few different whole numbers are classes; other numbers are predicted as numbers.
    """
    parts = [part for owner in owners for part in owner.parts]
    for owner in owners:
        for part in owner.parts:
            _check_there(part, target, owner.name)
    where, cells = parts[0].table.where, [part.column(target) for part in parts]
    texts = [column.dtype == object for column in cells]
    if task == "regression":
        return _regression(owners, target)
    names = {_name(cell) for column in cells for cell in column}
    n_rows = sum(map(len, cells))
    whole = not any(texts) and all(np.all(column == np.round(column)) for column in cells)
    if len(names) == n_rows > FEW and (any(texts) or _counts_rows(cells, whole=whole)):
        raise InvalidInputError(
            f"{where}: the target {shown(target)} is another one in each of the {n_rows} rows, like"
            " an identifier; name the column that is to be predicted"
        )
    if task is None and not any(texts) and not (whole and len(names) <= FEW):
        return _regression(owners, target)
    if len(names) > MOST_CLASSES:
        raise InvalidInputError(
            f"{where}: the target {shown(target)} has {len(names)} classes, and {MOST_CLASSES} are"
            " the most" + ("" if any(texts) else "; numbers are predicted with the task regression")
        )
    return "classification"


def _regression(owners: Sequence[ClientTable], target: str) -> str:
    """Return the task, once it is certain that the target can be predicted as a number."""
    for owner in owners:
        for part in owner.parts:
            _check_numbers(part, target, owner.name)
    return "regression"


def classes_of(owners: Sequence[ClientTable], target: str) -> tuple[str, ...]:
    """Return the names of all clients' classes, in order."""
    return tuple(
        in_order(
            {_name(cell) for owner in owners for p in owner.parts for cell in p.column(target)}
        )
    )


def check_target(owners: Sequence[ClientTable], target: str, task: str) -> None:
    """Refuse a target that teaches nothing: the same everywhere, or the same number at a client."""
    kinds = [
        {_name(cell) for part in owner.parts for cell in part.column(target)} for owner in owners
    ]
    everywhere = set().union(*kinds)
    where = owners[0].train.table.where
    if len(everywhere) == 1:
        raise InvalidInputError(
            f"{where}: the target {shown(target)} is {shown(min(everywhere))} everywhere"
        )
    for owner, mine in zip(owners, kinds, strict=True):
        if len(mine) == 1 and task == "regression":
            raise InvalidInputError(
                f"{owner.train.table.where}: client {shown(owner.name)} has the same number,"
                f" {min(mine)}, everywhere in the target {shown(target)}; leave it out, or unite it"
                " with another client"
            )


def class_numbers(
    rows: ClientRows, target: str, classes: Sequence[str], client: str
) -> NDArray[np.int64]:
    """Return each row's class as its place among the classes."""
    places = {name: place for place, name in enumerate(classes)}
    names = [_name(cell) for cell in rows.column(target)]
    for row, name in enumerate(names):
        if name not in places:
            raise InvalidInputError(
                f"{rows.place(row)}: client {shown(client)} has the class {shown(name)} in column"
                f" {shown(target)}, and the schema has {', '.join(classes)}"
            )
    return np.array([places[name] for name in names], dtype=np.int64)


def _name(cell: str | float) -> str:
    return cell if isinstance(cell, str) else spoken(float(cell))


def _counts_rows(cells: Sequence[Column], *, whole: bool) -> bool:
    """Tell whether whole numbers, all different, leave nothing out, as numbers of rows do."""
    if not whole:
        return False
    everything = np.concatenate(cells)
    with np.errstate(over="ignore"):  # a distance beyond all floats is none of rows
        return bool(np.ptp(everything) == len(everything) - 1)


def _check_there(rows: ClientRows, target: str, client: str) -> None:
    for row, cell in enumerate(rows.column(target)):
        if isinstance(cell, str):
            there = not is_blank(cell) or cell.casefold() == "none"  # which may well be a class
        else:
            there = bool(np.isfinite(cell))
        if not there:
            raise InvalidInputError(
                f"{rows.place(row)}: client {shown(client)} has no target in column"
                f" {shown(target)} ({cell or 'blank'}); fill it in, or leave the row out"
            )


def _check_numbers(rows: ClientRows, target: str, client: str) -> None:
    cells = rows.column(target)
    if cells.dtype == object:
        raise InvalidInputError(
            f"{rows.place(0)}: client {shown(client)} has {shown(cells[0])} in column"
            f" {shown(target)}, and a regression needs numbers"
        )
    if np.abs(cells).max(initial=0) > 1e30:
        raise InvalidInputError(
            f"{rows.table.where}: client {shown(client)} has a number beyond 1e30 in column"
            f" {shown(target)}"
        )
