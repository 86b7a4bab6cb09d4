"""NumPy's files, read with care: headers are believed only as far as the bytes behind them go.

What a file claims is checked before memory is taken for it, only the arrays that are asked for
are unpacked, and Python objects are never made.
"""

from __future__ import annotations

import lzma
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Literal

import numpy as np

from coalitions.errors import InvalidInputError

MAGIC = b"\x93NUMPY"
ZIP_MAGIC = b"PK\x03\x04"

FREELY_UNPACKED = 128 << 20
"""Bytes that an archive may unpack to, however small it is."""

MOST_UNPACKING = 100
"""How many times its own size a larger archive may unpack to."""

_CHUNK = 1 << 20

_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)
"""Python unpacks the last 4 kB at a time, which become 30 MB at most; of bzip2, gigabytes."""

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    ValueError,  # among them UnicodeDecodeError, of a member's name
    LookupError,
    OverflowError,
    NotImplementedError,  # a feature of ZIP that Python does not have
    RuntimeError,  # a password
)
"""What Python's reader of ZIP archives raises, depending on which byte is wrong."""


@dataclass(frozen=True)
class ArrayHeader:
    """What a file says about an array: shape, type and order of the numbers."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran_order: bool

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes behind the header."""
        return self.size * self.dtype.itemsize

    @property
    def is_numeric(self) -> bool:
        """Whether it holds real numbers, or truth values."""
        return self.dtype.kind in "biuf"

    @property
    def is_text(self) -> bool:
        """Whether it holds text."""
        return self.dtype.kind in "US"


class ArrayFile:
    """One array in a ``.npy`` file.

    Parameters
    ----------
    stream
        The file, at its beginning; it can be sought.
    where
        What messages call it.
    """

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self._stream, self._where = stream, where
        start = stream.tell()
        if stream.read(len(ZIP_MAGIC)) == ZIP_MAGIC:
            raise InvalidInputError(f"{where}: holds an archive of arrays; name it .npz")
        stream.seek(start)
        self.header = _read_header(stream, where)

    def load(self) -> np.ndarray[Any, Any]:
        """Return the array."""
        here = self._stream.tell()
        there = self._stream.seek(0, os.SEEK_END) - here
        self._stream.seek(here)
        return _read_array(self._stream, self.header, there, self._where)


class ArrayArchive:
    """The arrays in an ``.npz`` file, by name; those that nobody asks for stay packed.

    Parameters
    ----------
    stream, where
        As for `ArrayFile`.
    """

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self._where = where
        start = stream.tell()
        if stream.read(len(MAGIC)) == MAGIC:
            raise InvalidInputError(f"{where}: holds one bare array; name it .npy")
        self._packed = stream.seek(0, os.SEEK_END) - start
        stream.seek(start)
        with _damage(where, "the archive"):
            self._archive = zipfile.ZipFile(stream)
        self._members = {
            info.filename.removesuffix(".npy"): info for info in self._archive.infolist()
        }
        self._headers: dict[str, ArrayHeader] = {}

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return sorted(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def header(self, name: str) -> ArrayHeader:
        """Return what the file says about an array, which stays packed."""
        if name not in self._headers:
            with self._opened(name) as (member, _):
                self._headers[name] = _read_header(member, self._called(name))
        return self._headers[name]

    def load(self, *names: str, widened: int = 1) -> list[np.ndarray[Any, Any]]:
        """Return some of the arrays, unless they are out of proportion to the file.

        Parameters
        ----------
        *names
            Which ones.
        widened
            Bytes of an element as it will be used, if that is more than in the file.
        """
        self._check_proportion(names, widened)
        return [self._load(name) for name in names]

    def _load(self, name: str) -> np.ndarray[Any, Any]:
        with self._opened(name) as (member, size):
            header = _read_header(member, self._called(name))
            return _read_array(member, header, size - member.tell(), self._called(name))

    def _check_proportion(self, names: Iterable[str], widened: int) -> None:
        headers = map(self.header, names)
        unpacked = sum(each.size * max(each.dtype.itemsize, widened) for each in headers)
        if unpacked > max(FREELY_UNPACKED, MOST_UNPACKING * self._packed):
            raise InvalidInputError(
                f"{self._where}: {', '.join(names)} would unpack from {self._packed:,} to"
                f" {unpacked:,} bytes; above {FREELY_UNPACKED >> 20} MiB, an archive may unpack"
                f" to {MOST_UNPACKING} times its size (numpy.savez does not pack)"
            )

    def _called(self, name: str) -> str:
        return f"{self._where}: {name}"

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[IO[bytes], int]]:
        """Give a member to read, and its unpacked size, beyond which it cannot be read."""
        info = self._members[name]
        if info.compress_type not in _PACKINGS:
            raise InvalidInputError(
                f"{self._called(name)}: is packed as NumPy does not pack; save it with NumPy"
            )
        with _damage(self._where, name), self._archive.open(info) as member:
            yield member, info.file_size


@contextmanager
def _damage(where: str, what: str) -> Iterator[None]:
    try:
        yield
    except InvalidInputError:
        raise
    except _DAMAGE as error:
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise InvalidInputError(f"{where}: {what} is damaged ({reason})") from None


def _read_header(stream: IO[bytes], where: str) -> ArrayHeader:
    """Read a header; the stream then stands before the numbers."""
    try:
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]  # version 3 is for records with names in Unicode
        shape, fortran_order, dtype = read(stream)
        header = ArrayHeader(shape, dtype, fortran_order)
        plain = not header.dtype.hasobject and header.dtype.itemsize > 0
        sound = plain and all(length >= 0 for length in header.shape)
    except (MemoryError, zipfile.BadZipFile, zlib.error, lzma.LZMAError):
        raise
    except Exception:  # a header is a Python expression, which can be wrong in all of its ways
        sound = False
    if not sound:
        raise InvalidInputError(
            f"{where}: is not a NumPy file of plain numbers (objects are never loaded)"
        )
    return header


def _read_array(
    stream: IO[bytes], header: ArrayHeader, there: int, where: str
) -> np.ndarray[Any, Any]:
    """Read the elements behind a header, of whose bytes there are so many."""
    if header.nbytes > there:
        raise InvalidInputError(
            f"{where}: is cut short: {' × '.join(map(str, header.shape))} elements are"
            f" {header.nbytes:,} bytes, but {there:,} are there"
        )
    content = np.empty(header.nbytes, np.uint8)
    filled = 0
    while filled < header.nbytes:
        chunk = stream.read(min(_CHUNK, header.nbytes - filled))
        if not chunk:
            raise InvalidInputError(f"{where}: is cut short after {filled:,} bytes")
        content[filled : filled + len(chunk)] = np.frombuffer(chunk, np.uint8)
        filled += len(chunk)
    stream.read(1)  # at the end of a member, its checksum is compared
    order: Literal["F", "C"] = "F" if header.fortran_order else "C"
    try:
        return content.view(header.dtype).reshape(header.shape, order=order)
    except (ValueError, OverflowError) as error:  # no elements at all, but a huge shape
        raise InvalidInputError(f"{where}: has an impossible shape ({error})") from None
