r"""What branch-and-cut has left to decide, and the best structure so far.

Some players are known to be together (one *group*), some groups to be apart. The first such
knowledge comes without search. If i and j are apart in a structure, i could move to j's coalition
or j to i's. The two changes of value add up to at least
:math:`2 w_{ij} - \sum_{k \ne i,j} |w_{ik} - w_{jk}|`, and the first alone is at least
:math:`w_{ij} - \sum_{k \ne i,j} |w_{ik}|`. So some best structure has them together if

.. math:: 2 w_{ij} \ge \sum_{k \ne i,j} |w_{ik} - w_{jk}|
   \quad\text{or}\quad w_{ij} \ge \min_{a \in \{i,j\}} \sum_{k \ne i,j} |w_{ak}|.

The first rule unites players that are as good as twins, the second a player with the only partner
that matters to it. A merged pair is one node with the sums of both rows, and the rules apply again.
Weights far below what any coalition can make up for are raised to the least that still keeps a pair
apart: no best structure changes, and numbers stay small.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from coalitions.game import BoolMatrix, FloatMatrix, IntMatrix, IntVector
from solvers.branch_and_cut.plain import plain_merges
from solvers.reductions import components, numbered
from solvers.solver import RandomState, random_state

if TYPE_CHECKING:
    from solvers.branch_and_cut.lagrangian_dual import Ascent, Singles
    from solvers.solver import Improvement


@dataclass(frozen=True)
class PartitionProblem:
    """Groups of players that stay together, and the integer weights between them.

    Attributes
    ----------
    weights
        Weight between groups [m, m]: symmetric, with a zero diagonal.
    apart
        Pairs of groups that must not be together [m, m], symmetric.
    groups
        Group of each player [n].
    inside
        Weight inside the groups, which every structure of this problem has.
    """

    weights: IntMatrix
    apart: BoolMatrix
    groups: IntVector
    inside: int

    @classmethod
    def undecided(cls, weights: IntMatrix) -> PartitionProblem:
        """Return the problem in which nothing is decided."""
        n = len(weights)
        return cls(weights, np.zeros((n, n), np.bool_), np.arange(n), 0)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.weights)

    @property
    def representatives(self) -> IntVector:
        """First player of each group [m]."""
        first = np.empty(self.n_groups, np.int64)
        first[self.groups[::-1]] = np.arange(len(self.groups))[::-1]
        return first

    @property
    def n_undecided(self) -> int:
        """Number of pairs of groups that are neither together nor apart."""
        m = self.n_groups
        return (m * (m - 1) - int(np.count_nonzero(self.apart))) // 2

    def separated(self, first: IntVector, second: IntVector) -> PartitionProblem:
        """Return the problem with the pairs of groups (first[k], second[k]) apart."""
        apart = self.apart.copy()
        apart[first, second] = apart[second, first] = True
        return PartitionProblem(self.weights, apart, self.groups, self.inside)

    def merged(self, merge: IntVector) -> PartitionProblem | None:
        """Return the problem with each group g in the new group merge[g], or None if impossible.

        It is impossible if two groups that are apart would meet.
        """
        m = int(merge.max()) + 1
        order = np.argsort(merge, kind="stable")
        starts = np.searchsorted(merge[order], np.arange(m))
        weights = _summed(self.weights, order, starts)
        apart = _summed(self.apart.astype(np.int64), order, starts) > 0
        if apart.diagonal().any():
            return None
        inside = self.inside + int(np.trace(weights)) // 2
        np.fill_diagonal(weights, 0)
        return PartitionProblem(weights, apart, merge[self.groups], inside)


def _summed(matrix: IntMatrix, order: IntVector, starts: IntVector) -> IntMatrix:
    """Add up the rows and the columns of each group."""
    rows = np.add.reduceat(matrix[order], starts, axis=0)
    columns: IntMatrix = np.add.reduceat(rows[:, order], starts, axis=1)
    return columns


# ----------------------------------------------------------------------------------------
# Few groups: plain Python serves until a process has spent about as long with it as kernels take to
# load.

FEW_GROUPS = 20
"""Up to this many groups plain Python proves the best structure in about a second at worst."""

ENOUGH_STEPS = 2_000_000
"""Steps of plain Python in a process, 0.7 s, after which kernels are worth loading
(`python -m benchmarks.constants ENOUGH_STEPS`; `benchmarks/first_minute.py` has the kernels)."""

_spent = 0


def is_plain(n_groups: int) -> bool:
    """Tell whether a problem of that size is one for plain Python now."""
    return n_groups <= FEW_GROUPS and _spent < ENOUGH_STEPS


def spend(steps: int) -> None:
    """Note steps that were taken in plain Python."""
    global _spent
    _spent += steps


# ----------------------------------------------------------------------------------------
# Pairs that some best structure has together, found without search.


def trimmed(weights: IntMatrix) -> IntMatrix:
    r"""Return the weights with those below −(min(P_i, P_j) + 1) raised to that.

    P_i is the sum of the positive weights of i. A coalition with a pair of such a weight gains if
    one of the two leaves, before and after. Weights only grow, so a bound on the trimmed graph is
    a bound on the graph.
    """
    gains = np.maximum(weights, 0).sum(axis=1)
    least = -(np.minimum(gains[:, None], gains[None, :]) + 1)
    return cast(IntMatrix, np.maximum(weights, least))


def merges(
    weights: IntMatrix, expired: Callable[[], bool] = lambda: False
) -> list[tuple[int, int]]:
    """Return pairs of nodes that the rules put together, in an order in which they apply.

    Node j of a pair (i, j) is part of node i from then on. Sums of weights must fit int64 with two
    bits to spare. Where time has `expired`, the pairs found so far are the answer.
    """
    if is_plain(len(weights)):
        return plain_merges(weights)
    from solvers.branch_and_cut._cut_kernels import merge_pass

    left = weights.copy()
    sizes = np.abs(weights).sum(axis=1)
    alive = np.ones(len(weights), np.bool_)
    pairs = np.empty((len(weights), 2), np.int64)
    found: list[tuple[int, int]] = []
    # A merger can make a pair fit that was passed before.
    while n_merged := merge_pass(left, sizes, alive, pairs):
        found += [(i, j) for i, j in pairs[:n_merged].tolist()]
        if expired():
            break
    return found


# ----------------------------------------------------------------------------------------
# The best structure so far; a fractional point helps to find a better one.

# `python benchmarks/anytime.py table` shows what a change of these does to values in a short time.

FEW_PLAYERS = 150
"""Up to this many players, rounds of iterated local search take turns with annealing."""

SLICES, ROUNDS_AT_ONCE, LEVELS_AT_ONCE = 120, 50, 50
"""Slices in all for few players; rounds of local search and temperatures in each."""

SLICE_PER_PAIR, MOST_PER_SLICE = 2.5, 1.25e6
"""What a slice of annealing costs for many players, per n², where a step of the dual costs ten per
row (see `TreeSearch`): in equal times they do equal work at n = 250 to 500. From n = 700 on
`memetic` cuts its slices, and they cost alike."""


class PartitionIncumbent:
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
            from solvers.heuristics.dense_search import memetic

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

    def round(
        self, problem: PartitionProblem, point: Singles, threshold: float, rounds: int
    ) -> None:
        """Put together whom a fractional point has together, and search from there."""
        first, second = np.nonzero(np.triu(point, 1) > threshold)
        merge = components(problem.n_groups, first, second)
        self._improve(merge[problem.groups], rounds)

    def _improve(self, labels: IntVector, rounds: int) -> None:
        from solvers.heuristics.dense_search import improve

        found = improve(self._weights, numbered(labels), rounds, self._state, self.expired)
        self.offer(found[1])


# ----------------------------------------------------------------------------------------
# When local search has its turn beside the dual, and how much of the time.

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
        self, incumbent: PartitionIncumbent, check: Callable[[], None], *, idle: bool = False
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
