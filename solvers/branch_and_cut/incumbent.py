"""Incumbent: the best structure so far, and how a fractional point helps to find a better one."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from coalitions.game import FloatMatrix, IntMatrix, IntVector
from solvers.branch_and_cut.problem import Problem
from solvers.preparation.components import components, numbered
from solvers.seeds import RandomState, random_state

if TYPE_CHECKING:
    from solvers.branch_and_cut.dual.multipliers import Singles
    from solvers.local_search.slices import Improvement

FEW_PLAYERS = 150
"""Up to this many players, rounds of iterated local search take turns with annealing."""

SLICES, ROUNDS_AT_ONCE, LEVELS_AT_ONCE = 120, 50, 50
"""Slices in all for few players; rounds of local search and temperatures in each."""

SLICE_PER_PAIR, MOST_PER_SLICE = 2.5, 1.25e6
"""What a slice of annealing costs for many players, per n², where a step of the dual costs ten per
row (see `TreeSearch`): in equal times they do equal work at n = 250 to 500. From n = 700 on
`memetic` cuts its slices, and they cost alike."""


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
    expired
        Tells whether it is time to stop; it is asked where a search is long.
    searched
        Returns the labels that a local search on the whole graph ends with.
    quick
        Whether that takes no longer than a few looks at the bound: it does on few edges.
    """

    def __init__(
        self,
        weights: IntMatrix,
        start: IntVector | None,
        seed: int,
        expired: Callable[[], bool] = lambda: False,
        searched: Callable[[], IntVector] | None = None,
        quick: bool = False,
    ) -> None:
        self._exact = weights
        self.labels: IntVector = np.arange(len(weights))
        self.value = 0
        if start is not None:
            self.offer(start)
        self._seed = seed
        self.expired = expired
        self._searched = searched if len(weights) > FEW_PLAYERS else None
        self.quick = quick
        self._annealing: Iterator[Improvement] | None = None
        self._slices_left = SLICES
        self._worked = 0.0

    @functools.cached_property
    def _weights(self) -> FloatMatrix:
        return self._exact.astype(np.float64)

    @functools.cached_property
    def _state(self) -> RandomState:
        return random_state(self._seed, 2)

    def offer(self, labels: IntVector) -> None:
        """Take a structure if it is better."""
        together = labels[:, None] == labels[None, :]
        value = int(self._exact[together].sum()) // 2
        if value > self.value:
            self.value, self.labels = value, labels.copy()

    def descend(self) -> None:
        """Let players move, coalitions merge and split, until nothing gains."""
        self._improve(self.labels, 0)

    def search_to_the_end(self) -> None:
        """Give local search all the time until it ends by itself; it needs no turn after that.

        With few players its turns beside the proof are enough.
        """
        if self._searched is not None:
            self.offer(self._searched())
            self._annealing, self._searched = iter(()), None

    def advance(self, slices: int, work: float, check: Callable[[], None]) -> None:
        """Let the local search that runs beside the proof go on.

        Parameters
        ----------
        slices
            It takes at least so many slices of work.
        work
            With many players, it takes as many as bring all of its work to this much.
        check
            Called after each slice.
        """
        if self._annealing is None:
            from solvers.local_search.dense_search import memetic

            start = numbered(self.labels)
            self._annealing = memetic(self._weights, start, self._seed, 1.0, self.expired)
        if len(self._weights) > FEW_PLAYERS:
            n = len(self._weights)
            cost = min(SLICE_PER_PAIR * n * n, MOST_PER_SLICE)
            slices = max(slices, int((work - self._worked) / cost))
            self._worked += slices * cost
            self._anneal(slices, check)
            return
        for _ in range(min(slices, self._slices_left)):
            self._slices_left -= 1
            self._improve(self.labels, ROUNDS_AT_ONCE)
            self._anneal(LEVELS_AT_ONCE, check)

    def _anneal(self, levels: int, check: Callable[[], None]) -> None:
        assert self._annealing is not None
        for value, labels in itertools.islice(self._annealing, levels):
            if value > self.value:
                self.offer(labels)
            check()

    def round(self, problem: Problem, point: Singles, threshold: float, rounds: int) -> None:
        """Put together whom a fractional point has together, and search from there."""
        first, second = np.nonzero(np.triu(point, 1) > threshold)
        merge = components(problem.n_groups, first, second)
        self._improve(merge[problem.groups], rounds)

    def _improve(self, labels: IntVector, rounds: int) -> None:
        from solvers.local_search.descent import improve

        found = improve(self._weights, numbered(labels), rounds, self._state, self.expired)
        self.offer(found[1])
