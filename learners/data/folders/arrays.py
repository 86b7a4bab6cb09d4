"""Clients' arrays: ``client/train.npz`` and ``client/test.npz``, inputs and targets by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError, shown
from coalitions.files.arrays import ArrayArchive
from coalitions.files.opening import opened
from learners.data.doors.outcome import Arrays, are_bytes_of_pictures, pixels_of
from learners.data.folders.layout import PARTS, Layout

TARGETS = ("y", "targets", "labels")
"""What targets may be called."""

INPUTS = ("x", "inputs", "images")
"""What the input may be called if there is one; it is then the network's one tensor."""


def read_array_clients(layout: Layout) -> dict[str, tuple[Arrays, Arrays]]:
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
