"""Clients' tables: ``client/train.csv``, and ``client/test.csv`` if rows are not to be drawn."""

from __future__ import annotations

from collections.abc import Collection

from coalitions.errors import InvalidInputError, shown
from coalitions.files.dates import with_days
from learners.data.folders.layout import Layout, table_in
from learners.data.tables.owners import Owner, all_rows, owners_of
from learners.data.tables.reading import read_table


def read_table_clients(layout: Layout, names: Collection[str] = ()) -> list[Owner]:
    """Return every client's rows; if one has a test table, all have.

    Dates are days, but in columns that name something.
    """
    paths = {
        name: (table_in(layout.folder / name, "train"), table_in(layout.folder / name, "test"))
        for name in layout.clients
    }
    tested = [name for name, (_, test) in paths.items() if test is not None]
    owners = []
    for name, (train, test) in paths.items():
        if train is None:
            raise InvalidInputError(
                f"{layout.folder / name}: client {shown(name)} has no training data"
            )
        if test is None and tested:
            raise InvalidInputError(
                f"{layout.folder / name}: client {shown(name)} has no test data, and client"
                f" {shown(tested[0])} has a test table"
            )
        rows, tested_on = (
            None if path is None else all_rows(with_days(read_table(path), names))
            for path in (train, test)
        )
        assert rows is not None
        owners.append(Owner(name, rows, tested_on))
    return owners


def read_two_tables(layout: Layout, client_column: str, names: Collection[str] = ()) -> list[Owner]:
    """Return the clients of a table with training rows and one with test rows."""
    train, test = table_in(layout.folder, "train"), table_in(layout.folder, "test")
    assert train is not None
    assert test is not None  # by the layout
    learnt, tested = (with_days(read_table(path), names) for path in (train, test))
    return owners_of(learnt, tested, client_column)
