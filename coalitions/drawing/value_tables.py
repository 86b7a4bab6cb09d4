"""Values as a pandas table, as the small table that notebooks and `print` show, and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coalitions.drawing.document import words
from coalitions.extras import needed
from coalitions.files.opening import json_text
from coalitions.formatting import figure, visible
from coalitions.values.estimate import Estimate, rows_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from coalitions.values.estimate import Interactions

MOST_ROWS = 50
"""What is shown of many values; `Estimate.named` has all of them."""


def estimate_frame(estimate: Estimate) -> DataFrame:
    """Return a row for each player, or each pair; see `Estimate.to_frame`."""
    needed("pandas")
    import pandas as pd

    names = [name for name, _, _ in rows_of(estimate)]
    columns: dict[str, Any] = {"player": names}
    if estimate.values.ndim == 2:
        columns = {"player": [a for a, _ in names], "other": [b for _, b in names]}
    low, high = estimate.interval()
    for name, numbers in (
        ("value", estimate.values), ("stderr", estimate.stderr), ("low", low), ("high", high),
    ):  # fmt: skip
        columns[name] = listed(numbers)
    return pd.DataFrame(columns)


def listed(numbers: np.ndarray[Any, np.dtype[np.float64]]) -> list[float]:
    """Return the numbers of the players, or of the pairs, in the order of `rows_of`."""
    if numbers.ndim == 2:
        numbers = numbers[np.triu_indices(len(numbers), 1)]
    return [float(number) for number in numbers]


def estimate_document(estimate: Estimate) -> dict[str, Any]:
    """Return what is written down of an estimate, as JSON has it."""
    if estimate.values.ndim == 2:
        shared: dict[str, Any] = {
            "pairs": [
                {"players": list(names), "value": value, "stderr": error}
                for names, value, error in rows_of(estimate)
            ]
        }
    else:
        shared = {
            "values": {name: value for name, value, _ in rows_of(estimate)},
            "stderr": {name: error for name, _, error in rows_of(estimate)},
        }
    return shared | {
        "evaluations": estimate.evaluations,
        "method": estimate.method,
        "reason": estimate.reason,
        "base": estimate.base,
        "stopped": estimate.stopped,
    }


def estimate_json(estimate: Estimate) -> str:
    """Return the document as text."""
    return json_text(estimate_document(estimate))


@dataclass(frozen=True)
class SmallTable:
    """A small table of texts, and a line below it."""

    heads: list[str]
    rows: list[list[str]]
    below: str
    n_left: int = 1
    """So many columns are texts, the others are numbers."""

    @property
    def html(self) -> str:
        """The table as notebooks show it; what looks like mark-up is shown as it is written."""
        head = "".join(f"<th>{words(name)}</th>" for name in self.heads)
        body = "".join(
            f"<tr>{''.join(f'<td>{words(cell)}</td>' for cell in row)}</tr>" for row in self.rows
        )
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{words(self.below)}</p>"
        )

    @property
    def text(self) -> str:
        """The table as `print` shows it."""
        lines = [[visible(cell) for cell in row] for row in (self.heads, *self.rows)]
        lines = [line + [""] * (len(self.heads) - len(line)) for line in lines]
        widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
        written = []
        for line in lines:
            cells = []
            for number, (cell, width) in enumerate(zip(line, widths, strict=True)):
                gap = " " * (width - _width(cell))
                cells.append(cell + gap if number < self.n_left else gap + cell)
            written.append("  ".join(cells).rstrip())
        return "\n".join([*written, "", visible(self.below)])


def _width(text: str) -> int:
    """Return how many places a text takes in a terminal."""
    if text.isascii():
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def estimate_shown(estimate: Estimate) -> SmallTable:
    """Return a table of the largest values, and below it where they come from."""
    low, high = map(listed, estimate.interval())
    rows = list(rows_of(estimate))
    order = sorted(range(len(rows)), key=lambda row: (-abs(rows[row][1]), row))
    exact = not estimate.stderr.any()
    heads = ["player" if estimate.values.ndim == 1 else "pair", "value"]
    heads += [] if exact else ["± standard error", "95 % interval"]
    cells = []
    for row in order[:MOST_ROWS]:
        name, value, error = rows[row]
        spoken = name if isinstance(name, str) else " and ".join(name)
        cells.append([spoken, figure(value, 6)])
        if not exact:
            cells[-1] += [figure(error, 2), f"{figure(low[row], 4)} … {figure(high[row], 4)}"]
    if len(rows) > MOST_ROWS:
        cells.append(["…", f"({len(rows) - MOST_ROWS} more)"])
    stopped = f"; stopped: {estimate.stopped}" if estimate.stopped else ""
    return SmallTable(
        heads, cells, f"{estimate.method}, {estimate.evaluations} evaluations{stopped}"
    )


def interactions_shown(found: Interactions) -> SmallTable:
    """Return a table of the strongest interactions, and below it where they come from."""
    order = np.argsort(-np.abs(found.values), kind="stable")
    names = list(found.named)
    rows = [
        [
            " × ".join(names[row]) or "nobody",
            figure(found.values[row], 6),
            *([figure(found.stderr[row], 2)] if found.stderr.any() else []),
        ]
        for row in order[:MOST_ROWS]
    ]
    if len(names) > MOST_ROWS:
        rows.append(["…", f"({len(names) - MOST_ROWS} more)"])
    heads = ["players", found.index, *(["± standard error"] if found.stderr.any() else [])]
    stopped = f"; stopped: {found.stopped}" if found.stopped else ""
    return SmallTable(heads, rows, f"{found.method}, {found.evaluations} evaluations{stopped}")
