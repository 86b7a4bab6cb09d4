"""Incumbent: the best structure so far that meets the demands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coalitions.errors import NoSolutionError
from coalitions.game import IntVector
from solvers.branch_and_price.problem import Problem

SMALL = 20
"""Up to so many nodes the linear program leads to structures that need no improvement."""


class Incumbent:
    """Keeps the best of the structures it is offered.

    Parameters
    ----------
    problem
        What is asked.
    seed
        Source of all randomness.
    expired
        Tells whether it is time to stop.

    Attributes
    ----------
    labels
        Its coalitions; None as long as no structure is known that meets the demands.
    value
        Its value in whole weights; without a structure, less than any structure is worth.
    """

    def __init__(self, problem: Problem, *, seed: int, expired: Callable[[], bool]) -> None:
        self._problem = problem
        self._weights = problem.weights / max(1, np.abs(problem.weights).max())
        self._seed, self._turn, self._expired = seed, 0, expired
        self.labels: IntVector | None = None
        self.value = -problem.losses - 1

    def offer(self, labels: IntVector) -> bool:
        """Take a structure if it meets the demands and is better; tell whether it was."""
        value = self._problem.value(labels)
        if value <= self.value or not self._problem.sizes.met_by(labels):
            return False
        self.labels, self.value = labels.copy(), value
        return True

    def begin(self, start: IntVector | None) -> None:
        """Take a first structure, from `start` if there is one.

        Raises
        ------
        InfeasibleError
            There is none; it may also be that none is found.
        """
        from solvers.preparation.feasibility import first_structure

        if start is not None:
            self.offer(start)
        if self._problem.n <= SMALL:
            if self.labels is None:
                labels = first_structure(self._problem.sizes, expired=self._expired)
                if labels is not None:
                    self.offer(labels)
            return
        from solvers.local_search.sized import repaired

        try:
            sizes = self._problem.sizes
            labels = repaired(self._weights, sizes, start, seed=self._seed, expired=self._expired)
        except NoSolutionError:
            return
        self.offer(labels)

    def improve(self, labels: IntVector, rounds: int | None) -> None:
        """Offer a structure, and what some rounds of local search make of it, or none at all."""
        self.offer(labels)
        if rounds is None or self._problem.n <= SMALL or not self._problem.sizes.met_by(labels):
            return
        from solvers.local_search.sized import improved

        self._turn += 1
        better = improved(
            self._weights,
            self._problem.sizes,
            labels,
            seed=self._seed + self._turn,
            rounds=rounds,
            expired=self._expired,
        )
        self.offer(better)
