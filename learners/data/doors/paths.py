"""Data of a user by path: a table with the rows of all clients, or a folder with one for each."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalitions.characters import many
from coalitions.errors import InvalidInputError
from coalitions.files.dates import with_days
from learners.data.doors.outcome import Outcome
from learners.data.folders.arrays import read_array_clients
from learners.data.folders.layout import Layout, folder_checksum, layout_of
from learners.data.folders.pictures import read_picture_clients
from learners.data.folders.tables import read_table_clients, read_two_tables
from learners.data.tables.dealing import DealtTable, TableQuestion, deal_table
from learners.data.tables.owners import owners_of
from learners.data.tables.reading import READERS, file_checksum, read_table
from learners.data.tables.schema import read_schema

if TYPE_CHECKING:
    from learners.data.contents import Kind  # which loads torch

NATURAL = "natural"
"""The partition of data that have their clients already."""


@dataclass(frozen=True)
class PathQuestion:
    """A path, and how what is there is to be understood; see `TableQuestion`."""

    path: Path
    target: str | None = None
    client_column: str | None = None
    group_column: str | None = None
    task: Kind | None = None
    schema: Path | None = None
    share_statistics: bool = False
    train_size: int | None = None
    test_size: int | None = None
    seed: int = 0

    def for_tables_only(self) -> dict[str, object]:
        """Return what was said that only tables have."""
        said = {
            "target": self.target,
            "client_column": self.client_column,
            "group_column": self.group_column,
            "schema": self.schema,
            "share_statistics": self.share_statistics or None,
        }
        return {key: value for key, value in said.items() if value is not None}


def is_path(dataset: str, known: Container[str]) -> bool:
    """Tell whether a data set is given by a path and not by one of the names we know.

    Examples
    --------
    >>> is_path("patients.csv", ()), is_path("clinics/", ()), is_path("digits", ["digits"])
    (True, True, False)
    """
    if dataset in known:
        return False
    path = Path(dataset)
    return "/" in dataset or "\\" in dataset or path.suffix.lower() in READERS or path.exists()


def read_path(asked: PathQuestion) -> Outcome:
    """Return the clients' arrays of what is at a path; whatever is wrong is said here."""
    if not asked.path.exists():
        raise InvalidInputError(f"{asked.path}: there is no such file or folder")
    if not asked.path.is_dir():
        table = read_table(asked.path)
        column = _needed(asked, "client_column", "with the client's name", table.columns)
        target = _needed(asked, "target", "to predict", table.columns)
        question = table_question(asked, target, column)
        return deal_table(owners_of(with_days(table, question.names), None, column), question)
    layout = layout_of(asked.path)
    if layout.kind == "two tables":
        column = _needed(asked, "client_column", "with the client's name", ())
        target = _needed(asked, "target", "to predict", ())
        question = table_question(asked, target, column)
        return deal_table(read_two_tables(layout, column, question.names), question)
    if layout.kind == "tables":
        if asked.client_column is not None:
            raise InvalidInputError(
                f"{asked.path}: every client has a folder of its own, so there is no client column"
            )
        target = _needed(asked, "target", "to predict", ())
        question = table_question(asked, target, "")
        return deal_table(read_table_clients(layout, question.names), question)
    for key in asked.for_tables_only():
        raise InvalidInputError(
            f"{asked.path}: {key} is for tables, and the clients there have {layout.kind}"
        )
    return _arrays(layout, asked)


def checksum(path: Path) -> str:
    """Return the SHA-256 that stands for what is at a path."""
    return folder_checksum(layout_of(path)) if path.is_dir() else file_checksum(path)


def _needed(asked: PathQuestion, key: str, purpose: str, columns: Any) -> str:  # noqa: ANN401
    value: str | None = getattr(asked, key)
    if value is None:
        there = f"; there are: {', '.join(columns)}" if columns else ""
        flag = key.replace("_", "-")
        raise InvalidInputError(f"{asked.path}: name the column {purpose} (--{flag} COLUMN){there}")
    return value


def table_question(asked: PathQuestion, target: str, client_column: str) -> TableQuestion:
    """Return how a table is to be understood, if those are its columns."""
    if asked.task not in (None, "classification", "regression"):
        raise InvalidInputError(
            f"{asked.path}: the task of a table is classification or regression, not {asked.task}"
        )
    return TableQuestion(
        target,
        client_column,
        asked.group_column,
        asked.task,
        None if asked.schema is None else read_schema(asked.schema),
        asked.share_statistics,
        asked.train_size,
        asked.test_size,
        asked.seed,
    )


def _arrays(layout: Layout, asked: PathQuestion) -> Outcome:
    """Return what clients have in arrays or pictures."""
    if asked.train_size is not None:
        raise InvalidInputError(
            f"{asked.path}: train_size is for tables; the clients' {layout.kind} are taken whole"
        )
    if layout.kind == "pictures":
        dealt = read_picture_clients(layout, seed=asked.seed, test_size=asked.test_size)
        clients, classes, told = dealt.clients, dealt.classes, dealt.told
        what = f"of {len(classes)} classes"
    else:
        if asked.test_size is not None:
            raise InvalidInputError(
                f"{asked.path}: test_size is for data that are divided here, and every client has a"
                " test.npz"
            )
        clients, classes, told = read_array_clients(layout), (), ()
        (first, _), _ = next(iter(clients.values()))
        shapes = [f"{name} {list(array.shape[1:])}" for name, array in first.items()]
        what = f"with {', '.join(shapes)}"
    n_samples = sum(len(targets) for both in clients.values() for _, targets in both)
    sentence = f"{many(n_samples, 'sample')} of {many(len(clients), 'client')} {what}"
    return Outcome(
        clients,
        "classification" if classes else asked.task,
        classes,
        {},
        f"{asked.path}: {', '.join([sentence, *told])}",
    )


__all__ = [
    "NATURAL",
    "DealtTable",
    "PathQuestion",
    "checksum",
    "is_path",
    "read_path",
    "table_question",
]
