"""A table encoded as arrays, client by client.

Numbers are scaled by a client's own training rows; categories become positions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError, shown
from coalitions.files.cells import is_blank
from coalitions.files.records import Column, Records, blanks
from coalitions.formatting import many
from learners.data.own.arrays import Arrays, ClientArrays
from learners.data.own.columns import (
    SPLIT,
    TEST_SHARE,
    ClientRows,
    ClientTable,
    check_target,
    class_numbers,
    classes_of,
    drawn,
    parts_of,
    require_column,
    task_of,
)
from learners.data.own.schema import FIRST, MISSING, UNSEEN, InputColumn, Schema, all_blank, united
from learners.settings.seeding import generator

# ----------------------------------------------------------------------------------------
# A client's rows as arrays: numbers scaled by its own training rows, categories as slots.
#
# No statistic leaves a client. Where that is allowed, sums and counts are pooled instead, and
# everybody scales alike.

Floats = NDArray[np.float64]

_LARGEST = 1e30
_FARTHEST = 1e6
"""A number so many deviations from the mean says no more than that it is far."""


@dataclass(frozen=True, eq=False)
class ColumnScale:
    """Centre and unit of each column of numbers."""

    centre: Floats
    unit: Floats

    def __call__(self, values: Floats) -> Floats:
        """Return values in units from the centre; NaN stays NaN."""
        scaled: Floats = np.clip((values - self.centre) / self.unit, -_FARTHEST, _FARTHEST)
        return scaled


def scale_of(values: Sequence[Floats]) -> ColumnScale:
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
    return ColumnScale(np.asarray(centre, dtype=float), np.where(flat, 1.0, spread))


def raw_numbers(rows: ClientRows, columns: Sequence[InputColumn], client: str) -> Floats:
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


def number_array(
    raw: Floats, scale: ColumnScale, columns: Sequence[InputColumn]
) -> NDArray[np.float32]:
    """Return scaled numbers, float32[N, d]; then whether each that may be missing was.

    What is missing gets the mean, which is 0.
    """
    filled = np.nan_to_num(scale(raw))
    may_miss = [place for place, column in enumerate(columns) if column.missing]
    return np.hstack([filled, np.isnan(raw[:, may_miss])]).astype(np.float32)


def category_array(
    rows: ClientRows, columns: Sequence[InputColumn], client: str
) -> NDArray[np.int64]:
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


def _cells(rows: ClientRows, name: str, client: str) -> Column:
    require_column(rows.table, name, f"column of the schema at client {shown(client)}:")
    return rows.column(name)


# ----------------------------------------------------------------------------------------
# A table dealt out to its natural clients: arrays for each of them, and a sentence about it.

LEAST_ROWS = 5
"""Fewer rows than this are not enough to train, validate and test on."""


@dataclass(frozen=True)
class TableSettings:
    """How a table is to be understood.

    Attributes
    ----------
    target
        The column to predict.
    client_column
        The column with the client's name; empty if every client has a table of its own.
    group_column
        The column with what a client belongs to, which is no input; None if there is none.
    task
        classification or regression; None to go by the target.
    schema
        What was agreed; None for the union of the clients' names.
    share_statistics
        Scale by pooled sums and counts instead of each client by its own.
    train_size, test_size
        Rows of a client to train on (validation included) and to test on; None for all there are.
    seed
        Decides which rows those are.
    """

    target: str
    client_column: str = ""
    group_column: str | None = None
    task: str | None = None
    schema: Schema | None = None
    share_statistics: bool = False
    train_size: int | None = None
    test_size: int | None = None
    seed: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Columns whose cells name something, whatever they look like."""
        agreed = () if self.schema is None else self.schema.categories
        return (self.client_column, self.group_column or "", *(each.name for each in agreed))


