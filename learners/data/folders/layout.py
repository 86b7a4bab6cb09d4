"""What is in a folder of clients, and which of the ways to lay it out that is."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from coalitions.characters import in_order
from coalitions.errors import InvalidInputError, shown
from learners.data.tables.reading import READERS, file_checksum

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
TABLES = tuple(ending for ending in READERS if ending != ".npz")
PARTS = ("train", "test")

_WANTED = (
    "a folder of clients has one folder for each, with train.npz and test.npz, with train.csv and"
    " test.csv, or with a folder of pictures for each class"
)


@dataclass(frozen=True)
class Layout:
    """How a folder is laid out.

    Attributes
    ----------
    folder
        The folder.
    kind
        ``arrays``: client/{train,test}.npz; ``tables``: client/{train,test}.csv or another table;
        ``pictures``: client/CLASS/*.png, or client/{train,test}/CLASS/*.png; ``two tables``:
        train.csv and test.csv for all clients together.
    clients
        The clients' names, in order.
    """

    folder: Path
    kind: Literal["arrays", "tables", "pictures", "two tables"]
    clients: tuple[str, ...]


def layout_of(folder: Path) -> Layout:
    """Return how a folder is laid out; a mixture is refused."""
    if table_in(folder, "train") is not None:
        if table_in(folder, "test") is None:
            raise InvalidInputError(
                f"{folder}: there is a train table, and no test table beside it"
            )
        return Layout(folder, "two tables", ())
    clients = in_order(each.name for each in visible(folder) if each.is_dir())
    if not clients:
        raise InvalidInputError(f"{folder}: has no folder in it; {_WANTED}")
    kinds = {name: _kind(folder / name) for name in clients}
    first = kinds[clients[0]]
    for name, kind in kinds.items():
        if kind != first:
            raise InvalidInputError(
                f"{folder}: client {shown(clients[0])} has {first}, and client {shown(name)} has"
                f" {kind}"
            )
    return Layout(folder, first, tuple(clients))


def _kind(client: Path) -> Literal["arrays", "tables", "pictures"]:
    if any((client / f"{part}.npz").is_file() for part in PARTS):
        return "arrays"
    if any(table_in(client, part) is not None for part in PARTS):
        return "tables"
    if any(each.is_dir() for each in visible(client)):
        return "pictures"
    raise InvalidInputError(f"{client}: there are no data of this client; {_WANTED}")


def table_in(folder: Path, part: str) -> Path | None:
    """Return the table with a part of the data, None if there is none."""
    found = [folder / f"{part}{ending}" for ending in TABLES]
    found = [path for path in found if path.is_file()]
    if len(found) > 1:
        raise InvalidInputError(f"{folder}: has both {found[0].name} and {found[1].name}")
    return found[0] if found else None


def visible(folder: Path) -> list[Path]:
    """Return what is in a folder but for hidden files, in order."""
    try:
        found = sorted(folder.iterdir())
    except OSError as error:
        raise InvalidInputError(f"{folder}: cannot be read ({error.strerror})") from None
    return [path for path in found if not path.name.startswith((".", "__"))]


def folder_checksum(layout: Layout) -> str:
    """Return one SHA-256 for the names and bytes of all files that are read."""
    total = hashlib.sha256()
    for path in sorted(layout.folder.rglob("*")):
        inside = path.relative_to(layout.folder)
        if path.is_file() and not any(part.startswith((".", "__")) for part in inside.parts):
            total.update(f"{file_checksum(path)}  {inside.as_posix()}\n".encode())
    return total.hexdigest()
