"""Files that hold a table: CSV, Excel, Parquet, and archives of columns."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from coalitions.errors import InvalidInputError, shown
from coalitions.extras import needed
from coalitions.files.arrays import MOST_UNPACKING, ArrayArchive
from coalitions.files.opening import SPREADSHEETS, opened
from coalitions.files.records import Column, Records, read_records
from learners.data.own.frames import column_of

_DAY = 86_400.0

_FREELY_UNPACKED = 16 << 20
"""Bytes that a Parquet file may unpack to, however small it is: two million numbers."""


def read_table(path: Path) -> Records:
    """Return the table in a file, by the ending of its name."""
    kind = path.suffix.lower()
    if kind not in READERS:
        other = "; save the sheet as .xlsx or .csv" if kind.lstrip(".") in SPREADSHEETS else ""
        raise InvalidInputError(
            f"{path}: a table of clients' data is one of {', '.join(READERS)}, not {kind or path}"
            f"{other}"
        )
    return READERS[kind](path)


def file_checksum(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with opened(path) as (_, stream):
        return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def _read_parquet(path: Path) -> Records:
    needed("pyarrow")
    import pyarrow
    import pyarrow.parquet

    with opened(path) as (where, stream):
        try:
            return _arrow_records(stream, where)
        except InvalidInputError:
            raise
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            reason = " ".join(str(error).split())[:100]
            raise InvalidInputError(f"{where}: is not a Parquet file ({reason})") from None


def _arrow_records(stream: IO[bytes], where: str) -> Records:
    packed = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    groups = [group for group in _row_groups(stream, where, packed) if group.num_rows]
    names = [str(name) for name in groups[0].column_names] if groups else []
    if len(set(names)) != len(names):
        raise InvalidInputError(f"{where}: two columns have the same name")
    columns = {}
    for place, name in enumerate(names):
        if not name.startswith("__index_level_"):  # numbered rows of pandas
            cells = [group.column(place) for group in groups]
            columns[name] = _arrow_column(cells, f"{where}: column {shown(name)}")
    return _records(where, columns, sum(group.num_rows for group in groups))


def _row_groups(stream: IO[bytes], where: str, packed: int) -> Iterator[Any]:
    """Yield the tables in a Parquet file, as long as they are in proportion to it.

    Texts stay as they are in the file: each one once, and its number in every row that has it.
    """
    import pyarrow.parquet

    file = pyarrow.parquet.ParquetFile(stream)
    about = file.metadata

    def check(unpacked: int) -> None:
        if unpacked > max(_FREELY_UNPACKED, MOST_UNPACKING * packed):
            raise InvalidInputError(
                f"{where}: {about.num_rows:,} rows of {about.num_columns:,} columns would unpack"
                f" from {packed:,} to {unpacked:,} bytes; above {_FREELY_UNPACKED >> 20} MiB, a"
                f" table may unpack to {MOST_UNPACKING} times its size"
            )

    told = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
    check(max(told, 8 * about.num_rows * about.num_columns))
    texts = [field.name for field in file.schema_arrow if _is_text(field.type)]
    file = pyarrow.parquet.ParquetFile(stream, metadata=about, read_dictionary=texts)
    unpacked = 0
    for number in range(about.num_row_groups):
        group = file.read_row_group(number, use_threads=False)
        unpacked += sum(_n_bytes(column) for column in group.columns)
        check(unpacked)  # what a file tells of its sizes need not be so
        yield group


def _is_text(kind: Any) -> bool:  # noqa: ANN401 (a type of Arrow)
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _n_bytes(cells: Any) -> int:  # noqa: ANN401 (a column of Arrow)
    """Return what a column takes when each cell has its own text."""
    import pyarrow.compute

    total = int(cells.nbytes)
    for chunk in cells.chunks:
        if pyarrow.types.is_dictionary(chunk.type) and _is_text(chunk.type.value_type):
            lengths = pyarrow.compute.binary_length(chunk.dictionary).take(chunk.indices)
            total += pyarrow.compute.sum(lengths.cast("int64")).as_py() or 0
    return total


def _arrow_column(groups: Sequence[Any], what: str) -> Column:
    """Return a column of Arrow: numbers, truth values and times as numbers, the rest as text."""
    chunks = [chunk for cells in groups for chunk in cells.chunks]
    return np.concatenate([_chunk(chunk, what) for chunk in chunks])


def _chunk(cells: Any, what: str) -> Column:  # noqa: ANN401 (an array of Arrow)
    import pyarrow

    kinds, kind = pyarrow.types, cells.type
    if kinds.is_dictionary(kind):
        known = _chunk(cells.dictionary, what)
        missing: Column = np.array([""], object) if known.dtype == object else np.array([np.nan])
        places = cells.indices.cast("int64").fill_null(len(known)).to_numpy(zero_copy_only=False)
        filled: Column = np.concatenate([known, missing])[places]
        return filled
    if _is_text(kind):
        return np.array([(cell or "").strip() for cell in cells.to_pylist()], dtype=object)
    if kinds.is_null(kind):
        return np.array([""] * len(cells), dtype=object)
    if kinds.is_boolean(kind):
        texts = np.array(["false", "true", ""], dtype=object)
        told: Column = texts[cells.cast("int8").fill_null(2).to_numpy(zero_copy_only=False)]
        return told
    if kinds.is_integer(kind) or kinds.is_floating(kind):
        return _floats(cells)
    if kinds.is_decimal(kind):
        return np.array([np.nan if cell is None else float(cell) for cell in cells.to_pylist()])
    if kinds.is_timestamp(kind):
        seconds = cells.cast(pyarrow.timestamp("us"), safe=False).cast("int64")
        return _floats(seconds) / (_DAY * 1e6)
    if kinds.is_date(kind):
        return _floats(cells.cast(pyarrow.date32()).cast("int32"))
    raise InvalidInputError(f"{what} holds {kind}; a table has numbers, texts, truths and times")


def _floats(cells: Any) -> Column:  # noqa: ANN401 (an array of Arrow)
    floats = cells.cast("float64", safe=False).to_numpy(zero_copy_only=False)
    return np.array(floats, dtype=float)  # with NaN where there is nothing; a copy of one's own


def _read_npz(path: Path) -> Records:
    with opened(path) as (where, stream):
        archive = ArrayArchive(stream, where)
        headers = {name: archive.header(name) for name in archive.names}
        for name, header in headers.items():
            if len(header.shape) != 1 or not (header.is_numeric or header.is_text):
                raise InvalidInputError(
                    f"{where}: {name} is {header.dtype} {header.shape}; a column is an array [N] of"
                    " numbers or texts"
                )
        lengths = {name: header.shape[0] for name, header in headers.items()}
        if len(set(lengths.values())) > 1:
            first, *others = lengths
            odd = next(name for name in others if lengths[name] != lengths[first])
            raise InvalidInputError(
                f"{where}: {first} has {lengths[first]} rows and {odd} has {lengths[odd]}"
            )
        arrays = archive.load(*headers, widened=8)
    columns = {
        name: _array_column(array, f"{where}: {name}")
        for name, array in zip(headers, arrays, strict=True)
    }
    return _records(where, columns, next(iter(lengths.values()), 0))


def _array_column(array: Column, what: str) -> Column:
    if array.dtype.kind == "S":
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError:
            raise InvalidInputError(f"{what} has bytes that are not UTF-8 text") from None
    return column_of(array, what)


def _records(where: str, columns: dict[str, Column], n_rows: int) -> Records:
    if not n_rows or not columns:
        raise InvalidInputError(f"{where}: has no rows")
    return Records(where, columns, np.arange(1, n_rows + 1))


READERS: dict[str, Callable[[Path], Records]] = {
    ".csv": read_records,
    ".tsv": read_records,
    ".xlsx": read_records,
    ".parquet": _read_parquet,
    ".npz": _read_npz,
}
"""What reads each kind of file."""
