"""Incumbent: the best structure so far that meets the demands."""

from __future__ import annotations

from coalitions.game import IntVector
from solvers.branch_and_price.problem import Problem


class Incumbent:
    """Keeps the best of the structures it is offered.

    Attributes
    ----------
    labels
        Its coalitions; None as long as no structure is known that meets the demands.
    value
        Its value in whole weights; without a structure, less than any structure is worth.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.labels: IntVector | None = None
        self.value = -problem.losses - 1

    def offer(self, labels: IntVector) -> bool:
        """Take a structure if it meets the demands and is better; tell whether it was."""
        value = self._problem.value(labels)
        if value <= self.value or not self._problem.sizes.met_by(labels):
            return False
        self.labels, self.value = labels.copy(), value
        return True
