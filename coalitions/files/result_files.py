"""Results in files: JSON for programs; a table, a workbook, Markdown or a page for people."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsFloat

from coalitions.errors import InvalidInputError
from coalitions.extras import needed
from coalitions.files.writing import write_json, write_whole
from coalitions.formatting import decimal, figure, listed, visible, visible_lines
from coalitions.results import PublicResult

# ----------------------------------------------------------------------------------------
# The ending of a file's name says what is written.

ENDINGS = (".json", ".csv", ".xlsx", ".md", ".html")
"""What the name of a result's file can end in."""

MOST_SHEET_ROWS, MOST_CELL = 1_048_576, 32_767
"""Rows of a sheet of Excel, and characters of a cell."""

Cell = str | int | float
Table = list[list[Cell]]
"""Rows of cells, the headings first."""


def check_result_path(path: Path) -> None:
    """Refuse a name that does not say how to write a result; ask before a long search.

    Raises
    ------
    InvalidInputError
        The ending is none of `ENDINGS`.
    MissingDependencyError
        openpyxl, which writes .xlsx, is not installed.
    """
    if path.suffix.lower() not in ENDINGS:
        raise InvalidInputError(
            f"{path}: its ending does not say what to write; end the name in"
            f" {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
        )
    if path.suffix.lower() == ".xlsx":
        needed("openpyxl")


def write_tables(
    path: Path,
    tables: Mapping[str, Table],
    document: Mapping[str, Any],
    *,
    title: str,
    said: str = "",
) -> None:
    """Write a result to a file, which is there when it is complete.

    Parameters
    ----------
    path
        The file; see `ENDINGS`.
    tables
        Tables by title: .csv has the first one, the others have all.
    document
        What .json has.
    title, said
        Heading and a text below it, in .md and .html.
    """
    check_result_path(path)
    ending = path.suffix.lower()
    if ending == ".json":
        write_json(path, document)
    elif ending == ".csv":
        write_whole(path, _csv(next(iter(tables.values()))))
    elif ending == ".xlsx":
        write_whole(path, _workbook(tables))
    else:
        written = _markdown if ending == ".md" else _page
        write_whole(path, written(tables, title, said).encode())


def table_of(result: PublicResult | Sequence[Mapping[str, object]]) -> Table:
    """Return a result, or rows of values, as a table: the headings, then texts and numbers.

    Examples
    --------
    >>> table_of([{"who": ("ann", "bob"), "worth": 2.5, "sure": True}, {"who": "cleo"}])
    [['who', 'worth', 'sure'], ['ann, bob', 2.5, 'yes'], ['cleo', '', '']]
    """
    rows = result._rows() if isinstance(result, PublicResult) else result
    heads = list(dict.fromkeys(name for row in rows for name in row)) or ["none"]
    return [[*heads], *([_cell(row.get(name)) for name in heads] for row in rows)]


def _cell(value: object) -> Cell:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return listed(map(str, value))
    if isinstance(value, int):
        return value
    if isinstance(value, str) or not isinstance(value, SupportsFloat):
        return "" if value is None else str(value)
    number = float(value)
    return (
        decimal(number) if math.isfinite(number) else str(number)
    )  # a sheet has no infinite numbers


# ----------------------------------------------------------------------------------------
# Each kind of file.


def _csv(table: Table) -> bytes:
    """Return a table as CSV; with the mark by which Excel knows UTF-8."""
    text = io.StringIO()
    csv.writer(text).writerows(
        [_no_formula(cell) if isinstance(cell, str) else cell for cell in row] for row in table
    )
    return text.getvalue().encode("utf-8-sig")


def _no_formula(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: an apostrophe before what begins one.

    Examples
    --------
    >>> _no_formula("=1+1"), _no_formula("Ann")
    ("'=1+1", 'Ann')
    """
    return f"'{text}" if re.match(r"\s*[=+\-@]|[\t\r]", text) else text


def _workbook(tables: Mapping[str, Table]) -> bytes:
    """Return a workbook with a sheet for each table."""
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    for title, rows in tables.items():
        sheet = book.create_sheet(title)
        if len(rows) > MOST_SHEET_ROWS:
            raise InvalidInputError(
                f"a sheet of Excel has {MOST_SHEET_ROWS:,} rows at most, not {len(rows):,}; write"
                " .csv"
            )
        for i, row in enumerate(rows, 1):
            for j, value in enumerate(row, 1):
                cell = sheet.cell(i, j)
                if isinstance(value, str):
                    text = visible(value)
                    cell.value = text if len(text) <= MOST_CELL else f"{text[: MOST_CELL - 1]}…"
                    cell.data_type, cell.quotePrefix = "s", _no_formula(value) != value
                else:
                    cell.value = value
        sheet.freeze_panes = "A2"
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def _markdown(tables: Mapping[str, Table], title: str, said: str) -> str:
    """Return the tables in Markdown."""

    def shown(cell: Cell) -> str:
        if not isinstance(cell, str):
            return figure(cell)
        return re.sub(r"([\\`*_{}\[\]<>()#+\-.!|&~])", r"\\\1", visible(cell))

    parts = [f"# {title}"]
    if said:
        parts.append(re.sub(r"([\\`*_\[\]<>#|&~])", r"\\\1", visible_lines(said)))
    for name, (head, *rows) in tables.items():
        lines = [[*map(str, head)], ["---"] * len(head), *([*map(shown, row)] for row in rows)]
        drawn = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts.append(f"## {name.capitalize()}\n\n{drawn}")
    return "\n\n".join(parts) + "\n"


def _page(tables: Mapping[str, Table], title: str, said: str) -> str:
    """Return the tables as a page that needs nothing but itself."""
    from coalitions.drawing.document import html_document, words

    body = [f"<h1>{words(title)}</h1>", *(f"<p>{words(line)}</p>" for line in said.splitlines())]
    for name, (head, *rows) in tables.items():
        lines = [
            "".join(f"<td>{words(c if isinstance(c, str) else figure(c))}</td>" for c in row)
            for row in rows
        ]
        heads = "".join(f"<th>{words(str(cell))}</th>" for cell in head)
        body += [
            f"<h2>{words(name.capitalize())}</h2>",
            f"<table><thead><tr>{heads}</tr></thead><tbody>",
            *(f"<tr>{line}</tr>" for line in lines),
            "</tbody></table>",
        ]
    return html_document(title, body, data={}, scripts=[], style=STYLE) + "\n"


STYLE = """body { font-family: sans-serif; margin: 2em; }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid #ccc; padding: 0.2em 1em 0.2em 0; text-align: left; }
"""
