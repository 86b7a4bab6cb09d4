"""Files that a user names: opened, or a sentence on why not."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from coalitions.errors import InvalidInputError


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
