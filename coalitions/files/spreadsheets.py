"""Excel's .xlsx files, read with openpyxl: values only, sizes checked, no formula evaluated."""

from __future__ import annotations

import datetime
import itertools
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

from coalitions.errors import InvalidInputError, MissingDependencyError
from coalitions.extras import install_command
from coalitions.files.arrays import FREELY_UNPACKED, MOST_UNPACKING
from coalitions.files.cells import Cell, is_blank
from coalitions.files.tables import Row, Understood, graph_of_rows
from coalitions.graph import SynergyGraph, Treatment

MOST_EMPTY = 10_000
"""Empty lines in a row that are gone through; a file may number its lines as it likes."""

FREE_CELLS = 1 << 19
"""Cells that a sheet may have however small its file is, blank ones before others included."""

CELLS_A_BYTE = 16
"""Cells that a larger sheet may have for each byte of its file; a number takes two or more."""

MOST_CHARACTERS = 32_767
"""Characters of a cell; Excel writes no more."""

_FREELY_UNPACKED = 32 << 20
"""As `FREELY_UNPACKED`, for XML, of which a byte becomes many in memory."""


def read_spreadsheet(
    stream: IO[bytes],
    where: str,
    treatment: Treatment,
    tell: Callable[[str], None] | None = None,
) -> SynergyGraph:
    """Return the graph in the first sheet that is not empty."""
    with opened_sheet(stream, where) as sheet:
        return graph_of_rows(sheet.rows, where, Understood(list(sheet.notes)), treatment, tell)


@dataclass(frozen=True)
class Sheet:
    """The first sheet of a file that is not empty.

    Attributes
    ----------
    rows
        Gives its rows, from the first one on each time; dates have a remark, if they are odd.
    notes
        Which sheet it is, if there are several.
    refuse_unsaved
        Raises if a formula's value is not in the file.
    check_cells
        Raises if a number of cells is out of proportion to the file.
    """

    rows: Callable[[], Iterator[Row]]
    notes: tuple[str, ...]
    refuse_unsaved: Callable[[], None]
    check_cells: Callable[[int], None]


@contextmanager
def opened_sheet(stream: IO[bytes], where: str, *, odd_dates: bool = True) -> Iterator[Sheet]:
    """Give the first sheet that is not empty; what is refused of it is said to be of that sheet.

    Parameters
    ----------
    odd_dates
        Whether a date is none of what a table should hold, so that it is to be called one.
    """
    packed = _check_archive(stream, where)
    try:
        import openpyxl
    except ImportError:
        raise MissingDependencyError(
            f"{where}: .xlsx needs openpyxl, which is not installed:"
            f" {install_command('openpyxl')} (or save the sheet as .csv)"
        ) from None

    def check_cells(n_cells: int) -> None:
        if n_cells > max(FREE_CELLS, CELLS_A_BYTE * packed):
            raise InvalidInputError(
                f"{where}: has more than {n_cells:,} cells, most of them blank, in a file of"
                f" {packed:,} bytes; delete what stands far from the table, or save it as .csv"
            )

    def rows_of(sheet: Any, *, odd_dates: bool = True) -> Iterator[Row]:  # noqa: ANN401 (openpyxl's)
        return _rows(sheet, where, check_cells, odd_dates=odd_dates)

    with _damage(where):
        book = openpyxl.load_workbook(stream, read_only=True, data_only=True, keep_links=False)
        sheets = [sheet for sheet in book.worksheets if hasattr(sheet, "iter_rows")]
        sheet = next((sheet for sheet in sheets if _begins(rows_of(sheet))), None)
        if sheet is None:
            raise InvalidInputError(f"{where}: has no sheet with anything in it")

        def refuse_unsaved() -> None:
            stream.seek(0)
            formulas = openpyxl.load_workbook(stream, read_only=True, keep_links=False)
            _refuse_unsaved(rows_of(formulas[sheet.title]), rows_of(sheet), where)

        several = len(sheets) > 1
        notes = (f"sheet {sheet.title!r}, one of {len(sheets)}",) if several else ()
        try:
            rows = partial(rows_of, sheet, odd_dates=odd_dates)
            yield Sheet(rows, notes, refuse_unsaved, check_cells)
        except InvalidInputError as error:
            refuse_unsaved()
            if not several:
                raise
            raise InvalidInputError(
                f"{error} (in the sheet {sheet.title!r}, the first of {len(sheets)} with anything"
                " in it; if the table is in another one, move that to the front)"
            ) from None


