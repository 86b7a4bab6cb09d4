"""Multilevel search on edges: V-cycles, crossing by overlay, annealing with few blocks.

The search is a row of steps. Each is one pure function of structures found before and of its own
stream of random numbers, so the clock decides how many steps there are and never what they find.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterator

import numpy as np

from coalitions.game import IntVector
from coalitions.graph import SynergyGraph
from solvers.heuristics._multilevel_kernels import (
    Level,
    Partition,
    ShortVector,
    contract,
    largest_sum,
    level_of,
    move,
    overlay,
    partition_of,
    pulls,
    queue_all,
    refine,
    renumber,
    sweep,
    value_of,
)
from solvers.heuristics.greedy import united
from solvers.heuristics.random_numbers import random_state
from solvers.solver import Improvement, Limits, run_slices

LOOKS = 1_000_000
"""Edges looked at between two glances at the clock: 0.02 to 0.1 seconds."""

NOISE = 0.1
"""Share of the nodes that refinement puts into any group that pulls, in all V-cycles but the first:
without it they would repeat the first."""

NOISY_CYCLES = 2
"""V-cycles after the first, before anything else is tried: each takes less than half its time."""

SHRINKS = 0.98
"""A level that is not smaller than this times the one below is not worth having."""

ROUNDS_ON_OVERLAY, ROUNDS_AFTER = 3, 2
"""V-cycles on the graph of what two structures have in common, and then on the whole graph."""

BEST_WITH_FRESH = 3
"""First crossings, all with the best structure; a population takes a while to pay."""

POPULATION = 8
PATIENCE = 24
"""Steps in a row without a new best structure after which the search ends."""

HOT, COLD = 0.3, 0.05
"""First and last temperature of an annealing, in units of the root mean square of Σ_j w_ij²."""

TRIAL_SWEEPS = 50
"""Sweeps of the annealing that tells what kind of graph it is."""

FAR, CLOSE = 0.9, 0.97
"""If it finds less than FAR times what V-cycles find, there is no more annealing; if V-cycles find
less than CLOSE times what it finds, there is nothing else. Of the graphs of `benchmarks/large.py`,
those with groups are at 0.5 to 0.63, random signs at 1.06 and all others at 0.95 to 1.01."""

EDGES_FOR_UNIONS = 50_000
"""Up to so many edges greedy takes no longer than a few annealings."""

EDGES_WITHOUT_STEPS = 1_000_000
"""Up to so many edges greedy is asked, too, where time was over before the first step was."""

WEIGHTS_FOR_SCALE = 100_000
"""Weights that are enough to tell their scale."""

FIRST_BLOCKS, MOST_BLOCKS = 4, 16
"""Blocks of the first annealings, and most that are allowed: the table has so many columns."""

MOST_SWEEPS = 12_800


def searched(
    graph: SynergyGraph,
    limits: Limits,
    start: IntVector | None,
    *,
    bound: float,
    effort: float,
    steps: int | None,
) -> tuple[IntVector, int]:
    """Return the best labels found from `start`, or from players alone, and the steps it took."""
    search = LevelSearch(graph, limits.seed, start, lambda: limits.expired)
    slices = search.slices(effort, steps)
    labels, _ = run_slices(slices, search.best, bound, limits)
    if not search.n_steps and len(graph.edges.weight) <= EDGES_WITHOUT_STEPS:
        greedy = united(graph, limits, start)
        labels = greedy if search.value(greedy) > search.best[0] else labels
    return labels, search.n_steps


class LevelSearch:
    """A search on one graph: what it has found, and the steps that find more.

    Attributes
    ----------
    best
        Value and labels of the best structure so far.
    n_steps
        Steps that were completed.
    """

    def __init__(
        self,
        graph: SynergyGraph,
        seed: int,
        start: IntVector | None = None,
        expired: Callable[[], bool] = lambda: False,
    ) -> None:
        self._graph, self._n = graph, graph.n_players
        self._level = level_of(self._n, graph.edges)
        self._threshold = 1e-12 * largest_sum(self._level)
        self._seed, self._expired, self._start = seed, expired, start
        self._state = random_state(seed, 0)
        first = self._alone() if start is None else start.astype(np.int32)
        renumber(first)
        self.best: Improvement = value_of(self._level, first), first.astype(np.int64)
        self.n_steps = 0
        self._idle = 0

    def value(self, labels: IntVector) -> float:
        """Return what a structure is worth."""
        return float(value_of(self._level, labels.astype(np.int32)))

    def slices(self, effort: float = 1.0, steps: int | None = None) -> Iterator[Improvement]:
        """Give the best structure after every step; end after `steps` or when idle for long.

        Time may be over in the middle of a step. What it has then found is dropped, but for the
        first step: that is ended early, and any structure is better than none.
        """
        for found in self._all_steps():
            if self._expired() and self.n_steps:
                return
            value = value_of(self._level, found)
            self._idle += 1
            if value > self.best[0]:
                self.best = value, found.astype(np.int64)
                self._idle = 0
            self.n_steps += not self._expired()
            self._state = random_state(self._seed, self.n_steps)
            yield self.best
            if self.n_steps == steps or self._idle >= PATIENCE * effort:
                return

    # ------------------------------------------------------------------------------------
    # The order of steps

    def _all_steps(self) -> Iterator[ShortVector]:
        """Give the structures that one step after the other finds.

        1. A few V-cycles, from the start or from players alone.
        2. An annealing with two blocks tells what kind of graph it is. Where there are many groups
           it falls far short of the V-cycles; in a graph without groups, such as one of random
           signs, it finds more; and where one coalition has most of the players, about as much.
        3. Then structures are crossed, or annealed, or annealed and crossed with the best. There,
           greedy is good, too.
        """
        first = self._best_labels()
        self._cycle(self._level, first)
        yield first
        for _ in range(NOISY_CYCLES):
            again = self._best_labels()
            self._cycle(self._level, again, noise=NOISE, settled=True)
            yield again
        grown = self.best[0]
        cooled = yield from self._annealing(2, TRIAL_SWEEPS, worth=FAR * grown)
        if cooled < FAR * grown:
            yield from self._crossings()
        if grown > CLOSE * cooled and len(self._graph.edges.weight) <= EDGES_FOR_UNIONS:
            yield self._united()
        for annealed in self._annealings():
            yield annealed
            if grown > CLOSE * cooled:
                yield self._cross(self._best_labels(), annealed)

    def _crossings(self) -> Iterator[ShortVector]:
        """Give children of the best structure, then of ever better ones of a population."""
        for _ in range(BEST_WITH_FRESH):
            yield self._cross(self._best_labels(), self._grown())
        population = [(self.best[0], self._best_labels())]
        while len(population) < POPULATION:
            child = self._cross(self._grown(), self._grown())
            population.append((value_of(self._level, child), child))
            yield child
        choose = np.random.default_rng([self._seed, POPULATION])
        while True:
            a, b = choose.choice(POPULATION, 2, replace=False)
            child = self._cross(population[a][1], population[b][1])
            value = value_of(self._level, child)
            worse = min(a, b, key=lambda member: population[member][0])
            if value > population[worse][0]:
                population[worse] = value, child
            yield child

    def _annealings(self) -> Iterator[ShortVector]:
        """Give annealed structures, with ever more sweeps.

        In every round the best number of blocks so far is tried again, then one more and one less.
        """
        middle, sweeps, n = FIRST_BLOCKS, TRIAL_SWEEPS, self._n
        while True:
            sweeps = min(2 * sweeps, MOST_SWEEPS)
            found = {}
            for n_blocks in (middle, middle + 1, middle - 1):
                if 2 <= n_blocks <= min(n, MOST_BLOCKS):
                    found[n_blocks] = yield from self._annealing(n_blocks, sweeps)
            middle = max(found, key=lambda k: found[k])

    # ------------------------------------------------------------------------------------
    # Steps

    def _grown(self) -> ShortVector:
        labels = self._alone()
        self._cycle(self._level, labels)
        return labels

    def _united(self) -> ShortVector:
        """Return what greedy finds, after a V-cycle."""
        labels: ShortVector = united(self._graph, Limits()).astype(np.int32)
        renumber(labels)
        self._cycle(self._level, labels, noise=NOISE, settled=True)
        return labels

    def _cross(self, one: ShortVector, other: ShortVector) -> ShortVector:
        """Cluster what two structures have together: from nothing, not from the better of the two.

        [Ovelgoenne2012]_ A start from the better one ends in the same valley.
        """
        groups = np.empty(len(one), np.int32)
        n_groups = overlay(one, other, groups)
        small = contract(self._level, groups, n_groups)
        upper = np.arange(n_groups, dtype=np.int32)
        for turn in range(ROUNDS_ON_OVERLAY):
            self._cycle(small, upper, noise=NOISE if turn else 0.0, settled=turn > 0)
        labels: ShortVector = upper[groups]
        for _ in range(ROUNDS_AFTER):
            self._cycle(self._level, labels, noise=NOISE, settled=True)
        return labels

    def _annealing(
        self, n_blocks: int, sweeps: int, worth: float = -np.inf
    ) -> Generator[ShortVector, None, float]:
        """Give one structure annealed from random blocks; return its value.

        A V-cycle follows, where players may also leave for smaller blocks, unless the structure is
        not worth it.
        """
        level, n = self._level, self._n
        rng = np.random.default_rng([self._seed, self.n_steps, 1])
        labels = rng.integers(0, n_blocks, n).astype(np.int32)
        table = pulls(level, labels, n_blocks)
        for temperature in self._scale * np.geomspace(HOT, COLD, sweeps):
            if self._expired():
                break
            sweep(level, labels, table, temperature, self._state)
        if value_of(level, labels) >= worth:
            self._cycle(level, labels)
        value = float(value_of(level, labels))
        yield labels
        return value

    def _cycle(
        self, level: Level, labels: ShortVector, *, noise: float = 0.0, settled: bool = False
    ) -> None:
        """Improve labels, in place, by one V-cycle; renumber them.

        1. Down: nodes move, the blocks are refined to groups, and these are the next level's nodes.
        2. At the bottom, whole blocks move.
        3. Up: each level takes over the blocks from the coarser one, and nodes move again.

        If `settled`, no node of the finest level wants to move at first.
        """
        passed = []
        while True:
            now = partition_of(labels)
            if not settled:
                self._settle(level, now)
            settled = False
            groups = np.empty(len(labels), np.int32)
            if self._expired():
                break
            n_groups = refine(level, now, noise, self._threshold, groups, self._state)
            if n_groups > SHRINKS * len(labels):
                break
            renumber(labels)
            passed.append((level, labels, groups))
            upper = np.empty(n_groups, np.int32)
            upper[groups] = labels
            level, labels = contract(level, groups, n_groups), upper
        self._unite(level, labels)
        for level, finer, groups in reversed(passed):
            finer[:] = labels[groups]
            labels = finer
            self._settle(level, partition_of(labels))
        renumber(labels)

    def _unite(self, level: Level, labels: ShortVector) -> None:
        """Let whole blocks move, then blocks of blocks …, until none wants to."""
        n_blocks, fewer = renumber(labels), -1
        while fewer < n_blocks and not self._expired():
            n_blocks = n_blocks if fewer < 0 else fewer
            top, merged = contract(level, labels, n_blocks), np.arange(n_blocks, dtype=np.int32)
            self._settle(top, partition_of(merged))
            fewer = renumber(merged)
            labels[:] = merged[labels]

    def _settle(self, level: Level, now: Partition) -> None:
        """Let nodes move until none wants to, or time is over."""
        queue_all(now, self._state)
        while not self._expired() and not move(level, now, self._threshold, LOOKS):
            pass

    @functools.cached_property
    def _scale(self) -> float:
        """The root mean square over the players of Σ_j w_ij², the unit of temperature.

        Weights count up to the 99th percentile of some of them, so that a few prohibitive ones do
        not set the scale.
        """
        size = np.abs(self._level.weights)
        most = np.percentile(size[:: 1 + len(size) // WEIGHTS_FOR_SCALE], 99)
        return float(np.sqrt((np.minimum(size, most) ** 2).sum() / self._n))

    def _alone(self) -> ShortVector:
        return np.arange(self._n, dtype=np.int32)

    def _best_labels(self) -> ShortVector:
        return self.best[1].astype(np.int32)
