"""What the papers print, as data: a file for each table, with its source."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import resources

from learners.experiments.paired_statistics import welch_p_value


@dataclass(frozen=True)
class Printed:
    """A figure of a paper: a mean and, where there is one, what stands behind the ±."""

    mean: float
    spread: float | None = None

    def __str__(self) -> str:
        return f"{self.mean:g}" if self.spread is None else f"{self.mean:g} ± {self.spread:g}"


@dataclass(frozen=True)
class PaperTable:
    """A table as a paper prints it.

    Attributes
    ----------
    paper
        Which paper.
    where
        The table, and how its columns are called there.
    unit
        What the numbers are.
    columns
        Names of the columns.
    rows
        Figures by row and column; what the paper leaves out is not there.
    notes
        What is odd about the source.
    runs
        How many runs stand behind each mean, if the paper says.
    """

    paper: str
    where: str
    unit: str
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, Printed]]
    notes: tuple[str, ...] = ()
    runs: int | None = None

    def get(self, row: str, column: str) -> Printed | None:
        """Return a figure, None if the paper has none there."""
        return self.rows.get(row, {}).get(column)

    def gap(self, row: str, other: str, column: str) -> float | None:
        """Return by how much one row is above another in a column, None if one is not there."""
        one, two = self.get(row, column), self.get(other, column)
        return None if one is None or two is None else one.mean - two.mean

    def runner_up(self, row: str, column: str, among: Collection[str] | None = None) -> str | None:
        """Return the best other row in a column, of all or of some; None if there is none."""
        rivals = self.rows if among is None else among
        gaps = {
            other: gap
            for other in rivals
            if other != row and (gap := self.gap(row, other, column)) is not None
        }
        return min(gaps, key=gaps.__getitem__, default=None)

    def lead(self, row: str, column: str, among: Collection[str] | None = None) -> float | None:
        """Return by how much a row is above the best other in a column, of all or of some."""
        other = self.runner_up(row, column, among)
        return None if other is None else self.gap(row, other, column)

    def p_value(self, row: str, other: str, column: str) -> float | None:
        """Return Welch's two-sided p of the paper's own difference, if it can be computed.

        What stands behind the ± is read as the standard deviation of a sample of `runs`.
        """
        one, two = self.get(row, column), self.get(other, column)
        if self.runs is None or one is None or two is None:
            return None
        if one.spread is None or two.spread is None:
            return None
        return welch_p_value(one.mean, one.spread, self.runs, two.mean, two.spread, self.runs)


def paper_table(name: str) -> PaperTable:
    """Return the table in ``papers/NAME.json``.

    Examples
    --------
    >>> str(paper_table("pfedsv-table1").rows["pFedSV"]["MNIST, 10 clients"])
    '98.01 ± 0.83'
    """
    file = resources.files("learners.reproduction").joinpath("papers", f"{name}.json")
    document = json.loads(file.read_text("utf-8"))
    columns = tuple(document["columns"])
    rows = {
        row: {
            column: Printed(*figures)
            for column, figures in zip(columns, given, strict=True)
            if figures is not None
        }
        for row, given in document["rows"].items()
    }
    return PaperTable(
        document["paper"],
        document["where"],
        document.get("unit", "%"),
        columns,
        rows,
        tuple(document.get("notes", ())),
        document.get("runs"),
    )
