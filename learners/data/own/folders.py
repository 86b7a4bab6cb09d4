"""Folders of a user: one file or one folder for each client, with arrays, pictures or tables."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError, shown
from coalitions.files.arrays import ArrayArchive
from coalitions.files.opening import opened
from coalitions.files.records import with_days
from coalitions.formatting import in_order
from learners.data.own.arrays import Arrays, are_bytes_of_pictures, pixels_of
from learners.data.own.columns import (
    ClientTable,
    check_all_tested,
    client_table,
    client_tables,
    divided,
)
from learners.data.own.table_files import READERS, file_checksum, read_table
from learners.settings.seeding import generator

# ----------------------------------------------------------------------------------------
# What is in a folder of clients, and which of the ways to lay it out that is.

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
TABLES = tuple(ending for ending in READERS if ending != ".npz")
PARTS = ("train", "test")

_WANTED = (
    "a folder of clients has one folder for each, with train.npz and test.npz, with train.csv and"
    " test.csv, or with a folder of pictures for each class"
)


@dataclass(frozen=True)
class FolderLayout:
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


def layout_of(folder: Path) -> FolderLayout:
    """Return how a folder is laid out; a mixture is refused."""
    if table_in(folder, "train") is not None:
        if table_in(folder, "test") is None:
            raise InvalidInputError(
                f"{folder}: there is a train table, and no test table beside it"
            )
        return FolderLayout(folder, "two tables", ())
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
    return FolderLayout(folder, first, tuple(clients))


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


def folder_checksum(layout: FolderLayout) -> str:
    """Return one SHA-256 for the names and bytes of all files that are read."""
    total = hashlib.sha256()
    for path in sorted(layout.folder.rglob("*")):
        inside = path.relative_to(layout.folder)
        if path.is_file() and not any(part.startswith((".", "__")) for part in inside.parts):
            total.update(f"{file_checksum(path)}  {inside.as_posix()}\n".encode())
    return total.hexdigest()


# ----------------------------------------------------------------------------------------
# Clients' arrays: ``client/train.npz`` and ``client/test.npz``, inputs and targets by name.

TARGETS = ("y", "targets", "labels")
"""What targets may be called."""

INPUTS = ("x", "inputs", "images")
"""What the input may be called if there is one; it is then the network's one tensor."""


def read_array_clients(layout: FolderLayout) -> dict[str, tuple[Arrays, Arrays]]:
    """Return what every client trains on and is tested on; all have the same arrays."""
    clients = {}
    for name in layout.clients:
        folder = layout.folder / name
        for part in PARTS:
            if not (folder / f"{part}.npz").is_file():
                raise InvalidInputError(
                    f"{folder / part}.npz: client {shown(name)} has no"
                    f" {'test' if part == 'test' else 'training'} data"
                )
        train, test = (_read(folder / f"{part}.npz", name) for part in PARTS)
        clients[name] = train, test
    _check_alike(clients, layout.folder)
    return clients


def _read(path: Path, client: str) -> Arrays:
    with opened(path) as (where, stream):
        archive = ArrayArchive(stream, where)
        names = archive.names
        target = _called(names, TARGETS, where, "targets")
        inputs = [name for name in names if name != target]
        if not inputs:
            raise InvalidInputError(f"{where}: has targets ({target}), and no inputs such as x")
        n_rows = {name: (archive.header(name).shape or (0,))[0] for name in names}
        for name in names:
            header = archive.header(name)
            if not header.shape or not (header.is_numeric or (header.is_text and name == target)):
                raise InvalidInputError(
                    f"{where}: {name} is {header.dtype} {header.shape}; arrays are numbers [N, …]"
                )
            if n_rows[name] != n_rows[target]:
                raise InvalidInputError(
                    f"{where}: {name} has {n_rows[name]} samples, and {target} has {n_rows[target]}"
                )
        arrays = dict(zip(names, archive.load(*names, widened=4), strict=True))
    if not n_rows[target]:
        raise InvalidInputError(f"{where}: client {shown(client)} has no samples there")
    targets = arrays.pop(target)
    for name in inputs:
        if arrays[name].dtype.kind == "f" and not np.isfinite(arrays[name]).all():
            row = np.argwhere(~np.isfinite(arrays[name]))[0][0]
            raise InvalidInputError(
                f"{where}: {name} of client {shown(client)} is not finite in row {row}; fill in"
                " what is missing, or leave the row out"
            )
    if len(inputs) == 1 and inputs[0].casefold() in INPUTS:
        arrays = {"inputs": arrays[inputs[0]]}
    return {name: _usable(array) for name, array in arrays.items()}, targets


