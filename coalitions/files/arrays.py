"""NumPy's files, read with care: headers are believed only as far as the bytes behind them go.

What a file claims is checked before memory is taken for it, only the arrays that are asked for
are unpacked, and Python objects are never made.
"""

from __future__ import annotations

import lzma
import math
import os
import re
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


_LONGEST_HEADER = 10_000
"""Characters of a header; NumPy itself reads no longer one, and an array has about a hundred."""

_MOST_AXES = 32
"""Axes of an array; every version of NumPy can have as many."""

_ENTRY = re.compile(
    r"""\s*(?:
        (["'])descr\1\s*:\s*(["'])(?P<descr>[<>|=]?[biufcmMUS]\d{1,9}(?:\[\w{1,12}\])?)\2
      | (["'])fortran_order\4\s*:\s*(?P<fortran_order>True|False)
      | (["'])shape\6\s*:\s*\((?P<shape>\s*(?:\d{1,19}L?\s*,\s*)*(?:\d{1,19}L?\s*)?)\)
    )\s*(?:,\s*|$)""",
    re.VERBOSE | re.ASCII,
)
"""One of the three entries of a header; Python 2 wrote lengths as 3L."""

_NOT_PORTABLE = ("f12", "f16", "c24", "c32")
"""Types whose bytes mean another number on another machine; PyTorch has none of them."""


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

    This, and `ArrayArchive`, is how arrays are read that others wrote. Whatever is wrong with one
    is an `InvalidInputError`.

    Parameters
    ----------
    stream
        The file, at its beginning; it can be sought.
    where
        What messages call it.

    Attributes
    ----------
    header
        What the file says about the array.
    n_bytes
        Bytes that are behind the header.
    """

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self._stream, self._where = stream, where
        start = stream.tell()
        if stream.read(len(ZIP_MAGIC)) == ZIP_MAGIC:
            raise InvalidInputError(f"{where}: holds an archive of arrays; name it .npz")
        stream.seek(start)
        self.header = _read_header(stream, where)
        begin = stream.tell()
        self.n_bytes = stream.seek(0, os.SEEK_END) - begin
        stream.seek(begin)

    def load(self) -> np.ndarray[Any, Any]:
        """Return the array."""
        return _read_array(self._stream, self.header, self.n_bytes, self._where)


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
    header = _header_of(_header_text(stream))
    if header is None:
        raise InvalidInputError(
            f"{where}: is not a NumPy file of plain numbers or texts, in a shape that an array can"
            " have (objects are never loaded; save long doubles as float64)"
        )
    return header


def _header_text(stream: IO[bytes]) -> str:
    """Return the text of a header; nothing if there is none, or one that is far too long."""
    version = stream.read(len(MAGIC) + 2)
    # Version 3 is for records, whose fields have names in Unicode.
    length_format = {MAGIC + b"\1\0": "<H", MAGIC + b"\2\0": "<I"}.get(version)
    if length_format is None:
        return ""
    length = stream.read(struct.calcsize(length_format))
    if len(length) < struct.calcsize(length_format):
        return ""
    (n_bytes,) = struct.unpack(length_format, length)
    text = stream.read(n_bytes) if n_bytes <= _LONGEST_HEADER else b""
    return text.decode("latin-1") if len(text) == n_bytes else ""


def _header_of(text: str) -> ArrayHeader | None:
    """Return what a header says, None if that is no array of plain numbers or texts.

    NumPy reads a header as a Python expression, and fails in as many ways as Python has. This
    reads the one dictionary that writers write, in any order of its three entries.
    """
    inside = re.fullmatch(r"\s*\{(.*)\}\s*", text, re.DOTALL)
    entries: dict[str, str] = {}
    rest = inside[1] if inside else ""
    while (entry := _ENTRY.match(rest)) is not None:
        entries |= {name: value for name, value in entry.groupdict().items() if value is not None}
        rest = rest[entry.end() :]
    if rest or len(entries) < 3:
        return None
    lengths = [int(length) for length in re.findall(r"\d+", entries["shape"])]
    try:
        dtype = np.dtype(entries["descr"])
    except (TypeError, ValueError, OverflowError, SyntaxError):
        return None
    room = math.prod(max(length, 1) for length in lengths) * dtype.itemsize
    if not 0 < room < 1 << 63 or len(lengths) > _MOST_AXES or dtype.str[1:] in _NOT_PORTABLE:
        return None
    return ArrayHeader(tuple(lengths), dtype, entries["fortran_order"] == "True")


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
    return content.view(header.dtype).reshape(header.shape, order=order)
