"""Files that a user names: opened, or a sentence on why not."""

from __future__ import annotations

import io
import stat
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
    check_whole(path)
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


_STREAMS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""What the shell has opened already: standard input, and ``<(command)``."""


def check_whole(path: str | Path) -> None:
    """Refuse pipes and devices that have a name: to read one may wait, or go on, for ever."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return  # whoever opens it says why it cannot
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or str(path).startswith(_STREAMS)):
        raise InvalidInputError(
            f"{path}: is a pipe or a device, not a file; save what comes out of it to a file first,"
            " or hand it over as standard input"
        )


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