def _check_archive(stream: IO[bytes], where: str) -> int:
    """Return the bytes of an archive.

    Refused is what is none, would unpack to far more than it is, or declares entities.
    """
    if stream.read(8).startswith(b"\xd0\xcf\x11\xe0"):
        raise InvalidInputError(
            f"{where}: is an old Excel file, or one with a password; save it as .xlsx or .csv"
        )
    packed = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    with _damage(where):
        archive = zipfile.ZipFile(stream)
        members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        if (
            unpacked > max(_FREELY_UNPACKED, MOST_UNPACKING * packed)
            or unpacked > 16 * FREELY_UNPACKED
        ):
            raise InvalidInputError(
                f"{where}: would unpack from {packed:,} to {unpacked:,} bytes; save it as .csv"
            )
        for member in members:
            if member.filename.endswith((".xml", ".rels")):
                with archive.open(member) as part:
                    _refuse_document_type(part, where)
    stream.seek(0)
    return packed


def _refuse_document_type(part: IO[bytes], where: str) -> None:
    """Refuse XML with a document type, by whose entities a small file fills any memory."""
    from xml.parsers import expat

    begun = False

    def refuse(*_: object) -> None:
        raise InvalidInputError(f"{where}: declares an XML document type, which Excel does not")

    def begin(*_: object) -> None:
        nonlocal begun
        begun = True  # a document type can only stand before

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = begin
    while not begun:
        chunk = part.read(1 << 12)
        parser.Parse(chunk, not chunk)
        if not chunk:
            return


@contextmanager
def _damage(where: str) -> Iterator[None]:
    try:
        yield
    except (InvalidInputError, MemoryError):
        raise
    except Exception as error:  # openpyxl checks little: what is missing or misspelt, it trips on
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise InvalidInputError(f"{where}: is no .xlsx file, or a damaged one ({reason})") from None


def _rows(
    sheet: Any,  # noqa: ANN401 (a worksheet of openpyxl)
    where: str,
    check_cells: Callable[[int], None],
    *,
    odd_dates: bool = True,
) -> Iterator[Row]:
    sheet.reset_dimensions()  # what a file says of its size is not believed
    empty = n_cells = 0
    for line, row in enumerate(sheet.iter_rows(values_only=True), 1):
        n_cells += len(row)
        check_cells(n_cells)
        if any(isinstance(value, str) and len(value) > MOST_CHARACTERS for value in row):
            raise InvalidInputError(
                f"{where}: line {line} has a cell with more than {MOST_CHARACTERS:,} characters,"
                " which Excel does not write"
            )
        cells = [_cell(value, odd_dates=odd_dates) for value in row]
        while cells and cells[-1] == "":
            cells.pop()
        empty = 0 if cells else empty + 1
        if empty > MOST_EMPTY:
            raise InvalidInputError(
                f"{where}: has more than {MOST_EMPTY} empty lines between others; save the table"
                " alone"
            )
        yield line, cells


def _cell(value: object, *, odd_dates: bool) -> Cell:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return str(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return f"{value.date()} (a date)" if odd_dates else str(value.date())
    return str(value)


def _begins(rows: Iterator[Row]) -> bool:
    """Tell whether a sheet has anything in its first rows."""
    return any(not is_blank(cell) for _, row in itertools.islice(rows, 200) for cell in row)


def _refuse_unsaved(formulas: Iterator[Row], values: Iterator[Row], where: str) -> None:
    """Say so if a formula's value was not saved: nobody evaluates it here."""
    for (line, written), (_, saved) in zip(formulas, values, strict=False):
        for column, cell in enumerate(written):
            computed = isinstance(cell, str) and cell.startswith("=")
            if computed and (column >= len(saved) or is_blank(saved[column])):
                raise InvalidInputError(
                    f"{where}: line {line}, column {column + 1} is a formula whose value is not in"
                    " the file, and formulas are not evaluated; open it in a spreadsheet program"
                    " and save it again"
                ) from None
