"""Small files that would become large or slow; each is written in a moment.

As a program, it types command lines in one process, and prints what became of each as JSON: exit
code, what stderr had, seconds of CPU time, and the most memory of the process so far.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

# -- Parquet ---------------------------------------------------------------------------------------


def _parquet(path: Path, columns: dict[str, object], **how: object) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path, **how)


def _long_texts(path: Path) -> None:
    """One text of 10 MB in a dictionary, and 300 rows that name it."""
    import pyarrow

    texts = pyarrow.DictionaryArray.from_arrays(np.zeros(300, np.int32), ["x" * 10_000_000])
    _parquet(path, {"a": texts, "b": np.arange(300) % 2}, compression="zstd")


def _many_texts(path: Path) -> None:
    """A text as long as one may be, in each of 200 000 rows."""
    import pyarrow

    texts = pyarrow.DictionaryArray.from_arrays(np.zeros(200_000, np.int32), ["x" * 32_000])
    _parquet(path, {"a": texts, "b": np.arange(200_000) % 2}, compression="zstd")


def _rows(n: int) -> Callable[[Path], None]:
    return lambda path: _parquet(
        path, {"a": np.zeros(n, np.int8), "b": np.zeros(n)}, compression="zstd"
    )


def _row_groups(path: Path) -> None:
    """Many row groups, each with a page of zeros of its own."""
    _parquet(
        path,
        {"a": np.zeros(30_000_000)},
        compression="zstd",
        use_dictionary=False,
        row_group_size=1_000_000,
    )


def _wide_parquet(path: Path) -> None:
    _parquet(path, {f"c{k}": np.zeros(20_000, np.int8) for k in range(500)}, compression="zstd")


# -- spreadsheets ----------------------------------------------------------------------------------

_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_SCHEMA = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def spreadsheet(path: Path, rows: str, strings: str = "") -> None:
    """Write a spreadsheet of one sheet, whose XML is given."""
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
        'relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPE}.worksheet+xml"/>'
        f'<Override PartName="/xl/sharedStrings.xml" ContentType="{_TYPE}.sharedStrings+xml"/>'
        "</Types>",
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1"'
        f' Type="{_SCHEMA}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="{_SCHEMA}"><sheets>'
        '<sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="r1" Type="{_SCHEMA}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="r2" Type="{_SCHEMA}/sharedStrings" Target="sharedStrings.xml"/>'
        "</Relationships>",
        "xl/sharedStrings.xml": f"<sst {_MAIN}>{strings}</sst>",
        "xl/worksheets/sheet1.xml": f"<worksheet {_MAIN}><sheetData>{rows}</sheetData></worksheet>",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def _far_column(n_rows: int) -> Callable[[Path], None]:
    cells = "".join(
        f'<row r="{k}"><c r="A{k}"><v>{k}</v></c><c r="XFD{k}"><v>1</v></c></row>'
        for k in range(1, n_rows + 1)
    )
    return lambda path: spreadsheet(path, cells)


def _wide_header(path: Path) -> None:
    """A header of 16 384 names, and rows that have one cell."""
    header = "".join(f'<c t="str"><v>c{k}</v></c>' for k in range(16_384))
    spreadsheet(path, f"<row>{header}</row>" + "<row><c><v>1</v></c></row>" * 50_000)


def _long_cells(path: Path) -> None:
    """One text of 20 MB that 3000 cells share."""
    cell = '<row><c t="s"><v>0</v></c><c t="s"><v>0</v></c></row>'
    spreadsheet(path, cell * 3000, f"<si><t>{'x' * 20_000_000}</t></si>")


def _many_strings(path: Path) -> None:
    spreadsheet(path, "<row><c><v>1</v></c></row>" * 3, "<si><t>a</t></si>" * 7_000_000)


# -- folders of clients ----------------------------------------------------------------------------


def _clients(x: np.ndarray, y: np.ndarray) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        for client in ("north", "south"):
            (path / client).mkdir(parents=True)
            for part in ("train", "test"):
                np.savez_compressed(path / client / f"{part}.npz", x=x, y=y)

    return write


_HALF = np.arange(40) % 2
_REAL = np.linspace(0, 1, 80, dtype=np.float32).reshape(40, 2)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _odd_shape(path: Path) -> None:
    """An archive whose array has a truth value for a length."""
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (True,), }"
    with zipfile.ZipFile(path, "w") as archive:
        header = b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text
        archive.writestr("a.npy", header + bytes(8))


def _huge_numbers(path: Path) -> None:
    rows = "".join(f"{k},{k % 2},{(-1) ** k * (k + 0.5)}e305\n" for k in range(100))
    path.write_text(f"c,a,b\n{rows}")


BOMBS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "long texts": ("long.parquet", _long_texts),
    "many long texts": ("many.parquet", _many_texts),
    "4 million rows": ("rows.parquet", _rows(4_000_000)),
    "60 million rows": ("endless.parquet", _rows(60_000_000)),
    "row groups": ("groups.parquet", _row_groups),
    "wide Parquet": ("wide.parquet", _wide_parquet),
    "100 rows to XFD": ("far.xlsx", _far_column(100)),
    "3000 rows to XFD": ("farther.xlsx", _far_column(3000)),
    "a wide header": ("header.xlsx", _wide_header),
    "long cells": ("cells.xlsx", _long_cells),
    "many strings": ("strings.xlsx", _many_strings),
    "an odd shape": ("odd.npz", _odd_shape),
    "huge numbers": ("huge.csv", _huge_numbers),
    "a pipe with the name of a table": ("pipe.csv", _pipe),
    "a pipe with the name of a spreadsheet": ("pipe.xlsx", _pipe),
    "a pipe with the name of an array": ("pipe.npy", _pipe),
    "class 10^8": ("classes", _clients(_REAL, _HALF * 10**8)),
    "class 2^40": ("more classes", _clients(_REAL, _HALF * 2**40)),
    "class 20 000": ("some classes", _clients(_REAL, _HALF * 20_000)),
    "a code 2^40": ("code", _clients(_HALF[:, None] * 2**40, _HALF)),
    "all codes 2^40": ("codes", _clients(np.full((40, 3), 2**40), _HALF)),
    "many columns of codes": ("columns", _clients(np.full((40, 1000), 200_000), _HALF)),
    "a token 2^40": ("tokens", _clients(_HALF[:, None] * np.ones(4, int), np.full((40, 4), 2**40))),
}  # fmt: skip
"""What each is called, the name of its file or folder, and what writes it."""


def typed(line: list[str]) -> dict[str, object]:
    """Type a command line; return what became of it."""
    from cli.app import main

    before, said, code = time.process_time(), io.StringIO(), None
    sys.argv = ["coalitions", *line]
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as end:
            code = end.code
    return {
        "line": line,
        "code": code,
        "said": said.getvalue(),
        "seconds": time.process_time() - before,
        "MiB": most_memory() >> 20,
    }


def most_memory() -> int:
    """Return the most bytes that this program had; `getrusage` would count those of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) << 10


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))  # the machine has others
    for line in json.loads(sys.argv[1]):
        print(json.dumps(typed(line)), flush=True)  # noqa: T201
