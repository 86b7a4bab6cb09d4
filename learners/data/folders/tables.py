"""Clients' tables: ``client/train.csv``, and ``client/test.csv`` if rows are not to be drawn.

A column named split does without the second.
"""

from __future__ import annotations

from collections.abc import Collection

from coalitions.errors import InvalidInputError, shown
from coalitions.files.dates import with_days
from learners.data.folders.layout import Layout, table_in
from learners.data.tables.owners import Owner, check_all_tested, owner_of, owners_of
from learners.data.tables.reading import read_table


def read_table_clients(layout: Layout, names: Collection[str] = ()) -> list[Owner]:
    """Return every client's rows; if one has test rows, all have.

    Dates are days, but in columns that name something.
    """
    paths = {
        name: (table_in(layout.folder / name, "train"), table_in(layout.folder / name, "test"))
        for name in layout.clients
    }
    owners = []
    for name, (train, test) in paths.items():
        if train is None:
            raise InvalidInputError(
                f"{layout.folder / name}: client {shown(name)} has no training data"
            )
        learnt = with_days(read_table(train), names)
        tested = None if test is None else with_days(read_table(test), names)
        owners.append(owner_of(name, learnt, tested))
    check_all_tested(owners)
    return owners


def read_two_tables(layout: Layout, client_column: str, names: Collection[str] = ()) -> list[Owner]:
    """Return the clients of a table with training rows and one with test rows."""
    train, test = table_in(layout.folder, "train"), table_in(layout.folder, "test")
    assert train is not None
    assert test is not None  # by the layout
    learnt, tested = (with_days(read_table(path), names) for path in (train, test))
    return owners_of(learnt, tested, client_column)
