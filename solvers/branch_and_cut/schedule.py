"""Schedule: when local search has its turn beside the dual, and how much of the time."""

from __future__ import annotations

from collections.abc import Callable

from solvers.branch_and_cut.dual.ascent import Ascent
from solvers.branch_and_cut.incumbent import Incumbent

THRESHOLDS = (0.5, 0.65, 0.8)
"""Whom the soft point has together by this much is put together; they take turns."""

FEW_SLICES, MANY_SLICES = 1, 20
"""Slices of local search each time the bound is near to, or far from, the value."""

FAR, HOPELESS, MOST_OF_SEARCH = 0.02, 1.0, 6.0
"""From these distances of the bound, relative to the value, on it is far, and hopeless; local
search gets as much of the dual's work as the distance says, up to the last: half of a minute on
random graphs of 1000 players, where a bound is worth little."""


class Schedule:
    """The search for better structures while a dual sharpens the bound.

    Parameters
    ----------
    incumbent
        The best structure so far; it is improved on the way.
    check
        Called after each piece of work; raises an exception to end the search.
    idle
        Whether there is nothing to look for, because nothing can be better.
    """

    def __init__(
        self, incumbent: Incumbent, check: Callable[[], None], *, idle: bool = False
    ) -> None:
        self._incumbent = incumbent
        self._check = check
        self._idle = idle

    def round(self, ascent: Ascent, turn: int) -> None:
        """Look for a better structure near the soft point."""
        if self._idle:
            return
        threshold = THRESHOLDS[turn % len(THRESHOLDS)]
        self._incumbent.round(ascent.problem, ascent.point, threshold, 3)
        self._check()

    def follow_up(self) -> None:
        """Let local search go on a little from a structure that was just found."""
        if self._idle:
            return
        self._incumbent.advance(FEW_SLICES, 0.0, self._check)

    def go_on(self, bound: int, work: float, *, due: bool) -> None:
        """Let local search go on; the farther the bound, the more of the time is its.

        It goes on when its turn is `due`, and where there is no hope of a proof in between, too.
        `work` is what the dual has done so far.
        """
        if self._idle:
            return
        value = self._incumbent.value
        distance = (bound - value) / max(value, 1)
        share = min(MOST_OF_SEARCH, distance) * work
        if due:
            slices = MANY_SLICES if distance > FAR else FEW_SLICES
            self._incumbent.advance(slices, share, self._check)
        elif distance > HOPELESS:
            self._incumbent.advance(0, share, self._check)
