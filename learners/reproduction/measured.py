"""What came out here: figures by row, column and seed."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from learners.comparisons.paired import CONFIDENCE, Difference, seed_difference


@dataclass(frozen=True)
class Measured:
    """A table with a figure for every seed.

    Attributes
    ----------
    columns
        Names of the columns.
    rows
        Figures by row and column, one for each seed in the same order; what was not measured is
        not there.
    unit
        What the numbers are.
    confidence
        Of the intervals: more than usual where seeds were added, see
        `learners.reproduction.experiment.SECOND_LOOK`.
    """

    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, Sequence[float]]]
    unit: str = "%"
    confidence: float = CONFIDENCE

    def get(self, row: str, column: str) -> Sequence[float] | None:
        """Return a row's figures in a column, None if they were not measured."""
        return self.rows.get(row, {}).get(column)

    def mean(self, row: str, column: str) -> float | None:
        """Return the mean over seeds."""
        found = self.get(row, column)
        return None if found is None else statistics.fmean(found)

    def gap(self, row: str, other: str, column: str) -> Difference | None:
        """Return by how much one row is above another, seed by seed."""
        one, two = self.get(row, column), self.get(other, column)
        if one is None or two is None:
            return None
        return seed_difference(one, two, self.confidence)


def order_agreement(printed: Mapping[str, float], found: Mapping[str, float]) -> float | None:
    """Return Spearman's correlation of two orders of the same rows.

    None for fewer than three, or where all are equal: there is no order then.

    Examples
    --------
    >>> order_agreement({"a": 3.0, "b": 2.0, "c": 1.0}, {"a": 0.9, "b": 0.5, "c": 0.4})
    1.0
    """
    shared = [name for name in printed if name in found]
    theirs, ours = [printed[name] for name in shared], [found[name] for name in shared]
    if len(shared) < 3 or len(set(theirs)) == 1 or len(set(ours)) == 1:
        return None
    from scipy.stats import spearmanr

    return round(float(spearmanr(theirs, ours).statistic), 12)
