"""Files that users name: opened, decoded, parsed as JSON, or one sentence on why not."""

from __future__ import annotations

import codecs
import io
import json
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from coalitions.errors import InvalidInputError
from coalitions.formatting import unshown

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
        return  # the call that opens it says why it cannot
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


# ----------------------------------------------------------------------------------------
# Text: UTF-8, or UTF-16 as spreadsheets export it; and the JSON in it

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is the beginning of this one
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""How a text that is not UTF-8 begins."""


def _encoding(start: bytes) -> str:
    return next((name for mark, name in _MARKS.items() if start.startswith(mark)), "utf-8-sig")


def encodings(stream: IO[bytes], where: str) -> Iterator[tuple[str, str]]:
    """Give the encodings to try on a table, and what to say if it is the one.

    A spreadsheet saves "Unicode text" as UTF-16, and plain text in what Windows had before UTF-8.
    """
    start = stream.read(1 << 12)
    stream.seek(0)
    if start.startswith(b"PK\x03\x04"):
        raise InvalidInputError(f"{where}: is an archive, perhaps a spreadsheet; name it .xlsx")
    if start.startswith(b"\xd0\xcf\x11\xe0"):
        raise InvalidInputError(f"{where}: is a spreadsheet of old; save it as .xlsx or .csv")
    marked = _encoding(start[:4])
    if marked != "utf-8-sig":
        yield marked, marked.upper()
        return
    nul = [start[parity::2].count(0) for parity in (0, 1)]
    if start and max(nul) > len(start) / 4:
        yield ("utf-16-be" if nul[0] > nul[1] else "utf-16-le"), "UTF-16"
        return
    yield marked, ""
    yield "cp1252", "Windows text (cp1252, not UTF-8: look at the names)"


@contextmanager
def _decoding(where: str) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        byte = f"byte {error.object[error.start]:#04x}" if error.object else error.reason
        raise InvalidInputError(f"{where}: is not UTF-8 text ({byte}); save it as UTF-8") from None
    except UnicodeError as error:  # UTF-16 whose mark comes without the rest
        raise InvalidInputError(f"{where}: is not text ({error}); save it as UTF-8") from None


def decoded(content: bytes, where: str) -> str:
    """Return the text that the bytes of a file are."""
    with _decoding(where):
        return content.decode(_encoding(content[:4]))


@contextmanager
def text_lines(stream: IO[bytes], where: str) -> Iterator[io.TextIOWrapper]:
    """Give the lines of a file one by one, whichever of the three line ends it has."""
    encoding = _encoding(stream.read(4))
    stream.seek(0)
    lines = io.TextIOWrapper(stream, encoding, newline="")
    try:
        with _decoding(where):
            yield lines
    finally:
        lines.detach()  # the caller opened the stream and closes it


def load_json(content: bytes, where: str) -> Any:  # noqa: ANN401 (whatever the document holds)
    """Parse a JSON document, or say where it is broken."""
    try:
        return json.loads(decoded(content, where))
    except json.JSONDecodeError as error:
        raise InvalidInputError(
            f"{where}: line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})"
        ) from None
    except RecursionError:
        raise InvalidInputError(f"{where}: is nested too deeply to be read as JSON") from None
    except InvalidInputError:
        raise
    except ValueError:  # the one limit of Python's numbers
        raise InvalidInputError(
            f"{where}: has a whole number of more than 4300 digits; no number here needs them"
        ) from None


def json_text(document: Any, *, indent: int | None = 2) -> str:  # noqa: ANN401 (any JSON value)
    r"""Return a document as JSON that no terminal obeys; with `indent` None, on one short line.

    Characters that would act can only stand in strings, where ``\u`` and four digits mean the same.
    Numbers that JSON cannot hold are a defect, not a document.

    Examples
    --------
    >>> json_text({"änn": "\x1b[2J"}, indent=None)
    '{"änn":"\\u001b[2J"}'
    """
    marks = (",", ":") if indent is None else None
    text = json.dumps(
        document, ensure_ascii=False, allow_nan=False, indent=indent, separators=marks
    )
    return "\n".join(
        unshown().sub(lambda found: f"\\u{ord(found[0]):04x}", line) for line in text.split("\n")
    )
