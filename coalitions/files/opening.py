"""Files that a user names: opened, or a sentence on why not."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from coalitions.errors import InvalidInputError

SPREADSHEETS = ("xls", "xlsb", "xlsm", "ods", "numbers")
"""Files of spreadsheet programs that are not read; the program can save them as another."""


@contextmanager
def opened(path: str | Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Give what to call a file in messages, and the file, which can be sought.

    The path ``-`` is standard input.
    """
    if str(path) == "-":
        yield "standard input", io.BytesIO(sys.stdin.buffer.read())
        return
    where = str(path)
    try:
        with Path(path).open("rb") as file:
            # What comes through a pipe cannot be sought.
            yield where, file if file.seekable() else io.BytesIO(file.read())
    except FileNotFoundError:
        raise InvalidInputError(f"{where}: there is no such file") from None
    except OSError as error:
        raise InvalidInputError(f"{where}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        if isinstance(error, InvalidInputError) or "\0" not in where:
            raise
        raise InvalidInputError(f"{where!r}: is no name of a file") from None


@contextmanager
def open_input(
    path: str | Path, format: str | None, known: Iterable[str]
) -> Iterator[tuple[str, IO[bytes], str]]:
    """Give what to call the file in messages, the file, which can be sought, and its format."""
    kind = (format or Path(path).suffix).lower().lstrip(".")
    if str(path) == "-" and not kind:
        raise InvalidInputError(
            f"standard input needs a format; give one of {', '.join(known)} with --format"
        )
    with opened(path) as (where, stream):
        if kind not in known:
            ending = f"the format {kind!r} is unknown" if kind else "the file's name has no ending"
            other = "; save the sheet as .xlsx or .csv" if kind in SPREADSHEETS else ""
            raise InvalidInputError(
                f"{where}: {ending}; a graph is one of {', '.join('.' + name for name in known)}"
                f"{other}"
            )
        yield where, stream, kind
