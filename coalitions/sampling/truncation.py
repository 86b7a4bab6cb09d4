"""Paths that are cut off once the rest of the players can hardly change anything."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coalitions.game import FloatMatrix, IntVector
from coalitions.sampling.evaluator import Evaluator
from coalitions.sampling.paths import CELLS_PER_CALL

Orders = Callable[[int], "np.ndarray[tuple[int, int], np.dtype[np.int64]]"]
"""Draws that many orders, continuing where the last call stopped."""


def truncated_marginals(
    game: Evaluator, orders: np.ndarray[tuple[int, int], np.dtype[np.int64]], tolerance: float
) -> FloatMatrix:
    """Return the marginals [m, n] along the orders, each cut off within `tolerance` of v(N).

    All paths advance together, one player at a time, so a batch holds one coalition of each path
    that is still going. Players after the cut get 0.
    """
    empty, grand = game.ends
    m, n = orders.shape
    result = np.zeros((m, n))
    members = np.zeros((m, n), np.bool_)
    previous = np.full(m, empty)
    active: IntVector = np.arange(m)
    for position in range(n):
        active = active[np.abs(grand - previous[active]) > tolerance]
        if not len(active):
            break
        player = orders[active, position]
        members[active, player] = True
        last = position == n - 1
        values = np.full(len(active), grand) if last else game(members[active])
        result[active, player] = values - previous[active]
        previous[active] = values
    return result


def truncated_paths(game: Evaluator, draw: Orders, tolerance: float) -> FloatMatrix:
    """Return the marginals along as many paths as the budget allows, [R, n].

    How much a path costs shows only when it is walked. So the paths come in rounds: each round
    takes what could be paid for if no path were cut off, and what it saved pays for the next.
    """
    n = game.n_players
    _ = game.ends
    parts: list[FloatMatrix] = []
    n_paths = 0
    largest = max(1, CELLS_PER_CALL // n)
    while n_paths < game.budget:
        affordable = min(game.left // (n - 1), game.budget - n_paths, largest)
        if affordable < 1:
            break
        parts.append(truncated_marginals(game, draw(affordable), tolerance))
        n_paths += affordable
    return np.concatenate(parts)
