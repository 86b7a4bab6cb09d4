"""Text as people have it: UTF-8, or UTF-16 as spreadsheets export it; and the JSON in it."""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from coalitions.characters import unshown
from coalitions.errors import InvalidInputError

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
        lines.detach()  # whoever opened the stream closes it


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
