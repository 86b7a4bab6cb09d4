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
    added
        Whether no paper says so: it is asked beside, and not counted among what papers claim.
    """

    text: str
    paper: float | None
    ours: Difference | None
    added: bool = False

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
            "added": self.added,
        }


def exact(text: str, amount: float, *, added: bool = False) -> Claim:
    """Return a claim about something counted, which has no spread: true if it is above zero."""
    return Claim(text, None, Difference(amount, amount, amount), added)


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
    found: Measured,
    row: str,
    other: str,
    column: str,
    printed: PaperTable | None = None,
    *,
    added: bool = False,
) -> Claim:
    """Return the claim that one row is above another in a column."""
    return Claim(
        f"{row} is above {other} ({column})",
        None if printed is None else printed.gap(row, other, column),
        found.gap(row, other, column),
        added,
    )


def best(
    found: Measured,
    row: str,
    column: str,
    printed: PaperTable | None = None,
    *,
    among: tuple[str, ...] | None = None,
    added: bool = False,
) -> Claim:
    """Return the claim that a row is above all others in a column.

    It holds if the row is above each of them beyond doubt, and does not if one of them is level or
    above beyond doubt. The difference is that to the one who decides.

    Parameters
    ----------
    found, row, column
        What is compared, and where.
    printed
        The paper's own figures.
    among
        The rivals, if not all rows.
    added
        See `Claim`.
    """
    rivals = [each for each in (found.rows if among is None else among) if each != row]
    gaps = [(each, gap) for each in rivals if (gap := found.gap(row, each, column)) is not None]
    whom = "all others" if among is None else ", ".join(rivals)
    text = f"{row} is above {whom} ({column})"
    decides, gap = _deciding(gaps)
    return Claim(
        text if decides is None else f"{text}; decided by {decides}",
        None if printed is None else printed.lead(row, column, among),
        gap,
        added,
    )


def _deciding(gaps: Sequence[tuple[str, Difference]]) -> tuple[str, Difference] | tuple[None, None]:
    """Return the rival by whom the claim to be above all of them is decided, and the lead over it.

    It is the strongest of those who are level or above beyond doubt; if there are none, of those
    who may be; if there are none either, of all.
    """
    ahead = [(who, gap) for who, gap in gaps if gap.high is not None and gap.high <= 0]
    doubtful = [(who, gap) for who, gap in gaps if gap.low is not None and gap.low <= 0]
    return min(ahead or doubtful or gaps, key=lambda each: each[1].mean, default=(None, None))
