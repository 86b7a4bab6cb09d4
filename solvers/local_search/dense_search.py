"""Search on a matrix: iterated local search, and for many players annealing with crossover."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from coalitions.game import FloatMatrix, IntVector
from solvers.local_search.dense import (
    Table,
    anneal,
    iterate,
    reset,
    rounding_threshold,
    tabulate,
)
from solvers.local_search.descent import descend_in_time, improve, never
from solvers.local_search.random_state import RandomState, random_state
from solvers.local_search.slices import Improvement, synergies_between
from solvers.preparation.components import numbered

VERY_FEW_PLAYERS, FEW_PLAYERS = 40, 150
"""Up to this many players an iterated local search finds the best known values by itself, and
nearly always."""

ROUNDS_PER_PAIR, MAX_ROUNDS = 16, 20_000
"""How many times an iterated local search disturbs its structure: as often as there are pairs of
players, times this, within a limit."""

STARTS = 4
"""Starts among which the rounds are divided: some graphs hold a search captive."""

ROUNDS_AT_ONCE = 50
"""Rounds between two glances at the clock."""

POPULATION = 6
PATIENCE = 50
"""Children in a row without a new best structure after which the search ends."""

ENOUGH_TO_AGREE = 2
"""Structures annealed after which a graph may be called easy."""

HOT, WARM, COLD = 0.2, 0.17, 0.02
"""Temperatures at which a founder starts, a child starts, and both end, in units of the typical
root of Σ_j w_ij². Above 0.2 a structure melts; below 0.02 nothing moves."""

FOUNDER_LEVELS, CHILD_LEVELS = 200, 150
PROPOSALS_PER_PLAYER = 40
"""Temperatures between first and last, and proposals at each of them."""


CELLS_FOR_SCALE = 1_000_000
"""Weights that are enough to tell their scale."""


def search_matrix(
    weights: FloatMatrix,
    start: IntVector | None,
    *,
    seed: int,
    effort: float,
    expired: Callable[[], bool] = never,
) -> Iterator[Improvement]:
    """Give ever better partitions of a graph with a full matrix."""
    if len(weights) <= FEW_PLAYERS:
        yield from _iterated(weights, start, seed, effort)
    if len(weights) > VERY_FEW_PLAYERS:
        yield from memetic(weights, start, seed, effort, expired)


def _iterated(
    weights: FloatMatrix, start: IntVector | None, seed: int, effort: float
) -> Iterator[Improvement]:
    """Descend, disturb, descend …, from several starts: see `iterate`."""
    n = len(weights)
    state, threshold = random_state(seed), rounding_threshold(weights)
    table = tabulate(weights, np.arange(n) if start is None else start)
    rounds = int(effort * min(MAX_ROUNDS, ROUNDS_PER_PAIR * n * (n - 1) // 2) / STARTS)
    for attempt in range(STARTS):
        if attempt:
            reset(table, np.arange(n))
        for _ in range(0, max(1, rounds), ROUNDS_AT_ONCE):
            iterate(table, ROUNDS_AT_ONCE, threshold, state)
            yield table.best[0], table.best_slots


def memetic(
    weights: FloatMatrix,
    start: IntVector | None,
    seed: int,
    effort: float,
    expired: Callable[[], bool],
) -> Iterator[Improvement]:
    """Anneal a small population of structures, then cross two at a time and anneal the child.

    After [Lu2021]_: players that both parents have together become one node; an iterated local
    search on this small graph finds the best recombination, and annealing from a moderate
    temperature takes it on from there. A child takes the place of the worst structure it beats.
    Where plain descents and the first structures annealed all have one value, the graph is easy,
    and that is the end. `expired` tells whether to hurry to the next structure it gives.
    """
    n = len(weights)
    state, threshold = random_state(seed), rounding_threshold(weights)
    choose = np.random.default_rng(seed)
    alone = np.arange(n)
    table = tabulate(weights, alone if start is None else start)
    descend_in_time(table, threshold, state, expired)
    yield table.best[0], table.best_slots
    seen = [float(table.value[0])]
    if start is not None:
        # Where a start misleads, a descent from players alone does not; it takes no time.
        reset(table, alone)
        descend_in_time(table, threshold, state, expired)
        yield table.best[0], table.best_slots
        seen.append(float(table.value[0]))
        reset(table, table.best_slots)
    scale = _scale(weights)
    population: list[Improvement] = []
    best, failures = table.best[0], 0
    while len(population) < POPULATION or failures < PATIENCE * effort:
        if len(population) < POPULATION:
            if population or start is None:
                reset(table, alone)
            descend_in_time(table, threshold, state, expired)
            seen.append(float(table.value[0]))
            temperatures = scale * np.geomspace(HOT, COLD, FOUNDER_LEVELS)
        else:
            a, b = choose.choice(POPULATION, 2, replace=False)
            reset(table, _recombined(weights, population[a], population[b], state, expired))
            temperatures = scale * np.geomspace(WARM, COLD, CHILD_LEVELS)
        yield from _cool(table, temperatures, state)
        descend_in_time(table, threshold, state, expired)
        value, labels = table.value[0], numbered(table.slots)
        yield value, labels
        if len(population) < POPULATION:
            population.append((value, labels))
            seen.append(float(value))
            if len(population) >= ENOUGH_TO_AGREE and _agree(seen):
                break
        else:
            worst = min(range(POPULATION), key=lambda m: population[m][0])
            if value > population[worst][0] and all(value != known for known, _ in population):
                population[worst] = value, labels
            failures += 1
        if table.best[0] > best:
            best, failures = table.best[0], 0


def _agree(values: list[float]) -> bool:
    """Tell whether values are the same but for rounding."""
    return max(values) - min(values) <= 1e-9 * max(map(abs, values))


def _cool(table: Table, temperatures: np.ndarray, state: RandomState) -> Iterator[Improvement]:
    """Anneal through the temperatures in slices."""
    n, blocks = len(table.slots), int(table.used[0])
    # With many more blocks than there are to be, most proposals would name a wrong one, and a hot
    # start would dissolve all blocks. On p1000-1 short runs end 1.8 % below the best known value
    # on average with 8 blocks allowed, 2.6 % with 12; slower ones without a limit, 4 to 5 %.
    limit = min(n, blocks + 1 + blocks // 10)
    at_once = 1 + 20_000_000 // n
    for temperature in temperatures:
        proposals = PROPOSALS_PER_PLAYER * n
        while proposals > 0:
            anneal(table, temperature, min(proposals, at_once), limit, state)
            proposals -= at_once
            yield table.best[0], table.best_slots


def _recombined(
    weights: FloatMatrix,
    one: Improvement,
    other: Improvement,
    state: RandomState,
    expired: Callable[[], bool],
) -> IntVector:
    """Return the best partition found that keeps together whom both parents have together."""
    groups = numbered(one[1] * len(weights) + other[1])
    between = synergies_between(weights, groups)
    parent = np.zeros(len(between), np.int64)
    parent[groups] = max(one, other, key=lambda structure: structure[0])[1]
    _, labels = improve(between, parent, ROUNDS_AT_ONCE, state, expired)
    return numbered(labels[groups])


def _scale(weights: FloatMatrix) -> float:
    """Return the root mean square over the players of Σ_j w_ij², the unit of temperature.

    Weights count up to the 99th percentile, so that a few prohibitive ones do not set the scale.
    Of many players some are asked: sorting the weights of 5000 takes a second.
    """
    size = np.abs(weights[:: max(1, weights.size // CELLS_FOR_SCALE)])
    present = size[size > 0]
    if not len(present):
        return 1.0
    return float(np.sqrt((np.minimum(size, np.percentile(present, 99)) ** 2).sum(1).mean()))
