"""All coalitions that are worth something at given prices, as sets of bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coalitions.game import IntVector

IntMatrix = np.ndarray[tuple[int, int], np.dtype[np.int64]]

MOST_PLAYERS = 62
"""A coalition is a set of bits in an int64."""

FEW = 16
"""Up to so many players all coalitions are tabled at once, without compiled code."""

STEPS_AT_ONCE = 300_000
"""Steps of the search between two looks at the clock: 0.02 s, 0.3 s where hopes are many."""


@dataclass(frozen=True)
class Listed:
    """Coalitions with their worths.

    Attributes
    ----------
    masks, worths
        The coalitions and what each is worth.
    finished
        Whether the search came to its end, so that nothing is worth more than the best of these.
    complete
        Whether these are all that are worth enough.
    """

    masks: IntVector
    worths: IntVector
    finished: bool
    complete: bool


def listed(
    pairs: IntMatrix,
    prices: IntVector,
    *,
    least: int,
    most_members: int,
    most: int,
    expired: Callable[[], bool] = lambda: False,
    only_best: bool = False,
) -> Listed:
    r"""Return coalitions of two or more players that are worth at least `least`.

    .. math:: f(C) = \sum_{i<j \in C} w_{ij} - \sum_{i \in C} p_i

    Parameters
    ----------
    pairs
        Weights w [n, n], with a zero diagonal.
    prices
        Prices p [n].
    least
        What a coalition must be worth.
    most_members
        Most players of a coalition.
    most
        Most coalitions that are listed.
    expired
        Tells whether it is time to stop.
    only_best
        Where there are too many, go on with the better ones instead of stopping.

    Examples
    --------
    >>> pairs = np.array([[0, 3, 2], [3, 0, -4], [2, -4, 0]])
    >>> found = listed(
    ...     pairs, np.zeros(3, np.int64), least=1, most_members=3, most=100
    ... )
    >>> found.masks.tolist(), found.worths.tolist(), found.complete
    ([3, 5, 7], [3, 2, 1], True)
    """
    n = len(prices)
    if n > FEW:
        from solvers.overlap._profitable_kernel import (
            ALL,
            DEPTH,
            FOUND,
            LEAST,
            STATE,
            begin,
            grow,
            room_for,
        )

        whole, room = np.ascontiguousarray(pairs, np.int64), room_for(n)
        begin(whole, np.ascontiguousarray(prices, np.int64), *room[:2])
        state = np.zeros(STATE, np.int64)
        state[LEAST], state[ALL] = least, 1
        masks, worths = np.empty(most, np.int64), np.empty(most, np.int64)
        while (
            grow(whole, most_members, only_best, STEPS_AT_ONCE, state, masks, worths, *room)
            and not expired()
        ):
            pass
        finished, found = bool(state[DEPTH] < 0), slice(int(state[FOUND]))
        return Listed(masks[found], worths[found], finished, finished and bool(state[ALL]))
    masks, worths = _tabled(pairs, prices)
    kept = np.flatnonzero((worths >= least) & (members_of(masks, n).sum(axis=1) <= most_members))
    complete = len(kept) <= most
    if not complete:
        kept = np.sort(kept[np.argsort(-worths[kept], kind="stable")[:most]])
    return Listed(masks[kept], worths[kept], True, complete)


def _tabled(pairs: IntMatrix, prices: IntVector) -> tuple[IntVector, IntVector]:
    """Return all coalitions of two or more players with their worth, by doubling."""
    worths = np.zeros(1, np.int64)
    for player, price in enumerate(prices):
        gains = np.full(1, -price)
        for other in range(player):
            gains = np.concatenate((gains, gains + pairs[player, other]))
        worths = np.concatenate((worths, worths + gains))
    masks = np.arange(len(worths))
    several = masks & (masks - 1) != 0
    return masks[several], worths[several]


def members_of(masks: IntVector, n_players: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return coalitions as rows of booleans [m, n]."""
    return np.asarray((masks[:, None] >> np.arange(n_players)) & 1 == 1)
