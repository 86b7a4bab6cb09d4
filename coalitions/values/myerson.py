"""Players who can only work together if they can talk: the Myerson value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from math import factorial

import numpy as np

from coalitions.checks import ends_of_links
from coalitions.enumeration import ROWS_PER_CALL, coalitions_of_masks
from coalitions.errors import InvalidInputError
from coalitions.game import (
    FloatMatrix,
    FloatVector,
    Game,
    IntVector,
    evaluate,
    players_of,
    table_of,
)
from coalitions.graph import SynergyGraph
from coalitions.one_thread import one_blas_thread

MOST_CONNECTED = 1 << 24
"""A game that has to be asked is refused if there are more connected coalitions than this."""


def myerson_value(game: Game, links: SynergyGraph | Iterable[tuple[int, int]]) -> FloatVector:
    r"""Return the Myerson value: the Shapley value when only linked players can cooperate.

    A coalition that falls apart in the graph is worth the sum of its components,
    :math:`v^g(S) = \sum_{C \in S/g} v(C)` [Myerson1977]_. A connected C is a component of S
    exactly if S holds C and nothing of its border :math:`\partial C`, so that

    .. math:: \mu_i = \sum_{C \ni i} \frac{(c-1)!\, b!}{(c+b)!} v(C)
        - \sum_{\partial C \ni i} \frac{c!\, (b-1)!}{(c+b)!} v(C),
        \quad c = |C|,\; b = |\partial C|

    over connected C [Skibski2019]_: only they are evaluated, which
    on a sparse graph is a small part of the 2^n coalitions. The value of the empty coalition is
    subtracted from v first.

    Parameters
    ----------
    game
        Any game of up to 62 players.
    links
        Who talks to whom: pairs of players, or a graph whose weights are ignored. For a game
        without a table it may have up to 16 million connected coalitions.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> majority = TableGame([0, 0, 0, 1, 0, 1, 1, 1])
    >>> myerson_value(majority, [(0, 1), (1, 2)]).round(6).tolist()
    [0.166667, 0.666667, 0.166667]
    """
    from coalitions.values._connected import myerson_of_table, start

    n = players_of(game)
    neighbours = _neighbours(links, n)
    inside, outside = _weights(n)
    table = table_of(game)
    if table is not None:
        return np.asarray(myerson_of_table(table, neighbours, *start(n), inside, outside))
    count = sum(len(coalitions) for coalitions, _ in _connected(neighbours))
    empty = float(evaluate(game, np.zeros((1, n), np.bool_))[0])
    total = np.zeros(n)
    for coalitions, borders in _connected(neighbours, min(count, ROWS_PER_CALL)):
        members = coalitions_of_masks(coalitions, n)
        border = coalitions_of_masks(borders, n)
        values = evaluate(game, members) - empty
        c, b = members.sum(axis=1), border.sum(axis=1)
        with one_blas_thread():
            total += (inside[c, b] * values) @ members - (outside[c, b] * values) @ border
    return total


def _connected(
    neighbours: IntVector, chunk: int = ROWS_PER_CALL
) -> Iterator[tuple[IntVector, IntVector]]:
    """Yield all connected coalitions and their borders as masks, a chunk at a time."""
    from coalitions.values._connected import next_connected, start

    stack, place = start(len(neighbours))
    listed = 0
    while True:
        coalitions, borders = np.empty(chunk, np.int64), np.empty(chunk, np.int64)
        count = next_connected(neighbours, stack, place, coalitions, borders)
        listed += count
        if listed > MOST_CONNECTED:
            raise InvalidInputError(
                f"the graph has more than {MOST_CONNECTED:,} connected coalitions; estimate the"
                " Shapley value of the graph-restricted game instead"
            )
        if not count:
            return
        yield coalitions[:count], borders[:count]


def _neighbours(links: SynergyGraph | Iterable[tuple[int, int]], n_players: int) -> IntVector:
    """Return the neighbours of each player as bits."""
    if n_players > 62:
        raise InvalidInputError(f"{n_players} players do not fit into the 62 bits of a mask")
    neighbours = [0] * n_players
    for i, j in zip(*(ends.tolist() for ends in ends_of_links(links, n_players)), strict=True):
        neighbours[i] |= 1 << j
        neighbours[j] |= 1 << i
    return np.array(neighbours, np.int64)


@cache
def _weights(n_players: int) -> tuple[FloatMatrix, FloatMatrix]:
    """Return both weights of the formula for all sizes c, b with c + b ≤ n."""
    inside = np.zeros((n_players + 1, n_players + 1))
    outside = np.zeros((n_players + 1, n_players + 1))
    for c in range(1, n_players + 1):
        for b in range(n_players + 1 - c):
            inside[c, b] = factorial(c - 1) * factorial(b) / factorial(c + b)
            if b:
                outside[c, b] = factorial(c) * factorial(b - 1) / factorial(c + b)
    inside.flags.writeable = outside.flags.writeable = False
    return inside, outside
