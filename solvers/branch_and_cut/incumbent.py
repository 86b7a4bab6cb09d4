"""Incumbent: the best structure so far, and how a fractional point helps to find a better one."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from coalitions.game import IntVector
from solvers.branch_and_cut._ascent_kernels import Singles
from solvers.branch_and_cut.problem import IntMatrix, Problem, joined
from solvers.heuristics._dense import improve
from solvers.heuristics._dense_search import search_matrix
from solvers.heuristics._engine import numbered
from solvers.heuristics._random import RandomState, random_state


class Incumbent:
    """The best structure of a graph with integer weights so far.

    Parameters
    ----------
    weights
        Integer weights of the players [n, n].
    start
        Labels of a structure to start from.
    seed
        Source of randomness.
    """

    def __init__(self, weights: IntMatrix, start: IntVector | None, seed: int) -> None:
        self._exact = weights
        self._weights = weights.astype(np.float64)
        self._state: RandomState = random_state(seed, 2)
        self.labels: IntVector = np.arange(len(weights))
        self.value = 0
        first = self.labels if start is None else numbered(start)
        self.offer(first)
        self._search = search_matrix(self._weights, first, seed=seed, effort=1.0)

    def offer(self, labels: IntVector) -> None:
        """Take a structure if it is better."""
        together = labels[:, None] == labels[None, :]
        value = int(self._exact[together].sum()) // 2
        if value > self.value:
            self.value, self.labels = value, labels.copy()

    def advance(self, slices: int, check: Callable[[], None]) -> None:
        """Let the local search that runs beside the proof take some more slices of work."""
        for value, labels in itertools.islice(self._search, slices):
            if value > self.value:
                self.offer(labels)
            check()

    def round(self, problem: Problem, point: Singles, threshold: float, rounds: int) -> None:
        """Put together whom a fractional point has together, and search from there."""
        first, second = np.nonzero(np.triu(point, 1) > threshold)
        merge = joined(problem.n_groups, first, second)
        labels = merge[problem.groups]
        self.offer(improve(self._weights, labels.astype(np.int64), rounds, self._state)[1])
