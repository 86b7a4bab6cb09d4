"""A user's file or folder as the data of a federation, by a path and settings."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalitions.errors import InvalidInputError
from coalitions.files.records import with_days
from coalitions.formatting import many
from learners.data.dataset import DATASETS
from learners.data.own.arrays import ClientArrays
from learners.data.own.columns import client_tables
from learners.data.own.encode_table import TableSettings, encode_table
from learners.data.own.folders import (
    FolderLayout,
    folder_checksum,
    layout_of,
    read_array_clients,
    read_picture_clients,
    read_table_clients,
    read_two_tables,
)
from learners.data.own.schema import read_schema
from learners.data.own.table_files import READERS, file_checksum, read_table
from learners.settings.config import RunConfig

if TYPE_CHECKING:
    from learners.data.client_data import FederatedData, Kind

# ----------------------------------------------------------------------------------------
# Data of a user by path: a table with the rows of all clients, or a folder with one for each.

NATURAL = "natural"
"""The partition of data that have their clients already."""


@dataclass(frozen=True)
class PathSettings:
    """A path, and how to read what is there; see `TableSettings`."""

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


def read_path(asked: PathSettings) -> ClientArrays:
    """Return the clients' arrays of what is at a path; whatever is wrong is said here."""
    if not asked.path.exists():
        raise InvalidInputError(f"{asked.path}: there is no such file or folder")
    if not asked.path.is_dir():
        table = read_table(asked.path)
        column = _needed(asked, "client_column", "with the client's name", table.columns)
        target = _needed(asked, "target", "to predict", table.columns)
        question = table_question(asked, target, column)
        return encode_table(client_tables(with_days(table, question.names), None, column), question)
    layout = layout_of(asked.path)
    if layout.kind == "two tables":
        column = _needed(asked, "client_column", "with the client's name", ())
        target = _needed(asked, "target", "to predict", ())
        question = table_question(asked, target, column)
        return encode_table(read_two_tables(layout, column, question.names), question)
    if layout.kind == "tables":
        if asked.client_column is not None:
            raise InvalidInputError(
                f"{asked.path}: every client has a folder of its own, so there is no client column"
            )
        target = _needed(asked, "target", "to predict", ())
        question = table_question(asked, target, "")
        return encode_table(read_table_clients(layout, question.names), question)
    for key in asked.for_tables_only():
        raise InvalidInputError(
            f"{asked.path}: {key} is for tables, and the clients there have {layout.kind}"
        )
    return _arrays(layout, asked)


def checksum(path: Path) -> str:
    """Return the SHA-256 that stands for what is at a path."""
    return folder_checksum(layout_of(path)) if path.is_dir() else file_checksum(path)


def _needed(asked: PathSettings, key: str, purpose: str, columns: Any) -> str:  # noqa: ANN401
    value: str | None = getattr(asked, key)
    if value is None:
        there = f"; there are: {', '.join(columns)}" if columns else ""
        flag = key.replace("_", "-")
        raise InvalidInputError(f"{asked.path}: name the column {purpose} (--{flag} COLUMN){there}")
    return value


def table_question(asked: PathSettings, target: str, client_column: str) -> TableSettings:
    """Return how a table is to be understood, if those are its columns."""
    if asked.task not in (None, "classification", "regression"):
        raise InvalidInputError(
            f"{asked.path}: the task of a table is classification or regression, not {asked.task}"
        )
    return TableSettings(
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


def _arrays(layout: FolderLayout, asked: PathSettings) -> ClientArrays:
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
    return ClientArrays(
        clients,
        "classification" if classes else asked.task,
        classes,
        {},
        f"{asked.path}: {', '.join([sentence, *told])}",
    )


__all__ = [
    "NATURAL",
    "PathSettings",
    "checksum",
    "is_path",
    "read_path",
    "table_question",
]


# ----------------------------------------------------------------------------------------
# A run's data if they are the user's own: read, held against their checksum, made a federation.

_FOR_PATHS = (
    "target",
    "client_column",
    "group_column",
    "schema",
    "share_statistics",
    "data_sha256",
)


def has_own_data(config: RunConfig) -> bool:
    """Tell whether a run's data are a table or folder of the user's."""
    if is_path(config.dataset, DATASETS):
        return True
    for key in _FOR_PATHS:
        if getattr(config, key):
            raise InvalidInputError(
                f"{key} has no effect unless dataset is a table or a folder; it is {config.dataset}"
            )
    return False


def path_settings(config: RunConfig) -> PathSettings:
    """Return what the settings of a run ask of a path."""
    return PathSettings(
        Path(config.dataset),
        config.target,
        config.client_column,
        config.group_column,
        None if config.task == "auto" else config.task,
        None if config.schema is None else Path(config.schema),
        config.share_statistics,
        config.train_size,
        config.test_size,
        config.seed,
    )


def own_data(config: RunConfig) -> FederatedData:
    """Return what the clients of a run have; whatever can be refused is refused here."""
    return federation_of_outcome(config, read_own(config))


def read_own(config: RunConfig) -> ClientArrays:
    """Return what is at the path that a run names, held against its checksum if there is one."""
    path = Path(config.dataset)
    if config.partition not in ("auto", NATURAL):
        raise InvalidInputError(
            f"{path}: its clients have their data already, so there is no partition"
            f" {config.partition}"
        )
    for name in ("train_sizes", "test_sizes"):
        if getattr(config, name):
            raise InvalidInputError(f"{path}: {name} has no effect on data of one's own")
    if config.poison:
        raise InvalidInputError(f"{path}: poison is for data sets by name, not for your own data")
    if config.data_sha256 is not None:
        bound_to_path(config)
    outcome = read_path(path_settings(config))
    if config.clients != RunConfig.clients:  # which is what it is if nobody said anything
        check_clients(path, len(outcome.clients), config.clients)
    return outcome


def bound_to_path(config: RunConfig) -> RunConfig:
    """Return the settings with the checksum of what is at the path that they name.

    One that they have already must still be that of the path.
    """
    path = Path(config.dataset)
    if not path.exists():
        return config  # which reading it says in its own words
    digest = checksum(path)
    if config.data_sha256 not in (None, digest):
        raise InvalidInputError(
            f"{path}: has changed since the run was set up (data_sha256 differs); bring back what"
            " it was, or start another run"
        )
    return replace(config, data_sha256=digest)


def check_clients(path: Path, there: int, wanted: int) -> None:
    """Refuse another number of clients than there are."""
    if wanted != there:
        raise InvalidInputError(
            f"{path}: has {there} clients, not {wanted}; the number follows from the data, so leave"
            " it out"
        )


def federation_of_outcome(config: RunConfig, outcome: ClientArrays) -> FederatedData:
    """Return what came in by the path of a run; what no client may have is refused here."""
    from learners.data.own.federation_of import federation_of_arrays  # it loads torch

    return federation_of_arrays(
        Path(config.dataset).name,
        outcome,
        validation_share=config.validation_share,
        poison=config.poison,
        seed=config.seed,
    )


def with_own_data(config: RunConfig, data: FederatedData) -> RunConfig:
    """Return the settings with what the data decide: who there is."""
    return replace(config, clients=len(data.clients), partition=NATURAL)
