"""Numbers as people write them: decimal commas, thousands, percent, blanks."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable

Cell = str | float
"""What a table's cell holds: text, or a number that needs no reading."""

_BLANK = {"", "na", "n/a", "#n/a", "#nv", "nan", "null", "none", "-", "–", "—", "?"}
_MINUS = str.maketrans({"−": "-", "–": "-"})
_GROUPING = "'’ \u00a0\u2009\u202f"
"""What Swiss and others put between thousands."""


def is_blank(cell: Cell) -> bool:
    """Tell whether a cell says nothing, in one of the ways programs have to say it.

    Examples
    --------
    >>> is_blank(" "), is_blank("NA"), is_blank("0")
    (True, True, False)
    """
    if isinstance(cell, float):
        return math.isnan(cell)
    return cell.strip().casefold() in _BLANK


def is_empty(cell: Cell) -> bool:
    """Tell whether there is nothing in a cell: a name may be Na, an unknown number NA."""
    return math.isnan(cell) if isinstance(cell, float) else not cell.strip()


@functools.cache
def _written(mark: str) -> re.Pattern[str]:
    """Return the pattern of a number with that decimal mark, thousands set apart or not."""
    other = re.escape("," if mark == "." else ".")
    grouped = rf"\d{{1,3}}(?:[{other}{_GROUPING}]\d{{3}})+"
    return re.compile(rf"[+-]?(?:{grouped}|\d+)?(?:{re.escape(mark)}\d*)?(?:e[+-]?\d+)?", re.I)


def number(cell: Cell, mark: str = ".") -> float | None:
    """Return the number in a cell, NaN if it is blank, None if it holds something else.

    Examples
    --------
    >>> number("31,7", ","), number("1.234,5", ","), number("12 %"), number("31,7")
    (31.7, 1234.5, 0.12, None)
    """
    if isinstance(cell, float):
        return cell
    text = cell.strip()
    if mark == ".":
        try:
            plain = float(text)
        except ValueError:
            pass
        else:
            return plain if "_" not in text else None
    if is_blank(text):
        return math.nan
    text = text.translate(_MINUS)
    shift = ""
    if text.endswith("%"):
        text, shift = text[:-1].strip(), "e-2"  # by the exponent: 12.3 % is 0.123 to the last bit
    if not _written(mark).fullmatch(text) or not any(map(str.isdigit, text)):
        return None
    for sign in (*_GROUPING, "," if mark == "." else "."):
        text = text.replace(sign, "")
    text = text.replace(mark, ".")
    if shift and "e" in text.lower():
        return None
    try:
        return float(text + shift)
    except ValueError:  # digits of other scripts, of which float knows most
        return None


def decimal_mark(cell: Cell) -> str | None:
    """Return the decimal mark that a cell proves, None if it has none or may be read both ways.

    Examples
    --------
    >>> decimal_mark("3,5"), decimal_mark("0.125"), decimal_mark("1.234,5"), decimal_mark("1,234")
    (',', '.', ',', None)
    """
    if isinstance(cell, float) or ("," not in cell and "." not in cell):
        return None
    text = cell.strip().rstrip("%").strip().translate(_MINUS).lstrip("+-")
    for mark, other in ((",", "."), (".", ",")):
        if re.fullmatch(rf"\d{{1,3}}(?:\{other}\d{{3}}){{2,}}", text):  # 1.234.567
            return mark
        if re.fullmatch(rf"\d{{1,3}}(?:\{other}\d{{3}})+\{mark}\d*", text):  # 1.234,5
            return mark
        found = re.fullmatch(rf"(\d*)\{mark}(\d*)(e[+-]?\d+)?", text, re.I)
        if found and (found[1] or found[2]) and not ambiguous(text):
            return mark
    return None


def ambiguous(cell: Cell) -> bool:
    """Tell whether a cell may be a number of thousands or one with three decimals.

    Examples
    --------
    >>> ambiguous("1,234"), ambiguous("0,234"), ambiguous("1,23")
    (True, False, False)
    """
    return isinstance(cell, str) and bool(
        re.fullmatch(r"[+-]?[1-9]\d{0,2}[.,]\d{3}\s*%?", cell.strip().translate(_MINUS))
    )


def has_percent(cells: Iterable[Cell]) -> bool:
    """Tell whether a cell is a percentage."""
    return any(isinstance(cell, str) and cell.rstrip().endswith("%") for cell in cells)
