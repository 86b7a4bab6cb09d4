"""ShortCuts: when Russian dolls are tried beside the dual, and for how long."""

from __future__ import annotations

import math

from solvers.branch_and_cut.dolls import LEAST_STEPS, closed_by_dolls
from solvers.branch_and_cut.incumbent import Incumbent
from solvers.branch_and_cut.problem import Problem

SHRUNK, SHARE_OF_DOLLS = 0.7, 0.01
"""Russian dolls are tried when only this part of the undecided pairs of the last trial is
left, for this many steps per unit of the dual's work."""


class ShortCuts:
    """Russian dolls beside the dual: tried again whenever a node has shrunk.

    Parameters
    ----------
    incumbent
        The best structure so far; it takes what is found.
    tried
        Undecided pairs with which they were tried before.
    """

    def __init__(self, incumbent: Incumbent, tried: float) -> None:
        self._incumbent = incumbent
        self._tried = tried
        self.taken = 0

    def begin(self) -> None:
        """Forget the last trial: another node is at work."""
        self._tried = math.inf

    def close(self, problem: Problem, work: float) -> bool:
        """Try what is left of a node, if it shrank; tell whether it is closed.

        They take a fraction of the time that the dual took so far, whose work is given.
        """
        undecided = problem.n_undecided
        if undecided > SHRUNK * self._tried:
            return False
        self._tried = undecided
        budget = max(LEAST_STEPS, int(SHARE_OF_DOLLS * work))
        if not closed_by_dolls(problem, self._incumbent, budget):
            return False
        self.taken += 1
        return True
