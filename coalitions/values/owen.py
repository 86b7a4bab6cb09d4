"""Values under a given structure: shares inside each coalition, and the Owen value."""

from __future__ import annotations

from math import comb

import numpy as np

from coalitions.enumeration import ROWS_PER_CALL, all_coalitions, value_table
from coalitions.errors import InvalidInputError
from coalitions.estimators.exact import exact_of_table
from coalitions.game import BoolMatrix, FloatVector, Game, evaluate, players_of
from coalitions.games.induced_subgraph import InducedSubgraphGame
from coalitions.games.wrappers import restricted
from coalitions.graph import SynergyGraph
from coalitions.one_thread import one_blas_thread
from coalitions.structure import CoalitionStructure, check_structure
from coalitions.subset_sums import coalition_sizes


def payoffs(game: Game | SynergyGraph, structure: CoalitionStructure) -> FloatVector:
    r"""Return what each player gets inside their coalition: the Aumann–Drèze value [n].

    Each coalition divides its own value by the Shapley value of the game among its members
    [Aumann1974]_. On a graph that is half of each synergy inside the coalition,

    .. math:: \phi_i = \tfrac12 \sum_{j \in C(i)} s_{ij}.

    The shares of coalition C add up to v(C) − v(∅).

    Parameters
    ----------
    game
        A graph, or any game whose coalitions in the structure have up to about 20 players.
    structure
        Who is with whom.

    Examples
    --------
    >>> graph = SynergyGraph([[0, 2, -1], [2, 0, 0], [-1, 0, 0]])
    >>> payoffs(graph, CoalitionStructure([[0, 1], [2]]))
    array([1., 1., 0.])
    """
    check_players(game, structure)
    if isinstance(game, InducedSubgraphGame):
        game = game.graph
    if isinstance(game, SynergyGraph):
        labels = structure.labels
        i, j, weight = game.edges
        inside = labels[i] == labels[j]
        both, half = np.concatenate([i[inside], j[inside]]), np.tile(weight[inside] / 2, 2)
        return np.bincount(both, half, game.n_players).astype(np.float64)
    shares = np.empty(structure.n_players)
    for block in structure:
        shares[list(block)] = exact_of_table(value_table(restricted(game, block)))
    return shares


def owen_value(game: Game, structure: CoalitionStructure) -> FloatVector:
    r"""Return the Owen value: coalitions bargain first, then their members [n].

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
        The a priori unions.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> majority = TableGame([0, 0, 0, 1, 0, 1, 1, 1])
    >>> owen_value(majority, CoalitionStructure([[0, 1], [2]]))
    array([0.5, 0.5, 0. ])
    """
    check_players(game, structure)
    n, m = structure.n_players, len(structure)
    membership = np.zeros((m, n), np.bool_)
    membership[structure.labels, np.arange(n)] = True
    companions = all_coalitions(m - 1)
    h = coalition_sizes(m - 1)
    chance = np.array([1 / (m * comb(m - 1, size)) for size in range(m)])[h]
    shares = np.empty(n)
    for number, block in enumerate(structure):
        others = companions.astype(np.int64) @ np.delete(membership, number, axis=0) > 0
        shares[list(block)] = exact_of_table(_inner_table(game, block, others, chance))
    return shares


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


def check_players(game: Game | SynergyGraph, structure: CoalitionStructure) -> None:
    """Raise if the structure is not one of the game's players."""
    check_structure(structure)
    n = game.n_players if isinstance(game, SynergyGraph) else players_of(game)
    if structure.n_players != n:
        raise InvalidInputError(f"the structure has {structure.n_players} players, the game {n}")


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
