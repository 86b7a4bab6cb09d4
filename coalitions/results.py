"""What every public result offers: a data frame, plain values, JSON, a table as text or HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsFloat

from coalitions.extras import needed
from coalitions.formatting import figure, listed, visible, visible_lines

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_ROWS = 50
"""What is printed of many rows; `to_frame` and `to_dict` have all of them."""

Row = dict[str, Any]
"""A line of a table: texts, numbers, lists of names, truths or nothing, by their headings."""


class PublicResult:
    """What a public function returns.

    A subclass says `to_dict` and `_rows`, and what stands below the printed table in `_below`.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, players by name: what JSON has."""
        raise NotImplementedError

    def to_json(self) -> str:
        """Return the same as a JSON document, which the command line prints with ``--json``."""
        from coalitions.files.opening import json_text

        return json_text(self.to_dict())

    def to_frame(self) -> DataFrame:
        """Return the result as a pandas DataFrame, in long form.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        needed("pandas")
        import pandas as pd

        return pd.DataFrame(self._rows())

    def _rows(self) -> list[Row]:
        """Return the lines of the table."""
        raise NotImplementedError

    def _below(self) -> str:
        """Return what stands below the printed table."""
        return ""

    def _shown(self) -> SmallTable:
        """Return the table as it is printed."""
        rows = self._rows()
        return SmallTable.of(rows[:MOST_ROWS], self._below(), left_out=len(rows) - MOST_ROWS)

    def __str__(self) -> str:
        """Return the table as text, as the command line prints it."""
        return self._shown().text

    def _repr_html_(self) -> str:
        """Return the table as notebooks show it."""
        return self._shown().html


@dataclass(frozen=True)
class SmallTable:
    """A small table of texts, and a line below it."""

    heads: list[str]
    rows: list[list[str]]
    below: str = ""
    n_left: int = 1
    """So many columns are texts, the others are numbers."""

    @classmethod
    def of(cls, rows: Sequence[Row], below: str = "", left_out: int = 0) -> SmallTable:
        """Return the table of rows of values, the first column on the left.

        Examples
        --------
        >>> print(SmallTable.of([{"player": "ann", "value": 2.0}], "exact").text)
        player  value
        ann         2
        <BLANKLINE>
        exact
        """
        heads = list(dict.fromkeys(name for row in rows for name in row))
        lines = [[cell_text(row.get(name)) for name in heads] for row in rows]
        if left_out > 0:
            lines.append(["…", f"({left_out} more)"])
        return cls(heads, lines, below)

    @property
    def html(self) -> str:
        """The table as notebooks show it; what looks like mark-up is shown as it is written."""
        from coalitions.drawing.document import words

        head = "".join(f"<th>{words(name)}</th>" for name in self.heads)
        body = "".join(
            f"<tr>{''.join(f'<td>{words(cell)}</td>' for cell in row)}</tr>" for row in self.rows
        )
        lines = self.below.split("\n") if self.below else []
        below = "".join(f"<p>{words(line)}</p>" for line in lines)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"

    @property
    def text(self) -> str:
        """The table as `print` shows it."""
        lines = [[visible(cell) for cell in row] for row in (self.heads, *self.rows)]
        lines = [line + [""] * (len(self.heads) - len(line)) for line in lines]
        widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
        written = []
        for line in lines if self.heads else ():
            cells = []
            for number, (cell, width) in enumerate(zip(line, widths, strict=True)):
                gap = " " * (width - _width(cell))
                cells.append(cell + gap if number < self.n_left else gap + cell)
            written.append("  ".join(cells).rstrip())
        return "\n".join([*written, *(["", visible_lines(self.below)] if self.below else [])])


def cell_text(cell: object) -> str:
    """Return what a printed table has in a cell.

    Examples
    --------
    >>> [cell_text(cell) for cell in ("ann", 2 / 3, True, None, ("ann", "bob"))]
    ['ann', '0.666667', 'yes', '', 'ann, bob']
    """
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, list | tuple):
        return listed(map(cell_text, cell))
    return figure(float(cell), 6) if isinstance(cell, SupportsFloat) else str(cell)


def finite(number: float) -> float | None:
    """Return a number as JSON takes it: None instead of one that is not finite."""
    return number if abs(number) < float("inf") else None


def _width(text: str) -> int:
    """Return how many places a text takes in a terminal."""
    if text.isascii():
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))
