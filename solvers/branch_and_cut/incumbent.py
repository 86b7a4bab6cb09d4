"""Incumbent: the best structure so far, and how a fractional point helps to find a better one."""

from __future__ import annotations

import numpy as np

from coalitions.game import IntVector
from solvers.branch_and_cut._ascent_kernels import Singles
from solvers.branch_and_cut.problem import IntMatrix, Problem, joined
from solvers.heuristics._dense import improve
from solvers.heuristics._random import RandomState


class Incumbent:
    """The best structure of a graph with integer weights so far.

    Parameters
    ----------
    weights
        Integer weights of the players [n, n].
    state
        Source of randomness.
    """

    def __init__(self, weights: IntMatrix, state: RandomState) -> None:
        self._exact = weights
        self._weights = weights.astype(np.float64)
        self._state = state
        self.labels: IntVector = np.arange(len(weights))
        self.value = 0

    def offer(self, labels: IntVector) -> None:
        """Take a structure if it is better."""
        together = labels[:, None] == labels[None, :]
        value = int(self._exact[together].sum()) // 2
        if value > self.value:
            self.value, self.labels = value, labels.copy()

    def search(self, labels: IntVector, rounds: int) -> None:
        """Take the structure that local search finds from another."""
        self.offer(improve(self._weights, labels.astype(np.int64), rounds, self._state)[1])

    def round(self, problem: Problem, point: Singles, threshold: float, rounds: int) -> None:
        """Put together whom a fractional point has together, and search from there."""
        first, second = np.nonzero(np.triu(point, 1) > threshold)
        merge = joined(problem.n_groups, first, second)
        self.search(merge[problem.groups], rounds)