def _called(names: list[str], known: tuple[str, ...], where: str, what: str) -> str:
    found = [name for name in names if name.casefold() in known]
    if len(found) != 1:
        raise InvalidInputError(
            f"{where}: has {' and '.join(found) or 'no array'} for the {what}; one array is called"
            f" {' or '.join(known)}, and there are: {', '.join(names) or 'none'}"
        )
    return found[0]


def _usable(array: NDArray[Any]) -> NDArray[Any]:
    """Return an input as a network wants it: pictures of bytes become −1 … 1, channels first."""
    if are_bytes_of_pictures(array):
        return pixels_of(array)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    with np.errstate(over="ignore"):  # what is beyond all floats is refused where clients are made
        return array.astype(np.float32)


def _check_alike(clients: dict[str, tuple[Arrays, Arrays]], folder: Path) -> None:
    """Refuse arrays that differ between clients, or between training and test."""
    first, ((model, targets), _) = next(iter(clients.items()))
    for name, parts in clients.items():
        for part, (inputs, truth) in zip(PARTS, parts, strict=True):
            path = folder / name / f"{part}.npz"
            others = f"client {shown(first)}" if name != first else f"its {PARTS[0]}.npz"
            if set(inputs) != set(model):
                odd = min(set(inputs) ^ set(model))
                raise InvalidInputError(
                    f"{path}: client {shown(name)} has {', '.join(inputs)} there, and {others} has"
                    f" {', '.join(model)}: {odd} differs"
                )
            for key, array in inputs.items():
                if (array.shape[1:], array.dtype) != (model[key].shape[1:], model[key].dtype):
                    raise InvalidInputError(
                        f"{path}: {key} of client {shown(name)} is {_form(array)}, that of {others}"
                        f" {_form(model[key])}"
                    )
            if truth.shape[1:] != targets.shape[1:] or _sort(truth) != _sort(targets):
                raise InvalidInputError(
                    f"{path}: the targets of client {shown(name)} are {_form(truth)}, those of"
                    f" {others} {_form(targets)}"
                )


def _form(array: NDArray[Any]) -> str:
    return f"{array.dtype} [{', '.join(['N', *map(str, array.shape[1:])])}]"


def _sort(array: NDArray[Any]) -> str:
    """Return what kind of targets an array has: whole numbers, others, or texts."""
    return {"U": "text", "S": "text", "f": "numbers"}.get(array.dtype.kind, "whole numbers")


# ----------------------------------------------------------------------------------------
# Clients' pictures: ``client/CLASS/*.png``, or with train and test folders between.

MOST_BYTES = 4 << 30
"""Pictures that take more memory than this are refused before one is decoded."""


@dataclass(frozen=True, eq=False)
class PictureClients:
    """Every client's pictures, float32[N, C, H, W] from −1 to 1, and what was done with them."""

    clients: dict[str, tuple[Arrays, Arrays]]
    classes: tuple[str, ...]
    told: tuple[str, ...]


def read_picture_clients(
    layout: FolderLayout, *, seed: int, test_size: int | None
) -> PictureClients:
    """Return the pictures of all clients in one size and one number of channels."""
    parted = {name: _parted(layout.folder / name) for name in layout.clients}
    if len(set(parted.values())) > 1:
        odd = next(name for name in layout.clients if parted[name] != parted[layout.clients[0]])
        raise InvalidInputError(
            f"{layout.folder}: client {shown(odd)} has"
            f" {'train and test folders' if parted[odd] else 'no train and test folders'}, and"
            f" client {shown(layout.clients[0])} has{' none' if parted[odd] else ''}"
        )
    is_parted = parted[layout.clients[0]]
    files = {
        name: {part: _files(layout.folder / name / part) for part in (PARTS if is_parted else [""])}
        for name in layout.clients
    }
    everything = [path for parts in files.values() for some in parts.values() for _, path in some]
    size, coloured, told = _one_size(everything, layout.folder)
    classes = tuple(
        in_order({label for p in files.values() for some in p.values() for label, _ in some})
    )
    clients = {}
    for name, parts in files.items():
        dealt = [_arrays(some, classes, size, coloured) for some in parts.values()]
        if not is_parted:
            rng = generator(seed, "test pictures", name)
            what = f"{layout.folder / name}: client {shown(name)}"
            dealt = list(divided(dealt[0], test_size, rng, what))
        clients[name] = dealt[0], dealt[1]
    if not is_parted:
        told.append("test pictures drawn in each client")
    return PictureClients(clients, classes, tuple(told))


