"""Local search under demands on coalitions: a first structure that meets them, then better ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np

from coalitions.errors import NoSolutionError
from coalitions.game import FloatMatrix, IntMatrix, IntVector
from solvers.demands import Sizes, first_structure
from solvers.heuristics._sized_kernels import SizedRules, Teams, anneal, restart, settle
from solvers.heuristics.random_numbers import RandomState, random_state
from solvers.reductions import numbered
from solvers.solver import Improvement

# `python benchmarks/teams.py heuristics` shows what a change of these does.

HOT, WARM, COLD = 0.5, 0.25, 0.1
"""Temperatures at which a founder starts, a repeat starts, and both end, in units of what a node
typically gains or loses in a coalition of the largest size."""

PENALTY = 5.0
"""What one step away from the demands costs, in the same unit: more than nearly any move gains. At
half a unit the search stays among structures that are too large, and finds no other."""

LEVELS, PROPOSALS_PER_NODE = 100, 100
"""Temperatures between first and last, and proposals at each of them."""

FOUNDERS, REPEATS = 4, 16
"""Annealings from scratch, then from the best structure so far."""

FRIENDS = 8
"""A node looks for company among twice as many as a coalition may hold, and at least so many."""

PROPOSALS_AT_ONCE = 200_000
CHOICES_AT_ONCE = 2_000_000
"""Proposals, or moves looked at, between two glances at the clock: less than 0.1 s."""

UNLIMITED = np.int64(2**62)


class SizedSearch:
    """The search on one matrix under one set of demands; state between its steps.

    Parameters
    ----------
    weights
        Synergies between nodes [n, n].
    sizes
        The demands; they are known to be consistent one by one, perhaps not together.
    seed
        Source of all randomness.
    """

    def __init__(self, weights: FloatMatrix, sizes: Sizes, seed: int) -> None:
        self.sizes, self.weights = sizes, np.ascontiguousarray(weights)
        self.rules = _rules(sizes)
        n, n_slots = len(weights), min(len(weights), sizes.most)
        self.teams = _empty(n, n_slots, len(sizes.roles))
        self.state: RandomState = random_state(seed, 2)
        self.choose = np.random.default_rng((seed, 2))
        self.threshold = 1e-12 * float(np.abs(self.weights).sum(axis=1).max(initial=0.0))

    @functools.cached_property
    def friends(self) -> IntMatrix:
        """For each node those it gains most with [n, m]; only annealing asks."""
        return _friends(self.weights, self.sizes)

    @functools.cached_property
    def unit(self) -> float:
        """What a node typically gains or loses in a coalition of the largest size."""
        return _unit(self.weights, self.sizes.max_size)

    def start_from(self, labels: IntVector) -> None:
        """Make `labels` the structure; what is beyond the most coalitions is shared out."""
        slots = numbered(labels) % len(self.teams.nodes)
        restart(self.rules, self.teams, self.weights, slots)

    def descend(self) -> Iterator[None]:
        """Lower the strain, then raise the value, while a move or an exchange does."""
        n = len(self.weights)
        at_once = max(1, CHOICES_AT_ONCE // (n + len(self.teams.nodes)))
        changes = 1
        while changes:
            changes, turn = 0, self.choose.permutation(n)
            for first in range(0, n, at_once):
                some = turn[first : first + at_once]
                changes += settle(self.rules, self.teams, self.weights, self.threshold, some)
                yield

    def cool(self, hot: float, levels: int = LEVELS) -> Iterator[None]:
        """Anneal from a temperature down, then descend, in steps between which to look around."""
        n = len(self.weights)
        for temperature in self.unit * np.geomspace(hot, COLD, levels):
            left = PROPOSALS_PER_NODE * n
            while left > 0:
                anneal(
                    self.rules,
                    self.teams,
                    self.weights,
                    self.friends,
                    temperature,
                    PENALTY * self.unit,
                    min(left, PROPOSALS_AT_ONCE),
                    self.threshold,
                    self.state,
                )
                left -= PROPOSALS_AT_ONCE
                yield
        # Sums that were kept up to date through many moves are made afresh before they count.
        restart(self.rules, self.teams, self.weights, self.teams.slots.copy())
        yield from self.descend()

    @property
    def found(self) -> bool:
        """Whether some structure so far met all demands."""
        return bool(self.teams.met[0])

    def run(self, steps: Iterator[None], expired: Callable[[], bool]) -> None:
        """Take steps until there are no more, or the time is over."""
        for _ in steps:
            if expired():
                break

    def bests(self, steps: Iterator[None]) -> Iterator[Improvement]:
        """Give the best structure after each step; there must be one."""
        for _ in steps:
            yield float(self.teams.best[0]), self.teams.best_slots


def search_sized(
    weights: FloatMatrix, sizes: Sizes, start: IntVector, *, seed: int, effort: float = 1.0
) -> Iterator[Improvement]:
    """Give ever better structures that meet the demands, from one that does."""
    search = SizedSearch(weights, sizes, seed)
    search.start_from(start)
    yield from search.bests(search.descend())
    for turn in range(max(1, round(effort * (FOUNDERS + REPEATS)))):
        if turn >= FOUNDERS:
            search.start_from(search.teams.best_slots.copy())
        yield from search.bests(search.cool(HOT if turn < FOUNDERS else WARM))


def improved(
    weights: FloatMatrix,
    sizes: Sizes,
    start: IntVector,
    *,
    seed: int = 0,
    rounds: int = 1,
    expired: Callable[[], bool] = lambda: False,
) -> IntVector:
    """Return a structure that meets the demands and is worth no less than `start`, which does.

    With 0 rounds it only descends; each round anneals from the best so far.

    Examples
    --------
    >>> weights = np.zeros((4, 4))
    >>> weights[0, 3] = weights[3, 0] = 2.0
    >>> pairs = Sizes(np.ones(4, np.int64), min_size=1, max_size=2, fewest=2, most=4)
    >>> labels = improved(weights, pairs, np.arange(4))
    >>> bool(labels[0] == labels[3])
    True
    """
    search = SizedSearch(weights, sizes, seed)
    search.start_from(start)
    search.run(search.descend(), expired)
    for _ in range(rounds):
        if expired():
            break
        search.start_from(search.teams.best_slots.copy())
        search.run(search.cool(WARM), expired)
    return numbered(search.teams.best_slots)


def repaired(
    weights: FloatMatrix,
    sizes: Sizes,
    start: IntVector | None,
    *,
    seed: int = 0,
    expired: Callable[[], bool] = lambda: False,
) -> IntVector:
    """Return a structure that meets the demands: `start` after a descent, if that comes to one.

    Raises
    ------
    InfeasibleError
        There is none.
    NoSolutionError
        None was found, and that there is none was not proven either.
    """
    search = SizedSearch(weights, sizes, seed)
    search.start_from(np.arange(len(weights)) if start is None else start)
    search.run(search.descend(), expired)
    if not search.found:
        placed = first_structure(sizes, expired=expired)
        if placed is not None:
            search.start_from(placed)
            search.run(search.descend(), expired)
    for _ in range(FOUNDERS):
        if not search.found:
            search.run(search.cool(HOT), lambda: search.found or expired())
    if not search.found:
        raise NoSolutionError(
            "no structure was found that meets the demands, nor a proof that there is none;"
            " give more time, or demand less"
        )
    return numbered(search.teams.best_slots)


def _rules(sizes: Sizes) -> SizedRules:
    n = len(sizes.players)
    holds = np.zeros((n, len(sizes.roles)), np.int64)
    for role, members in enumerate(sizes.roles):
        holds[list(members), role] = 1
    pairs = np.array(sorted({(min(p), max(p)) for p in sizes.apart}), np.int64).reshape(-1, 2)
    ends = np.concatenate((pairs, pairs[:, ::-1]))
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    first = np.searchsorted(ends[:, 0], np.arange(n + 1))
    loaded = len(sizes.loads) > 0
    loads = sizes.loads if loaded else np.zeros(n, np.int64)
    highest = sizes.max_load if loaded else UNLIMITED
    bounds = np.array([sizes.min_size, sizes.max_size, sizes.fewest, highest], np.int64)
    return SizedRules(
        sizes.players.astype(np.int64),
        loads.astype(np.int64),
        bounds,
        holds,
        first.astype(np.int64),
        np.ascontiguousarray(ends[:, 1]),
    )


def _empty(n: int, n_slots: int, n_roles: int) -> Teams:
    def numbers(*shape: int) -> IntVector:
        return np.zeros(shape, np.int64)

    return Teams(
        slots=numbers(n),
        before=numbers(n),
        after=numbers(n),
        entry=numbers(n_slots),
        gains=np.zeros((n_slots, n)),
        nodes=numbers(n_slots),
        players=numbers(n_slots),
        loads=numbers(n_slots),
        roles=numbers(n_slots, n_roles),
        strains=numbers(n_slots),
        used=numbers(1),
        strain=numbers(1),
        value=np.zeros(1),
        best=np.zeros(1),
        best_slots=numbers(n),
        met=numbers(1),
    )


def _friends(weights: FloatMatrix, sizes: Sizes) -> IntMatrix:
    """Return for each node those it gains most with [n, m]; a lone node has itself."""
    n = len(weights)
    many = min(n - 1, max(FRIENDS, 2 * sizes.max_size))
    friends = np.zeros((n, max(1, many)), np.int64)
    if many:
        for i in range(n):
            row = -weights[i]
            row[i] = np.inf
            friends[i] = np.argpartition(row, many - 1)[:many]
    return friends


def _unit(weights: FloatMatrix, max_size: int) -> float:
    """Return the root mean square of a weight, times the root of the number of partners.

    Weights count up to the 99th percentile, so that a few prohibitive ones do not set the scale.
    """
    size = np.abs(weights[np.triu_indices(len(weights), 1)])
    present = size[size > 0]
    if not len(present):
        return 1.0
    typical = np.sqrt((np.minimum(size, np.percentile(present, 99)) ** 2).mean())
    return float(typical * np.sqrt(max(1, min(max_size, len(weights)) - 1)))
