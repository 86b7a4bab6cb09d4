"""Measured figures by row, column and seed, and whether they support the claims of a paper."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from learners.experiments.paired_statistics import (
    CONFIDENCE,
    Difference,
    binomial_interval,
    holm,
    paired_difference,
    paired_p_value,
    seed_difference,
)
from learners.reproduction.printed import PaperTable

# ----------------------------------------------------------------------------------------
# What came out here: figures by row, column and seed.


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


# ----------------------------------------------------------------------------------------
# Claims of the papers, and whether they hold here: by intervals over seeds.

Verdict = Literal["holds", "does not hold", "level", "cannot be told"]

LEVEL = 1.0
"""A difference of at most so many points of accuracy counts as none.

A client is tested on 40 to 400 images here, of which one is 0.25 to 2.5 points of its accuracy. Of
the papers, CFFL calls 0.4 points "extremely small", and FedC²I reports leads from 0.78 points on.
"""


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
    paper_p
        The two-sided p of the difference that the paper prints, by its own ±.
    confidence
        Of the interval.
    margin
        Within how much of zero a difference counts as none; None where it is not in points of
        accuracy.
    basis
        How the interval was made and by which rival the claim is decided, if there is more to say
        than that it is Student's.
    caveat
        Why the comparison is not a fair one, if it is not.
    """

    text: str
    paper: float | None
    ours: Difference | None
    added: bool = False
    paper_p: float | None = None
    confidence: float = CONFIDENCE
    margin: float | None = None
    basis: str = ""
    caveat: str = ""

    @property
    def verdict(self) -> Verdict:
        """What the interval says, see `_judged`."""
        return self._judged[0]

    @property
    def why(self) -> str:
        """The reason of the verdict, in a few words."""
        return "; ".join(part for part in (self._judged[1], self.basis, self.caveat) if part)

    @property
    def _judged(self) -> tuple[Verdict, str]:
        """Return whether the interval lies above zero, not above it, is narrow, or tells nothing.

        It is narrow if it lies within the margin, or below the difference that the paper prints.
        """
        if self.ours is None:
            return "cannot be told", "not measured"
        if self.ours.low is None or self.ours.high is None:
            return "cannot be told", "too few seeds for an interval"
        if self.ours.low > 0:
            return "holds", "the interval is above 0"
        if self.ours.high <= 0:
            return "does not hold", "the interval is not above 0"
        if self.margin is not None and -self.margin < self.ours.low <= self.ours.high < self.margin:
            return "level", f"the interval is within ±{self.margin:g} point"
        if self.paper is not None and self.ours.high < self.paper:
            return "level", f"the interval leaves out the printed {self.paper:+.2f}"
        return "cannot be told", "0 is in the interval: too few seeds"

    def document(self) -> dict[str, Any]:
        """Return the claim as plain values, rounded to what no platform computes otherwise."""
        ours = self.ours or Difference(math.nan, None, None)
        known = ours.low is not None and ours.high is not None
        return {
            "claim": self.text,
            "paper": _rounded(self.paper),
            "paper_p": _rounded(self.paper_p),
            "ours": None if self.ours is None else _rounded(ours.mean),
            "interval": [_rounded(ours.low), _rounded(ours.high)] if known else None,
            "confidence": _rounded(self.confidence) if known else None,
            "verdict": self.verdict,
            "why": self.why,
            "caveat": self.caveat,
            "added": self.added,
        }


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 10)


def exact(text: str, amount: float, *, added: bool = False) -> Claim:
    """Return a claim about something counted, which has no spread: true if it is above zero."""
    ours = Difference(amount, amount, amount)
    return Claim(text, None, ours, added, confidence=1.0, basis="counted, without spread")


def beyond(
    text: str,
    figures: Sequence[float],
    level: float,
    *,
    added: bool = False,
    confidence: float = CONFIDENCE,
) -> Claim:
    """Return a claim that a figure measured with every seed is above a level."""
    gap = paired_difference(figures, [level] * len(figures), confidence)
    return Claim(text, None, gap, added, confidence=confidence)


def mostly(
    text: str,
    found: Sequence[bool],
    *,
    added: bool = False,
    confidence: float = CONFIDENCE,
) -> Claim:
    """Return a claim that something happens with more than half of all seeds: of each, whether.

    Examples
    --------
    >>> claim = mostly("liars are kept out", [True] * 5)
    >>> claim.text, claim.verdict
    ('liars are kept out (in 5 of 5 seeds)', 'cannot be told')
    """
    successes, n = sum(found), len(found)
    low, high = binomial_interval(successes, n, confidence)
    return Claim(
        f"{text} (in {successes} of {n} seeds)",
        None,
        Difference(successes / n - 0.5, low - 0.5, high - 0.5),
        added,
        confidence=confidence,
        basis="exact binomial interval of the share of seeds, less a half",
    )


