"""Claims of the papers, and whether they hold here: by paired intervals over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from learners.comparisons.paired import Difference, paired_difference
from learners.reproduction.measured import Measured
from learners.reproduction.printed import PaperTable

Verdict = Literal["holds", "does not hold", "cannot be told"]


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper as a difference that must be above zero.

    Attributes
    ----------
    text
        The claim, in words.
    paper
        The difference that the paper prints, if it does.
    ours
        The difference here with its interval over seeds; None if it was not measured.
    """

    text: str
    paper: float | None
    ours: Difference | None

    @property
    def verdict(self) -> Verdict:
        """Whether the interval lies above zero, below it, or across."""
        if self.ours is None or self.ours.low is None or self.ours.high is None:
            return "cannot be told"
        if self.ours.low > 0:
            return "holds"
        return "does not hold" if self.ours.high <= 0 else "cannot be told"

    def document(self) -> dict[str, Any]:
        """Return the claim as plain values."""
        ours = self.ours
        known = ours is not None and ours.low is not None
        return {
            "claim": self.text,
            "paper": self.paper,
            "ours": None if ours is None else ours.mean,
            "interval": [ours.low, ours.high] if ours is not None and known else None,
            "verdict": self.verdict,
        }


def exact(text: str, amount: float, paper: float | None = None) -> Claim:
    """Return a claim about something counted, which has no spread: true if it is above zero."""
    return Claim(text, paper, Difference(amount, amount, amount))


def beyond(text: str, figures: Sequence[float], level: float) -> Claim:
    """Return a claim that a figure measured with every seed is above a level."""
    return Claim(text, None, paired_difference(figures, [level] * len(figures)))


def near(text: str, figures: Sequence[float], level: float, *, within: float) -> Claim:
    """Return a claim that a figure is near a level: that its whole interval is.

    Examples
    --------
    >>> near("about 96", [95.75, 96.25, 96.0], 96.0, within=1.0).verdict
    'holds'
    >>> near("about 96", [92.0, 98.0, 96.0], 96.0, within=1.0).verdict
    'cannot be told'
    """
    gap = paired_difference(figures, [level] * len(figures))
    room = within - abs(gap.mean)
    if gap.low is None or gap.high is None:
        return Claim(text, None, Difference(room, None, None))
    nearest = max(gap.low, -gap.high, 0.0)
    return Claim(text, None, Difference(room, within - max(-gap.low, gap.high), within - nearest))


def above(
    found: Measured, row: str, other: str, column: str, printed: PaperTable | None = None
) -> Claim:
    """Return the claim that one row is above another in a column."""
    return Claim(
        f"{row} is above {other} ({column})",
        None if printed is None else printed.gap(row, other, column),
        found.gap(row, other, column),
    )


def best(
    found: Measured,
    row: str,
    column: str,
    printed: PaperTable | None = None,
    *,
    among: tuple[str, ...] | None = None,
) -> Claim:
    """Return the claim that a row is above all others in a column: compared with the best of them.

    Parameters
    ----------
    found, row, column
        What is compared, and where.
    printed
        The paper's own figures.
    among
        The rivals, if not all rows.
    """
    rival = found.best_other(row, column, among)
    whom = "all others" if among is None else ", ".join(each for each in among if each != row)
    return Claim(
        f"{row} is above {whom} ({column})" + (f"; best of them here: {rival}" if rival else ""),
        None if printed is None else printed.lead(row, column, among),
        None if rival is None else found.gap(row, rival, column),
    )