@dataclass(frozen=True, eq=False)
class RowEncoder:
    """How the rows of one client become arrays.

    Attributes
    ----------
    client, schema
        Whose rows, and what the columns are.
    numbers, target
        Centre and unit of the columns of numbers, and of a target that is a number.
    """

    client: str
    schema: Schema
    numbers: ColumnScale
    target: ColumnScale

    def inputs(self, rows: ClientRows, raw: Floats | None = None) -> dict[str, NDArray[Any]]:
        """Return what a network gets of some rows; `raw` are their numbers if they are known."""
        schema = self.schema
        inputs: dict[str, NDArray[Any]] = {}
        if schema.numbers:
            found = raw_numbers(rows, schema.numbers, self.client) if raw is None else raw
            inputs["numbers"] = number_array(found, self.numbers, schema.numbers)
        if schema.categories:
            inputs["categories"] = category_array(rows, schema.categories, self.client)
        return inputs

    def arrays(self, rows: ClientRows, raw: Floats) -> Arrays:
        """Return inputs and targets of some rows."""
        inputs, schema = self.inputs(rows, raw), self.schema
        if schema.task == "classification":
            return inputs, class_numbers(rows, schema.target, schema.classes, self.client)
        return inputs, self.target(rows.column(schema.target)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class EncodedTable(ClientArrays):
    """A table as arrays: ``numbers`` float32[N, d], ``categories`` int64[N, c]; those there are.

    Attributes
    ----------
    schema
        What the columns are.
    dropped
        Why each column that was left out was.
    encoders
        How new rows of a client become arrays, by its name.
    """

    schema: Schema
    dropped: Mapping[str, str]
    encoders: Mapping[str, RowEncoder]


def encode_table(owners: Sequence[ClientTable], asked: TableSettings) -> EncodedTable:
    """Return the arrays of every client; whatever is wrong with the table is said here."""
    for owner in owners:
        for part in owner.parts:
            require_column(part.table, asked.target, "target")
    demanded = asked.task if asked.schema is None else asked.schema.task
    if asked.schema is not None and asked.task not in (None, demanded):
        raise InvalidInputError(f"the task is {asked.task}, and the schema says {demanded}")
    if asked.schema is not None and asked.target != asked.schema.target:
        raise InvalidInputError(
            f"the target is {shown(asked.target)}, and the schema says {shown(asked.schema.target)}"
        )
    task = task_of(owners, asked.target, demanded)
    check_target(owners, asked.target, task)
    groups = _groups(owners, asked)
    schema, dropped = _schema(owners, asked, task)
    if not schema.columns:
        raise InvalidInputError(
            f"{owners[0].train.table.where}: has no column left to predict {shown(asked.target)}"
            " from" + "".join(f"; {name}: {why}" for name, why in dropped.items())
        )
    _check_rows(owners)
    parts = {owner.name: _parts(owner, schema, asked) for owner in owners}
    raw = {
        name: tuple(raw_numbers(rows, schema.numbers, name) for rows in both)
        for name, both in parts.items()
    }
    pooled = scale_of([train for train, _ in raw.values()]) if asked.share_statistics else None
    everyone = [train for train, _ in parts.values()]
    goal = _target_scale(everyone, schema) if asked.share_statistics or schema.scale else None
    clients, encoders = {}, {}
    for name, both in parts.items():
        scale = pooled or scale_of([raw[name][0]])
        unit = goal or _target_scale([both[0]], schema)
        encoders[name] = RowEncoder(name, schema, scale, unit)
        train, test = map(encoders[name].arrays, both, raw[name])
        clients[name] = train, test
    filled = sum(int(np.isnan(each).sum()) for both in raw.values() for each in both)
    told = _told(owners, asked, schema, dropped, filled, len(set(groups.values())))
    codes = {"categories": schema.category_sizes} if schema.categories else {}
    return EncodedTable(
        clients,
        schema.task,
        schema.classes,
        codes,
        told,
        groups=groups,
        schema=schema,
        dropped=dropped,
        encoders=encoders,
    )


def _groups(owners: Sequence[ClientTable], asked: TableSettings) -> dict[str, str]:
    """Return what each client belongs to; all its rows must say the same."""
    column = asked.group_column
    if column is None:
        return {}
    if column in (asked.target, asked.client_column):
        raise InvalidInputError(
            f"the groups are in column {shown(column)}, which is the target or the client's name;"
            " choose another column, or none"
        )
    found = {}
    for owner in owners:
        for part in owner.parts:
            require_column(part.table, column, "group column")
        names = classes_of([owner], column)
        if len(names) > 1 or is_blank(names[0]):
            said = "in some rows none" if any(map(is_blank, names)) else ", ".join(names[:3])
            raise InvalidInputError(
                f"{owner.train.table.where}: client {shown(owner.name)} has not one group in"
                f" column {shown(column)}, but {said}; all its rows must say the same"
            )
        found[owner.name] = names[0]
    return found


def _schema(
    owners: Sequence[ClientTable], asked: TableSettings, task: str
) -> tuple[Schema, dict[str, str]]:
    if asked.schema is not None:
        used = {each.name for each in asked.schema.columns} | {asked.target, asked.client_column}
        if asked.group_column in {each.name for each in asked.schema.columns}:
            raise InvalidInputError(
                f"the column {shown(asked.group_column)} has the groups, and the schema has it as"
                " an input; choose one of them"
            )
        used |= {asked.group_column or ""}
        there = owners[0].train.table.columns
        return asked.schema, {name: "not in the schema" for name in there if name not in used}
    classes = classes_of(owners, asked.target) if task == "classification" else ()
    known = (asked.target, asked.client_column, asked.group_column or "", *_parting(owners))
    return united(owners, known, asked.target, task, classes)


def _parting(owners: Sequence[ClientTable]) -> tuple[str, ...]:
    """Return the column that told which row is for training, if there was one."""
    table: Records = owners[0].train.table
    return (SPLIT,) if parts_of(table) is not None else ()


def _check_rows(owners: Sequence[ClientTable]) -> None:
    for owner in owners:
        there = sum(map(len, owner.parts))
        if there < LEAST_ROWS:
            raise InvalidInputError(
                f"{owner.train.table.where}: client {shown(owner.name)} has {there}"
                f" row{'s' * (there != 1)}, and a client needs {LEAST_ROWS} to train, validate and"
                " test on; leave it out, or unite it with another"
            )
        if len(owner.train) < 2:
            raise InvalidInputError(
                f"{owner.train.table.where}: client {shown(owner.name)} has {len(owner.train)}"
                " training rows, and needs two at least"
            )


def _parts(
    owner: ClientTable, schema: Schema, asked: TableSettings
) -> tuple[ClientRows, ClientRows]:
    """Return the rows a client trains on, and those it is tested on."""
    train, test = owner.train, owner.test
    if test is None:
        n_test = asked.test_size or max(1, round(TEST_SHARE * len(train)))
        _require(owner, "test", n_test, len(train) - 2)
        train, test = _drawn(train, n_test, "test rows", owner.name, schema, asked)
    elif asked.test_size is not None:
        _require(owner, "test", asked.test_size, len(test))
        _, test = _drawn(test, asked.test_size, "test rows", owner.name, schema, asked)
    if asked.train_size is not None:
        _require(owner, "training", asked.train_size, len(train))
        _, train = _drawn(train, asked.train_size, "training rows", owner.name, schema, asked)
    return train, test


def _require(owner: ClientTable, what: str, wanted: int, there: int) -> None:
    if wanted > there:
        raise InvalidInputError(
            f"{owner.train.table.where}: client {shown(owner.name)} has {there} rows that can be"
            f" {what} rows, not {wanted}"
        )


def _drawn(
    rows: ClientRows, number: int, purpose: str, client: str, schema: Schema, asked: TableSettings
) -> tuple[ClientRows, ClientRows]:
    if number == len(rows):
        return rows[np.arange(0)], rows
    labels = (
        class_numbers(rows, asked.target, schema.classes, client)
        if schema.task == "classification"
        else None
    )
    # The client's name and not its number: leaving another client out changes nothing here.
    left, chosen = drawn(labels, len(rows), number, generator(asked.seed, purpose, client))
    return rows[left], rows[chosen]


def _target_scale(everyone: Sequence[ClientRows], schema: Schema) -> ColumnScale:
    """Return the unit in which a number is predicted: the agreed one, or that of training rows."""
    if schema.scale is not None or schema.task != "regression":
        centre, unit = schema.scale or (0.0, 1.0)
        return ColumnScale(np.array(centre), np.array(unit))
    return scale_of([rows.column(schema.target) for rows in everyone])


def _told(
    owners: Sequence[ClientTable],
    asked: TableSettings,
    schema: Schema,
    dropped: Mapping[str, str],
    filled: int,
    n_groups: int,
) -> str:
    """Return what was done, in a sentence."""
    n_rows = sum(len(part) for owner in owners for part in owner.parts)
    target = (
        f"{schema.target} in {len(schema.classes)} classes"
        if schema.task == "classification"
        else f"the number {schema.target}, {_unit(asked, schema)}"
    )
    parts = [
        f"{n_rows:,} rows of {len(owners)} clients",
        f"predicting {target}",
        f"from {many(len(schema.numbers), 'number')} and"
        f" {many(len(schema.categories), 'category', 'categories')}",
    ]
    if schema.numbers:
        how = "by pooled sums and counts" if asked.share_statistics else "inside each client"
        parts.append(f"scaled {how}")
    if filled:
        parts.append(f"{many(filled, 'missing number')} filled with means")
    if n_groups:
        parts.append(f"judged by the {many(n_groups, 'group')} of {asked.group_column}")
    if owners[0].test is None:
        parts.append("test rows drawn in each client")
    if dropped:
        listed = [f"{name} ({why})" for name, why in dropped.items()]
        parts.append(f"left out {', '.join(listed)}")
    if owners[0].train.table.notes:
        parts.append(f"read with {' and '.join(owners[0].train.table.notes)}")
    return f"{_where(owners)}: {', '.join(parts)}"


def _where(owners: Sequence[ClientTable]) -> str:
    """Return what to call the place of all clients: a table, the folder of several, or nothing."""
    places = {part.table.where for owner in owners for part in owner.parts}
    if len(places) == 1:
        return places.pop()
    common = os.path.commonpath(places) if len({*map(os.path.isabs, places)}) == 1 else ""
    return common if os.path.isdir(common) else "your tables"


def _unit(asked: TableSettings, schema: Schema) -> str:
    """Return in which unit a number is predicted."""
    if schema.scale is not None:
        return f"as (it − {schema.scale[0]:g}) / {schema.scale[1]:g}"
    whose = "the pooled" if asked.share_statistics else "each client's own"
    return f"in {whose} standard deviations from the mean"