def near(
    text: str, figures: Sequence[float], level: float, *, within: float, added: bool = False
) -> Claim:
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
        return Claim(text, None, Difference(room, None, None), added)
    nearest = max(gap.low, -gap.high, 0.0)
    ours = Difference(room, within - max(-gap.low, gap.high), within - nearest)
    return Claim(text, None, ours, added)


def above(
    found: Measured,
    row: str,
    other: str,
    column: str,
    printed: PaperTable | None = None,
    *,
    added: bool = False,
    points: bool | None = None,
) -> Claim:
    """Return the claim that one row is above another in a column.

    Parameters
    ----------
    found, row, other, column
        What is compared, and where.
    printed
        The paper's own figures.
    added
        See `Claim`.
    points
        Whether figures are points of accuracy, for which `LEVEL` is the margin; by default if
        they are in percent.
    """
    return Claim(
        f"{row} is above {other} ({column})",
        None if printed is None else printed.gap(row, other, column),
        found.gap(row, other, column),
        added,
        None if printed is None else printed.p_value(row, other, column),
        found.confidence,
        _margin(found, points),
    )


def best(
    found: Measured,
    row: str,
    column: str,
    printed: PaperTable | None = None,
    *,
    among: Sequence[str] | None = None,
    added: bool = False,
) -> Claim:
    """Return the claim that a row is above all others in a column, see `over_rivals`.

    A rival that has a claim of its own is not among them: one comparison is one claim.

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
    whom = "all others" if among is None else ", ".join(rivals)
    runner_up = None if printed is None else printed.runner_up(row, column, rivals)
    paper, paper_p = None, None
    if printed is not None and runner_up is not None:
        paper = printed.gap(row, runner_up, column)
        paper_p = printed.p_value(row, runner_up, column)
    claim = Claim(
        f"{row} is above {whom} ({column})", paper, None, added, paper_p, margin=_margin(found)
    )
    mine = found.get(row, column)
    leads: dict[str, Lead | None] = {}
    for rival in rivals:
        theirs = found.get(rival, column)
        if mine is None or theirs is None:
            leads[rival] = None
        else:
            at = functools.partial(seed_difference, mine, theirs)
            leads[rival] = at, paired_p_value(mine, theirs)
    return over_rivals(claim, leads, found.confidence)


Lead = tuple[Callable[[float], Difference], float | None]
"""A lead over a rival: its interval by confidence, and its two-sided p if it has one."""


def over_rivals(claim: Claim, leads: Mapping[str, Lead | None], confidence: float) -> Claim:
    """Return a claim to be above several rivals, with the lead over the one by whom it is decided.

    It holds if the lead over each is above zero: all of them must be, so none needs an adjustment.
    A rival who is better, or level, is found by looking for one among k. So he decides the claim
    only after Holm's adjustment over the rivals, each with the null that he is not better. The
    interval shown then has confidence 1 − α/k, with which Holm begins.

    Parameters
    ----------
    claim
        The claim without a difference.
    leads
        The lead over each rival; None of one that was not measured.
    confidence
        Of a single interval, 1 − α.
    """
    measured = {who: lead for who, lead in leads.items() if lead is not None}
    if not measured:
        return claim
    alpha, n_rivals = 1 - confidence, len(measured)
    strict = 1 - alpha / n_rivals
    single = {who: at(confidence) for who, (at, _) in measured.items()}
    adjusted = {who: at(strict) for who, (at, _) in measured.items()}
    note = f", adjusted for {n_rivals} rivals" if n_rivals > 1 else ""

    def decided(who: str, gaps: Mapping[str, Difference], level: float, note: str) -> Claim:
        basis = f"decided by {who}{note}" if len(leads) > 1 else ""
        return replace(claim, ours=gaps[who], confidence=level, basis=basis)

    # 1. Somebody is better: of those, the one who is so most surely.
    tails = {
        who: p / 2 if single[who].mean < 0 else 1 - p / 2
        for who, (_, p) in measured.items()
        if p is not None
    }
    better = dict(zip(tails, holm(list(tails.values())), strict=True))
    ahead = [who for who, p in better.items() if p <= alpha / 2]
    if ahead:
        who = min(ahead, key=lambda each: (better[each], single[each].mean))
        return decided(who, adjusted, strict, note)

    # 2. The row is above each: the smallest lead is shown.
    unsure = [who for who, gap in single.items() if gap.low is None or gap.low <= 0]
    if not unsure:
        missing = ", ".join(who for who in leads if who not in measured)
        if missing:
            return replace(claim, basis=f"above the others, but {missing} is missing")
        return decided(min(single, key=lambda each: single[each].mean), single, confidence, "")

    # 3. Somebody is level, or may be.
    level = [who for who in unsure if decided(who, adjusted, strict, note).verdict == "level"]
    who = min(level or unsure, key=lambda each: single[each].mean)
    return decided(who, adjusted, strict, note)


def _margin(found: Measured, points: bool | None = None) -> float | None:
    return LEVEL if (found.unit == "%" if points is None else points) else None
