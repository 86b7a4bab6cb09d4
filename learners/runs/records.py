"""Files that grow with the rounds of a run, and marks that tell where each stood.

Lines go to ``NAME.jsonl``, arrays to ``NAME.npy`` [rounds, …]. What is written stays as it is, so a
mark is a length and the checksum of that much of the file. A checkpoint keeps the marks of its
round: on resuming, what came later is cut off, and what was lost or changed is noticed.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from coalitions.errors import DamagedFileError, InvalidInputError
from coalitions.files.storage import disk_trouble_named
from coalitions.files.text import json_text
from coalitions.files.writing import atomic_write, require_room

Mark = tuple[int, str]
"""Bytes of a file, and their SHA-256 checksum."""

_CHUNK = 1 << 20


@dataclass
class _Written:
    """How far a file is written, with the running checksum of that much."""

    size: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    def add(self, content: bytes) -> None:
        self.size += len(content)
        self.digest.update(content)


class Records:
    """The growing files of a folder.

    Parameters
    ----------
    folder
        Where they are. A file of which there is no mark is begun anew by the first write to it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: dict[str, _Written] = {}

    def add_line(self, name: str, document: Mapping[str, Any]) -> None:
        """Add a line to ``NAME.jsonl``."""
        path = self._folder / f"{name}.jsonl"
        line = f"{json_text(document, indent=None)}\n".encode()
        begun = self._written.get(path.name)
        with disk_trouble_named(path), path.open("wb" if begun is None else "ab") as file:
            file.write(line)
        self._written.setdefault(path.name, _Written()).add(line)

    def add_row(self, name: str, value: NDArray[Any], t: int, n_rounds: int) -> None:
        """Put the array of round `t` in its place in ``NAME.npy``; rounds without one are NaN."""
        path = self._folder / f"{name}.npy"
        row = np.ascontiguousarray(value, np.float64)
        shape = (n_rounds, *row.shape)
        header = _header(shape)
        begun = self._written.get(path.name)
        if begun is None:
            _write_empty(path, header, shape)
            begun = self._written[path.name] = _Written()
            begun.add(header)
        place = len(header) + (t - 1) * row.nbytes
        with path.open("rb") as file:
            if file.read(len(header)) != header:
                raise InvalidInputError(
                    f"{name} must have the same shape in every round; in round {t} it is"
                    f" {list(row.shape)}"
                )
        with disk_trouble_named(path), path.open("r+b") as file:
            file.seek(place)
            file.write(row.tobytes())
        nothing = np.full(row.shape, np.nan).tobytes()
        for _ in range(begun.size, place, row.nbytes or 1):
            begun.add(nothing)
        begun.add(row.tobytes())

    def names(self) -> list[str]:
        """Return the names of the files."""
        return list(self._written)

    def marks(self) -> dict[str, Mark]:
        """Return how far every file is written, once it is on disk so far."""
        for name in self._written:
            path = self._folder / name
            with disk_trouble_named(path), path.open("r+b") as file:
                os.fsync(file.fileno())
        return {name: (file.size, file.digest.hexdigest()) for name, file in self._written.items()}

    def return_to(self, marks: Mapping[str, Mark]) -> None:
        """Cut every file back to its mark; refuse if one is no longer what was marked."""
        written = {}
        for name, (size, checksum) in marks.items():
            written[name] = _read(self._folder / name, size)
            if written[name].digest.hexdigest() != checksum:
                raise DamagedFileError(
                    f"{self._folder / name} is damaged: it is not what was written to it"
                )
        for name, (size, _) in marks.items():
            path = self._folder / name
            with disk_trouble_named(path), path.open("r+b") as file:
                file.truncate(size)
                if name.endswith(".npy"):
                    _fill(file, size)
        self._written = written


def _read(path: Path, size: int) -> _Written:
    """Return the first `size` bytes of a file as written."""
    written = _Written()
    try:
        with path.open("rb") as file:
            while written.size < size:
                content = file.read(min(_CHUNK, size - written.size))
                if not content:
                    raise DamagedFileError(
                        f"{path} is damaged: {size - written.size:,} bytes of it are lost"
                    )
                written.add(content)
    except FileNotFoundError:
        raise DamagedFileError(f"{path} is missing") from None
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror}") from None
    return written


def _header(shape: tuple[int, ...]) -> bytes:
    header = io.BytesIO()
    descr = npy.dtype_to_descr(np.dtype(np.float64))
    fields = {"descr": descr, "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(header, fields)
    return header.getvalue()


def _write_empty(path: Path, header: bytes, shape: tuple[int, ...]) -> None:
    """Write an array without numbers: a full disk is noticed now, not in round 400."""
    require_room(path, len(header) + 8 * prod(shape))
    with atomic_write(path) as file:
        file.write(header)
        row = np.full(shape[1:], np.nan).tobytes()
        for _ in range(shape[0]):
            file.write(row)


def _fill(file: BinaryIO, size: int) -> None:
    """Forget the rows of an array file after its first `size` bytes."""
    file.seek(0)
    npy.read_magic(file)
    shape, _, _ = npy.read_array_header_1_0(file)
    end = file.tell() + 8 * prod(shape)
    file.seek(size)
    nothing = np.full(_CHUNK // 8, np.nan).tobytes()
    while file.tell() < end:
        file.write(nothing[: end - file.tell()])
