"""The schema of a table: columns, categories and classes in order, agreed before the run.

It is a file that everybody has, or the union of what clients call things: names travel, numbers do
not. A category that nobody named has a slot of its own, and so has one that is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from coalitions.errors import InvalidInputError, UnknownNameError, did_you_mean, shown
from coalitions.files.cells import number
from coalitions.files.opening import decoded, load_json, opened
from coalitions.files.records import Column, blanks
from coalitions.formatting import in_order
from learners.data.own.columns import ClientTable

MISSING, UNSEEN, FIRST = 0, 1, 2
"""Slots of a category: nothing was written, nobody named it, and the first that has a name."""

MOST_CATEGORIES = 1000
"""A column of text with more different values than this is left out."""

FEW = 20
"""Less than this many texts are categories even if no two rows have the same."""

_STRAY = 0.1
"""If no more than this share of a column is no number, the rest was meant to be numbers."""

_LONGEST = 1 << 24


@dataclass(frozen=True)
class InputColumn:
    """A column to predict from.

    Attributes
    ----------
    name
        Its name.
    kind
        What it holds.
    categories
        Their names, in order of their slots.
    missing
        Whether a number may be missing: then there is a second one that says whether it was.
    """

    name: str
    kind: Literal["number", "category"]
    categories: tuple[str, ...] = ()
    missing: bool = False

    def document(self) -> dict[str, Any]:
        """Return the column as plain values."""
        if self.kind == "number":
            return {"name": self.name, "kind": self.kind, "missing": self.missing}
        return {"name": self.name, "kind": self.kind, "categories": list(self.categories)}


@dataclass(frozen=True)
class Schema:
    """What all clients agree on.

    Attributes
    ----------
    target
        The column that is predicted.
    task
        What it asks for.
    classes
        Names of the classes, in order; none in a regression.
    columns
        What it is predicted from.
    scale
        Centre and unit in which a number is predicted, such as (0, 1000); None to go by each
        client's own mean and deviation.
    """

    target: str
    task: Literal["classification", "regression"]
    classes: tuple[str, ...]
    columns: tuple[InputColumn, ...]
    scale: tuple[float, float] | None = None

    @property
    def numbers(self) -> tuple[InputColumn, ...]:
        """The columns of numbers."""
        return tuple(each for each in self.columns if each.kind == "number")

    @property
    def categories(self) -> tuple[InputColumn, ...]:
        """The columns of categories."""
        return tuple(each for each in self.columns if each.kind == "category")

    @property
    def category_sizes(self) -> tuple[int, ...]:
        """How many slots each column of categories has."""
        return tuple(FIRST + len(each.categories) for each in self.categories)

    def document(self) -> dict[str, Any]:
        """Return the schema as plain values, as a file has it."""
        scale = {} if self.scale is None else {"scale": list(self.scale)}
        return {
            "target": self.target,
            "task": self.task,
            "classes": list(self.classes),
            **scale,
            "columns": [each.document() for each in self.columns],
        }


def united(
    owners: Sequence[ClientTable],
    known: Collection[str],
    target: str,
    task: str,
    classes: tuple[str, ...],
) -> tuple[Schema, dict[str, str]]:
    """Return the union of the clients' names, and why each column that is left out is.

    Parameters
    ----------
    known
        Columns that are nothing to predict from: the target, the client's name.
    """
    names = _same_columns(owners)
    dropped: dict[str, str] = {}
    columns = []
    for name in names:
        if name in known:
            continue
        column = _united_column(owners, name)
        if isinstance(column, str):
            dropped[name] = column
        else:
            columns.append(column)
    kind: Literal["classification", "regression"] = (
        "classification" if task == "classification" else "regression"
    )
    return Schema(target, kind, classes, tuple(columns)), dropped


def _same_columns(owners: Sequence[ClientTable]) -> list[str]:
    """Return the names of the columns, which all tables have."""
    first = owners[0].train.table
    for owner in owners:
        for part in owner.parts:
            other = part.table
            for one, two in ((first, other), (other, first)):
                lacking = [name for name in one.columns if name not in two.columns]
                if lacking:
                    hint = did_you_mean(lacking[0], two.columns)
                    raise InvalidInputError(
                        f"{two.where}: client {shown(owner.name)} has no column"
                        f" {shown(lacking[0])}, and {one.where} has it; {hint}all clients need the"
                        " same columns, or a schema that names those to use"
                    )
    return list(first.columns)


def _united_column(owners: Sequence[ClientTable], name: str) -> InputColumn | str:
    """Return what the clients say of a column together, or why it is left out."""
    parts = [(owner, part.column(name)) for owner in owners for part in owner.parts]
    filled = [(owner, cells) for owner, cells in parts if not all_blank(cells)]
    if not filled:
        return "nothing in it"
    kinds = {cells.dtype == object: owner.name for owner, cells in filled}
    if len(kinds) == 2:
        raise InvalidInputError(
            f"{owners[0].train.table.where}: column {shown(name)} has numbers at client"
            f" {shown(kinds[False])} and texts at client {shown(kinds[True])}"
        )
    n_rows = sum(len(cells) for _, cells in parts)
    if False in kinds:
        if n_rows > FEW and all(_numbers_rows(cells) for _, cells in filled):
            return "it numbers the rows"
        return InputColumn(name, "number", missing=any(blanks(cells).any() for _, cells in parts))
    words = {str(cell) for _, cells in filled for cell in cells[~blanks(cells)]}
    n_filled = sum(int((~blanks(cells)).sum()) for _, cells in filled)
    if len(words) > MOST_CATEGORIES or (len(words) > FEW and len(words) > n_filled / 2):
        _check_numbers_by_mistake(owners, name, n_filled)
        return f"{len(words)} different texts in {n_filled} rows"
    if len(words) == 1 and n_filled == n_rows:
        return "the same everywhere"
    return InputColumn(name, "category", tuple(in_order(words)))


def _check_numbers_by_mistake(owners: Sequence[ClientTable], name: str, n_filled: int) -> None:
    """Refuse to leave out, as a column of texts, one in which hardly a cell is no number."""
    odd = [
        (owner, part, row)
        for owner in owners
        for part in owner.parts
        for row, cell in enumerate(part.column(name))
        if all((found := number(cell, mark)) is None or np.isinf(found) for mark in ".,")
    ]
    if 0 < len(odd) <= _STRAY * n_filled:
        owner, part, row = odd[0]
        cell = part.column(name)[row]
        raise InvalidInputError(
            f"{part.place(row)}: client {shown(owner.name)} has {shown(cell)} in column"
            f" {shown(name)}, and {n_filled - len(odd)} of the column's {n_filled} cells are"
            " numbers; write a number, leave it blank, or give a schema without the column"
        )


def all_blank(cells: Column) -> bool:
    """Tell whether a column says nothing."""
    return bool(blanks(cells).all())


def _numbers_rows(cells: Column) -> bool:
    """Tell whether numbers go up from row to row in whole steps, as those of rows do."""
    if not (np.isfinite(cells).all() and (cells == np.round(cells)).all()):
        return False
    return bool((cells[1:] > cells[:-1]).all())


# -- files -----------------------------------------------------------------------------------------


def read_schema(path: Path) -> Schema:
    """Return the schema in a JSON or TOML file."""
    with opened(path) as (where, stream):
        content = stream.read(_LONGEST + 1)
    if len(content) > _LONGEST:
        raise InvalidInputError(f"{where}: is too long to be a schema")
    if path.suffix.lower() == ".toml":
        document: object = _toml(decoded(content, where), where)
    else:
        document = load_json(content, where)
    try:
        return _schema(document)
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: {error}") from None


def _toml(text: str, where: str) -> object:
    import tomllib

    if any(line.count(".") > 1000 for line in text.split("\n")):
        raise InvalidInputError(f"{where}: is too deep to be a schema")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "its lists are too deep" if isinstance(error, RecursionError) else error
        raise InvalidInputError(f"{where}: is not a TOML file: {reason}") from None


_KEYS = {"target", "task", "classes", "columns", "scale"}


def _schema(document: object) -> Schema:
    values = _table(document, "a schema", _KEYS)
    target, task = values.get("target"), values.get("task")
    if not isinstance(target, str) or not target:
        raise InvalidInputError("a schema names the target")
    if task not in ("classification", "regression"):
        raise InvalidInputError(
            f"the task of a schema is classification or regression, not {shown(task)}"
        )
    classes = _names(values.get("classes", []), "the classes")
    if (task == "classification") != (len(classes) > 1):
        raise InvalidInputError(
            "a classification has at least two classes, and a regression none;"
            f" {len(classes)} {'is' if len(classes) == 1 else 'are'} listed"
        )
    listed = values.get("columns", [])
    if not isinstance(listed, list) or not listed:
        raise InvalidInputError("a schema lists the columns to predict from")
    columns = tuple(map(_input_column, listed))
    names = [each.name for each in columns]
    for name in (target, *names):
        if [target, *names].count(name) > 1:
            raise InvalidInputError(f"the column {shown(name)} is there twice")
    return Schema(target, task, classes, columns, _scale(values.get("scale"), task))


def _scale(listed: object, task: object) -> tuple[float, float] | None:
    if listed is None:
        return None
    numbers = listed if isinstance(listed, list) else []
    sound = len(numbers) == 2 and all(
        isinstance(each, int | float) and not isinstance(each, bool) and abs(each) < 1e30
        for each in numbers
    )
    if not sound or numbers[1] <= 0 or task != "regression":
        raise InvalidInputError(
            f"the scale of a regression is a centre and a unit above 0, such as [0, 1000], not"
            f" {shown(listed)}"
        )
    return float(numbers[0]), float(numbers[1])


def _input_column(document: object) -> InputColumn:
    values = _table(document, "a column", {"name", "kind", "categories", "missing"})
    name, kind = values.get("name"), values.get("kind")
    if not isinstance(name, str) or not name:
        raise InvalidInputError("a column has a name")
    what = f"column {shown(name)}"
    if kind not in ("number", "category"):
        raise InvalidInputError(f"the kind of {what} is number or category, not {shown(kind)}")
    categories = _names(values.get("categories", []), f"the categories of {what}")
    if (kind == "category") != bool(categories):
        raise InvalidInputError(f"{what} lists its categories if, and only if, that is its kind")
    missing = values.get("missing", False)
    if not isinstance(missing, bool) or (kind == "category" and "missing" in values):
        raise InvalidInputError(f"missing is true or false for a number, but not so for {what}")
    return InputColumn(name, kind, categories, missing)


def _table(document: object, what: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise InvalidInputError(f"{what} is a table of {', '.join(sorted(known))}")
    for key in document:
        if key not in known:
            raise UnknownNameError(
                f"{what} has no entry {shown(key)}; {did_you_mean(str(key), known)}there are:"
                f" {', '.join(sorted(known))}"
            )
    return document


def _names(listed: object, what: str) -> tuple[str, ...]:
    if not isinstance(listed, list) or not all(isinstance(name, str) and name for name in listed):
        raise InvalidInputError(f"{what} are a list of names")
    if len(set(listed)) != len(listed):
        twice = next(name for name in listed if listed.count(name) > 1)
        raise InvalidInputError(f"{what} name {shown(twice)} twice")
    return tuple(listed)
