"""Descent with a clock: on a large matrix even one takes most of a second."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coalitions.game import FloatMatrix, IntVector
from solvers.local_search.dense import (
    Home,
    Table,
    descend,
    keep_if_best,
    merge,
    relocate,
    rounding_threshold,
    split,
    swap,
    tabulate,
    wander,
)
from solvers.local_search.random_state import RandomState

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
