"""Values under a given structure or graph: the Aumann–Drèze, Owen and Myerson values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import cache
from math import comb, factorial

import numpy as np

from coalitions.checks import GameLike, as_game, ends_of_links
from coalitions.enumeration import (
    ROWS_PER_CALL,
    all_coalitions,
    coalition_sizes,
    coalitions_of_masks,
    value_table,
)
from coalitions.errors import InvalidInputError
from coalitions.game import (
    BoolMatrix,
    FloatMatrix,
    FloatVector,
    Game,
    IntVector,
    evaluate,
    labels_of,
    players_of,
    table_of,
)
from coalitions.games.induced_subgraph import InducedSubgraphGame
from coalitions.games.wrappers import restricted
from coalitions.graph import SynergyGraph
from coalitions.runtime import one_blas_thread
from coalitions.structure import CoalitionStructure, Structured, as_structure
from coalitions.values.estimate import Estimate
from coalitions.values.exact import shapley_of_table

# ----------------------------------------------------------------------------------------
# A structure: shares inside each coalition, and the Owen value


def payoffs(game: GameLike, structure: Structured) -> Estimate:
    r"""Return what each player gets inside their coalition: the Aumann–Drèze value.

    Each coalition divides its own value by the Shapley value of the game among its members
    [Aumann1974]_. On a graph that is half of each synergy inside the coalition,

    .. math:: \phi_i = \tfrac12 \sum_{j \in C(i)} s_{ij}.

    The shares of coalition C add up to v(C) − v(∅).

    Parameters
    ----------
    game
        A graph, or any game whose coalitions in the structure have up to about 20 players.
    structure
        Who is with whom: a structure, a solution, or lists of players.

    Examples
    --------
    >>> graph = SynergyGraph([[0, 2, -1], [2, 0, 0], [-1, 0, 0]])
    >>> payoffs(graph, [[0, 1], [2]]).values
    array([1., 1., 0.])
    """
    game = as_game(game)
    structure = as_structure(structure, game)
    if isinstance(game, InducedSubgraphGame):
        shares = payoffs_on(game.graph, structure)
        return Estimate.exact(shares, labels_of(game), 0, "the game is that of a graph")
    asked = 1 + sum((1 << len(block)) - 1 for block in structure)
    return Estimate.exact(payoffs_on(game, structure), labels_of(game), asked, INSIDE)


INSIDE = "all coalitions inside those of the structure were looked at"


def payoffs_on(game: Game | SynergyGraph, structure: CoalitionStructure) -> FloatVector:
    """Return what `payoffs` does as an array [n]."""
    if isinstance(game, SynergyGraph):
        labels = structure.labels
        i, j, weight = game.edges
        inside = labels[i] == labels[j]
        both, half = np.concatenate([i[inside], j[inside]]), np.tile(weight[inside] / 2, 2)
        return np.bincount(both, half, game.n_players).astype(np.float64)
    shares = np.empty(structure.n_players)
    for block in structure:
        shares[list(block)] = shapley_of_table(value_table(restricted(game, block)))
    return shares


def owen(game: GameLike, structure: Structured) -> Estimate:
    r"""Return the Owen value: coalitions bargain first, then their members.

    With m coalitions, a the coalition of player i and :math:`Q_H` all members of the coalitions H,

    .. math:: \phi_i = \sum_{H \not\ni a} \sum_{S \subseteq B_a \setminus i}
        \frac{h!\,(m-h-1)!}{m!} \frac{s!\,(b-s-1)!}{b!} [v(Q_H \cup S \cup i) - v(Q_H \cup S)]

    [Owen1977]_. The sum over H makes a game among the members of a, whose Shapley value this is:
    :math:`\sum_a 2^{m-1+b_a}` evaluations, far fewer than 2^n. The shares add up to v(N) − v(∅).

    Parameters
    ----------
    game
        Any game.
    structure
        The a priori unions: a structure, a solution, or lists of players.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> majority = TableGame([0, 0, 0, 1, 0, 1, 1, 1])
    >>> owen(majority, [[0, 1], [2]]).values
    array([0.5, 0.5, 0. ])
    """
    game = as_game(game)
    structure = as_structure(structure, game)
    n, m = structure.n_players, len(structure)
    membership = np.zeros((m, n), np.bool_)
    membership[structure.labels, np.arange(n)] = True
    companions = all_coalitions(m - 1)
    h = coalition_sizes(m - 1)
    chance = np.array([1 / (m * comb(m - 1, size)) for size in range(m)])[h]
    shares = np.empty(n)
    for number, block in enumerate(structure):
        others = companions.astype(np.int64) @ np.delete(membership, number, axis=0) > 0
        shares[list(block)] = shapley_of_table(_inner_table(game, block, others, chance))
    # Unions of whole coalitions, and those with a part of one: nobody has asked for more.
    asked = (1 << m) + sum(((1 << len(block)) - 2) << (m - 1) for block in structure)
    reason = "all parts of each coalition were looked at beside all others"
    return Estimate.exact(shares, labels_of(game), asked, reason)


def potential_of_table(table: FloatVector) -> FloatVector:
    r"""Return the potential of every coalition [2^n], from which all subgames' values follow.

    .. math:: P(S) = \frac{v(S) - v(\emptyset) + \sum_{i \in S} P(S \setminus i)}{|S|}, \qquad
        \phi_i(S) = P(S) - P(S \setminus i)

    is the Shapley value of i in the game among S [Hart1989]_: n 2^n operations for
    the Shapley values of all 2^n subgames.
    """
    n = len(table).bit_length() - 1
    sizes = coalition_sizes(n)
    by_size = np.argsort(sizes, kind="stable")
    ends = np.cumsum(np.bincount(sizes, minlength=n + 1))
    potential = np.zeros(len(table))
    bits = 1 << np.arange(n)
    for size in range(1, n + 1):
        masks = by_size[ends[size - 1] : ends[size]]
        total = table[masks] - table[0]
        for bit in bits.tolist():
            inside = (masks & bit) > 0
            total[inside] += potential[masks[inside] ^ bit]
        potential[masks] = total / size
    return potential


def _inner_table(
    game: Game, block: tuple[int, ...], others: BoolMatrix, chance: FloatVector
) -> FloatVector:
    """Return the mean value of each part of a coalition over the companies it may be in."""
    parts = all_coalitions(len(block))
    table = np.empty(len(parts))
    step = max(1, ROWS_PER_CALL // len(others))
    for start in range(0, len(parts), step):
        chunk = parts[start : start + step]
        rows = np.repeat(others[None], len(chunk), axis=0)
        rows[:, :, list(block)] = chunk[:, None, :]
        values = evaluate(game, rows.reshape(-1, others.shape[1]))
        with one_blas_thread():
            table[start : start + step] = values.reshape(len(chunk), len(others)) @ chance
    return table


# ----------------------------------------------------------------------------------------
# A graph: only players that a path of members links can cooperate

MOST_CONNECTED = 1 << 24
"""A game that has to be asked is refused if there are more connected coalitions than this."""


def myerson(game: GameLike, links: SynergyGraph | Iterable[Iterable[Hashable]]) -> Estimate:
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
        Who talks to whom: pairs of players, by number or by name, or a graph whose weights are
        ignored. For a game without a table it may have up to 16 million connected coalitions.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> majority = TableGame([0, 0, 0, 1, 0, 1, 1, 1])
    >>> myerson(majority, [(0, 1), (1, 2)]).values.round(6).tolist()
    [0.166667, 0.666667, 0.166667]
    """
    from coalitions.values._connected import myerson_of_table, start

    game = as_game(game)
    n = players_of(game)
    neighbours = _neighbours(links, game)
    inside, outside = _weights(n)
    table = table_of(game)
    if table is not None:
        shares = np.asarray(myerson_of_table(table, neighbours, *start(n), inside, outside))
        return Estimate.exact(shares, labels_of(game), 1 << n, "the game has its table of values")
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
    return Estimate.exact(total, labels_of(game), count + 1, "all connected coalitions were asked")


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


def _neighbours(links: SynergyGraph | Iterable[Iterable[Hashable]], game: Game) -> IntVector:
    """Return the neighbours of each player as bits."""
    n_players = players_of(game)
    if n_players > 62:
        raise InvalidInputError(f"{n_players} players do not fit into the 62 bits of a mask")
    neighbours = [0] * n_players
    for i, j in zip(*(ends.tolist() for ends in ends_of_links(links, game)), strict=True):
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
