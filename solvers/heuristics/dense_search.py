"""Local search on a matrix, and the choice between a matrix and edges.

Iterated local search restarts from disturbed structures; for many players, annealing with crossover
takes its place. On a large matrix even one descent takes most of a second, so it looks at the
clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from coalitions.game import FloatMatrix, IntVector
from coalitions.graph import SynergyGraph
from solvers.heuristics import _sparse_kernels as _sparse
from solvers.heuristics._dense_kernels import (
    Home,
    Table,
    anneal,
    descend,
    iterate,
    keep_if_best,
    merge,
    relocate,
    reset,
    rounding_threshold,
    split,
    swap,
    tabulate,
    wander,
)
from solvers.heuristics.random_numbers import RandomState, random_state
from solvers.heuristics.sparse_search import search_edges
from solvers.reductions import numbered
from solvers.solver import (
    Improvement,
    Limits,
    fits_table,
    leaving_time_to_close,
    matrix_of,
    run_slices,
    synergies_between,
)

# ----------------------------------------------------------------------------------------
# Descent with a clock.

CELLS_AT_ONCE = 20_000_000
"""Cells of the matrix between two glances at the clock; a round looks at each about once."""

AT_ONCE = 1000
"""Up to this many players a whole descent takes a few hundredths of a second."""


def never() -> bool:
    """Tell that it is not time to stop."""
    return False


def descend_in_time(
    table: Table, threshold: float, state: RandomState, expired: Callable[[], bool] = never
) -> None:
    """Do as `descend` does, but end early where `expired` says so.

    With many players it is asked after every kernel, and in between while players move. The slices
    are counted in cells, not in seconds, so they do not change what is found.
    """
    n = len(table.slots)
    if n <= AT_ONCE:
        descend(table, threshold, state)
        return
    # Whether all are content is known after one pass, which looks at n² cells at most.
    patience = CELLS_AT_ONCE + n * n
    while not expired():
        content = relocate(table, threshold, state, patience)
        if content and not (
            merge(table, threshold)
            or expired()
            or split(table, threshold)
            or expired()
            or swap(table, threshold)
        ):
            break
    keep_if_best(table)


def improve(
    weights: FloatMatrix,
    labels: IntVector,
    rounds: int,
    state: RandomState,
    expired: Callable[[], bool] = never,
) -> tuple[float, IntVector]:
    """Return the best (value, labels) of an iterated local search from `labels`, in 0 … n−1.

    Never worse than `labels`; with 0 rounds it only descends. `state` comes from `random_state`.
    With many players `expired` is asked between slices whether it is time to stop.
    """
    table = tabulate(weights, labels)
    threshold = rounding_threshold(weights)
    descend_in_time(table, threshold, state, expired)
    home = Home(table.slots.copy(), table.value.copy(), np.zeros(1, np.int64))
    at_once = 1 + CELLS_AT_ONCE // len(labels) ** 2
    while rounds > 0 and not expired():
        wander(table, home, min(rounds, at_once), threshold, state)
        rounds -= at_once
    return float(table.best[0]), table.best_slots


# ----------------------------------------------------------------------------------------
# Iterated local search, and annealing with crossover.

# `python benchmarks/heuristics.py instances` shows what a change of these does.

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


# ----------------------------------------------------------------------------------------
# The whole search of `local-search`, until it ends or time is up.

EVERYBODY = np.iinfo(np.int64).max


def searched(
    graph: SynergyGraph,
    limits: Limits,
    start: IntVector | None,
    *,
    bound: float,
    effort: float = 1.0,
) -> tuple[IntVector, int]:
    """Return the best labels found from `start`, or from players alone, and the slices it took.

    It ends by itself, at the latest where a value reaches the bound.
    """
    n = graph.n_players
    start = None if start is None else numbered(start)
    first = np.arange(n) if start is None else start
    on_matrix = fits_table(graph)
    hurried = leaving_time_to_close(limits, n) if on_matrix else limits
    if hurried.expired and start is not None:
        return start, 0
    # Whatever ends the search, a last descent leaves nobody who would rather be elsewhere.
    state = random_state(limits.seed, 1)
    if on_matrix:
        weights = matrix_of(graph)
        search = search_matrix(
            weights, start, seed=limits.seed, effort=effort, expired=lambda: hurried.expired
        )
        labels, slices = run_slices(search, (-np.inf, first), bound, hurried)
        _, labels = improve(weights, numbered(labels), 0, state, lambda: limits.expired)
    else:
        rows = _sparse.rows_of(n, *graph.edges)
        search = search_edges(rows, start, seed=limits.seed, effort=effort)
        value = float(_sparse.value_of(rows, first))
        labels, slices = run_slices(search, (value, first), bound, limits)
        labels = labels.copy()
        _sparse.relocate(rows, labels, _sparse.rounding_threshold(rows), EVERYBODY, state)
    return labels, slices
