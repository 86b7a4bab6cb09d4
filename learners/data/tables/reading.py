"""Files that hold a table: CSV, Excel, Parquet, and archives of columns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from coalitions.errors import InvalidInputError, shown
from coalitions.extras import needed
from coalitions.files.arrays import ArrayArchive
from coalitions.files.opening import SPREADSHEETS, opened
from coalitions.files.records import Column, Records, read_records
from learners.data.tables.frames import column_of

_DAY = 86_400.0


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
            table = pyarrow.parquet.read_table(pyarrow.PythonFile(stream))
        except (pyarrow.ArrowException, OSError, ValueError, UnicodeError) as error:
            reason = " ".join(str(error).split())[:100]
            raise InvalidInputError(f"{where}: is not a Parquet file ({reason})") from None
    names = [str(name) for name in table.column_names]
    if len(set(names)) != len(names):
        raise InvalidInputError(f"{where}: two columns have the same name")
    columns = {
        name: _arrow_column(table.column(place), f"{where}: column {shown(name)}")
        for place, name in enumerate(names)
        if not name.startswith("__index_level_")  # numbered rows of pandas
    }
    return _records(where, columns, table.num_rows)


def _arrow_column(cells: Any, what: str) -> Column:  # noqa: ANN401 (a column of Arrow)
    """Return a column of Arrow: numbers, truth values and times as numbers, the rest as text."""
    import pyarrow

    kinds, kind = pyarrow.types, cells.type
    if kinds.is_dictionary(kind):
        return _arrow_column(cells.cast(kind.value_type), what)
    if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return np.array([(cell or "").strip() for cell in cells.to_pylist()], dtype=object)
    if kinds.is_null(kind):
        return np.array([""] * len(cells), dtype=object)
    if kinds.is_boolean(kind):
        texts = {None: "", True: "true", False: "false"}
        return np.array([texts[cell] for cell in cells.to_pylist()], dtype=object)
    if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind):
        return _floats(cells.to_pylist())
    if kinds.is_timestamp(kind):
        seconds = cells.cast(pyarrow.timestamp("us"), safe=False).cast(pyarrow.int64())
        return _floats(seconds.to_pylist()) / (_DAY * 1e6)
    if kinds.is_date(kind):
        return _floats(cells.cast(pyarrow.date32()).cast(pyarrow.int32()).to_pylist())
    raise InvalidInputError(f"{what} holds {kind}; a table has numbers, texts, truths and times")


def _floats(cells: list[Any]) -> Column:
    return np.array([np.nan if cell is None else float(cell) for cell in cells], dtype=float)


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
