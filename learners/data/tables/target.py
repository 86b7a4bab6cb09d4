"""What is to be predicted: classes or a number, and whether it can be learnt at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coalitions.characters import in_order
from coalitions.errors import InvalidInputError, shown, spoken
from coalitions.files.cells import is_blank
from coalitions.files.records import Column
from learners.data.tables.owners import Owner, Rows

FEW = 20
"""Whole numbers with more different values than this are predicted as numbers."""

MOST_CLASSES = 100
"""More classes than this are hardly classes."""


def task_of(owners: Sequence[Owner], target: str, task: str | None) -> str:
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


def _regression(owners: Sequence[Owner], target: str) -> str:
    """Return the task, once it is certain that the target can be predicted as a number."""
    for owner in owners:
        for part in owner.parts:
            _check_numbers(part, target, owner.name)
    return "regression"


def classes_of(owners: Sequence[Owner], target: str) -> tuple[str, ...]:
    """Return the names of all clients' classes, in order."""
    return tuple(
        in_order(
            {_name(cell) for owner in owners for p in owner.parts for cell in p.column(target)}
        )
    )


def check_target(owners: Sequence[Owner], target: str, task: str) -> None:
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
    rows: Rows, target: str, classes: Sequence[str], client: str
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


def _check_there(rows: Rows, target: str, client: str) -> None:
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


def _check_numbers(rows: Rows, target: str, client: str) -> None:
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