def _parted(client: Path) -> bool:
    names = {each.name for each in visible(client) if each.is_dir()}
    if names == {"train"}:
        raise InvalidInputError(f"{client}: client {shown(client.name)} has no test folder")
    return names == set(PARTS)


def _files(folder: Path) -> list[tuple[str, Path]]:
    """Return the class and the path of each picture."""
    classes = [each for each in visible(folder) if each.is_dir()]
    found = [
        (label.name, path)
        for label in classes
        for path in visible(label)
        if path.suffix.lower() in PICTURES
    ]
    for label in classes:
        if not any(name == label.name for name, _ in found):
            raise InvalidInputError(f"{label}: there is no picture of this class")
    if not found:
        raise InvalidInputError(f"{folder}: there are no folders with pictures, one for each class")
    return found


def _one_size(paths: list[Path], folder: Path) -> tuple[tuple[int, int], bool, list[str]]:
    """Return width and height for all pictures, whether in colour, and what is done for that."""
    from PIL import Image, UnidentifiedImageError

    sizes: Counter[tuple[int, int]] = Counter()
    modes = set()
    for path in paths:
        try:
            with Image.open(path) as picture:  # reads the header only
                sizes[picture.size] += 1
                modes.add(picture.mode)
        except (OSError, UnidentifiedImageError, ValueError, Image.DecompressionBombError) as error:
            raise InvalidInputError(f"{path} is not a readable picture ({error})") from None
    # The most usual size; the smaller of two that are equally usual.
    size = min(sizes, key=lambda each: (-sizes[each], each))
    coloured = not modes <= {"1", "L", "LA", "I", "I;16", "F"}
    needed = len(paths) * size[0] * size[1] * (3 if coloured else 1) * 4
    if needed > MOST_BYTES:
        raise InvalidInputError(
            f"{folder}: {len(paths):,} pictures of {size[0]}×{size[1]} would take"
            f" {needed / 1e9:.1f} GB of memory, and {MOST_BYTES / 1e9:.1f} GB are the most; make"
            " them smaller"
        )
    others = len(paths) - sizes[size]
    told = (
        [f"{others:,} of {len(paths):,} pictures resized to {size[0]}×{size[1]}"] if others else []
    )
    return size, coloured, told


def _arrays(
    some: list[tuple[str, Path]], classes: tuple[str, ...], size: tuple[int, int], coloured: bool
) -> Arrays:
    pixels = pixels_of(np.stack([_decoded(path, size, coloured) for _, path in some]))
    labels = np.array([classes.index(label) for label, _ in some], dtype=np.int64)
    return {"inputs": pixels}, labels


def _decoded(path: Path, size: tuple[int, int], coloured: bool) -> NDArray[np.uint8]:
    """Return a picture as uint8[H, W] or uint8[H, W, 3]."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            plain = picture.convert("RGB" if coloured else "L")
            if plain.size != size:
                plain = plain.resize(size, Image.Resampling.BILINEAR)
            return np.asarray(plain)
    except (OSError, UnidentifiedImageError, ValueError, SyntaxError) as error:
        raise InvalidInputError(f"{path} is not a readable picture ({error})") from None


# ----------------------------------------------------------------------------------------
# Clients' tables: ``client/train.csv``, and ``client/test.csv`` if rows are not to be drawn.
#
# A column named split does without the second.


def read_table_clients(layout: FolderLayout, names: Collection[str] = ()) -> list[ClientTable]:
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
        owners.append(client_table(name, learnt, tested))
    check_all_tested(owners)
    return owners


def read_two_tables(
    layout: FolderLayout, client_column: str, names: Collection[str] = ()
) -> list[ClientTable]:
    """Return the clients of a table with training rows and one with test rows."""
    train, test = table_in(layout.folder, "train"), table_in(layout.folder, "test")
    assert train is not None
    assert test is not None  # by the layout
    learnt, tested = (with_days(read_table(path), names) for path in (train, test))
    return client_tables(learnt, tested, client_column)
