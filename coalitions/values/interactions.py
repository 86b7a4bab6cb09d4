r"""Interaction indices: what players are worth together beyond what they are worth apart.

The joint contribution of S to T, :math:`\Delta_S v(T) = \sum_{L \subseteq S} (-1)^{|S|-|L|}
v(T \cup L)`, is averaged over the T without S. The Shapley index weighs all sizes of T alike, the
Banzhaf index all T alike [Grabisch1999]_.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from math import comb
from typing import Literal

import numpy as np

from coalitions.checks import Seed, generator_of
from coalitions.enumeration import value_table
from coalitions.errors import BudgetError, InvalidInputError, UnknownNameError
from coalitions.game import BoolMatrix, FloatMatrix, FloatVector, Game, players_of, table_of
from coalitions.games.induced_subgraph import InducedSubgraphGame
from coalitions.one_thread import one_blas_thread
from coalitions.sampling.evaluator import Evaluator
from coalitions.subset_sums import coalition_sizes, sums_with_pair, sums_with_player
from coalitions.values._pair_samplers import (
    FITTED_PLAYERS,
    chains,
    chains_budget,
    maximum_sample_reuse,
    n_coefficients,
    regression,
    stratified,
)
from coalitions.values.shapley import checked_budget, default_budget

Index = Literal["shapley", "banzhaf"]


@dataclass(frozen=True, eq=False)
class PairEstimate:
    """Interactions of all pairs with their errors, and what they cost.

    Attributes
    ----------
    values
        Interaction of each pair [n, n], symmetric with a zero diagonal.
    stderr
        Standard errors [n, n], zero if the values are exact.
    evaluations
        How many distinct coalitions were evaluated.
    method
        Name of the method that answered.
    reason
        Why this method was taken.
    degrees_of_freedom
        Of the standard errors: intervals are Student's.
    """

    values: FloatMatrix
    stderr: FloatMatrix
    evaluations: int
    method: str
    reason: str = ""
    degrees_of_freedom: float = np.inf


def interaction_indices(game: Game, index: Index = "shapley") -> FloatVector:
    r"""Return the interaction index of every coalition S, indexed by its bits [2^n].

    With everybody else joining by the toss of a coin of bias p, the expected joint contribution of
    S is a product transform of the table: each player replaces the two halves (a, b) of the table
    by :math:`((1-p) a + p b,\; b - a)`. The Banzhaf index is that at p = ½; the Shapley index is
    the integral over p from 0 to 1 of a polynomial of degree at most n, which Gauss–Legendre
    quadrature with ⌈(n + 1)/2⌉ nodes gives without error. This takes n 2^n operations for each
    node.

    The entries of single players are their Shapley or Banzhaf values.

    Parameters
    ----------
    game
        Any game of up to about 20 players.
    index
        ``"shapley"`` or ``"banzhaf"``.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> both_needed = TableGame([0, 0, 0, 1])
    >>> interaction_indices(both_needed, "shapley")[1:]
    array([0.5, 0.5, 1. ])
    """
    _check_index(index)
    table = value_table(game)
    empty = table[0]
    values = table - empty
    if index == "banzhaf":
        result = _expected_contributions(values, 0.5)
    else:
        nodes, weights = np.polynomial.legendre.leggauss(players_of(game) // 2 + 1)
        result = np.zeros(len(values))
        for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True):
            result += weight / 2 * _expected_contributions(values, (node + 1) / 2)
    result[0] += empty  # the empty coalition's index is the mean value itself
    return result


def interaction(
    game: Game,
    coalitions: Iterable[Iterable[int]],
    index: Index = "shapley",
    *,
    budget: int,
    seed: Seed = 0,
) -> tuple[FloatVector, FloatVector]:
    """Return sampled interaction indices of some coalitions of any size, and standard errors.

    For each coalition S, sets T without S are drawn as the index weighs them, and the joint
    contribution of S to each is evaluated: 2^|S| values for an unbiased draw. The budget is
    shared out so that every coalition gets equally many draws.

    Parameters
    ----------
    game
        Any game.
    coalitions
        The coalitions S to look at.
    index
        ``"shapley"`` or ``"banzhaf"``.
    budget
        Most coalitions to evaluate; there must be enough for two draws each.
    seed
        Source of all randomness.
    """
    _check_index(index)
    n = players_of(game)
    budget = checked_budget(budget, n)
    asked = [_checked_coalition(coalition, n) for coalition in coalitions]
    if not asked:
        return np.empty(0), np.empty(0)
    cost = sum(1 << len(coalition) for coalition in asked)
    n_draws = budget // cost
    if n_draws < 2:
        raise BudgetError(f"these interactions need {2 * cost} evaluations or more, not {budget}")
    rng = generator_of(seed)
    batches = [_cubes(rng, n, coalition, index, n_draws) for coalition in asked]
    evaluator = Evaluator(game, budget)
    values = evaluator(np.concatenate([rows for rows, _ in batches]))
    means, errors, start = [], [], 0
    for rows, signs in batches:
        with one_blas_thread():
            part = values[start : start + len(rows)].reshape(n_draws, -1) @ signs
        means.append(part.mean())
        errors.append(part.std(ddof=1) / np.sqrt(n_draws))
        start += len(rows)
    return np.array(means), np.array(errors)


def pairwise_interactions(
    game: Game,
    index: Index = "shapley",
    *,
    method: str = "auto",
    budget: int | None = None,
    seed: Seed = 0,
) -> PairEstimate:
    r"""Return the interaction index of every pair of players.

    Parameters
    ----------
    game
        Any game.
    index
        ``"shapley"`` or ``"banzhaf"``.
    method
        ``"exact"``: all 2^n coalitions, O(2^n) operations for all pairs together.
        ``"stratified"`` (Shapley): means over the coalitions of each size with both players, one
        or none, of what a fitted model of sizes, players and pairs leaves over; every evaluation
        counts for every pair. A 2-additive game is found without error once pairs are fitted. Its
        bias is of the order of 1 / budget.
        ``"chains"`` (Shapley): in a random order of the players, two that follow each other meet
        a T of uniform size, so each order gives n − 1 joint contributions for 2 n − 2 evaluations.
        Unbiased. Orders come in rounds of n in which every pair meets twice; the standard errors
        are those of the means over rounds.
        ``"msr"`` (Banzhaf): maximum sample reuse, the mean over sampled coalitions of
        :math:`4 ε_i ε_j v(S)` with :math:`ε = ±1` for in and out. Unbiased but for the mean value,
        which is subtracted first.
        ``"regression"`` (Banzhaf): the interactions are the coefficients of :math:`x_i x_j` in the
        best approximation of v of degree two [Hammer1992]_, fitted by least squares.
        What single players and pairs explain is no noise here, so it needs the fewest samples;
        a 2-additive game is fitted without error. Its bias is of the order of 1 / budget.
        ``"auto"``: exact if the budget allows or the game has a table or is that of a graph; else
        stratified or regression if there are two evaluations for each coefficient of a model of
        degree two; else chains or msr.
    budget
        Most coalitions to evaluate; 2^n up to 16 players and max(100 n, 4 n²) above if there is
        none.
    seed
        Source of all randomness.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> glove = TableGame([0, 0, 0, 1, 0, 1, 0, 1])
    >>> pairwise_interactions(glove).values
    array([[ 0. ,  0.5,  0.5],
           [ 0.5,  0. , -0.5],
           [ 0.5, -0.5,  0. ]])
    """
    _check_index(index)
    n = players_of(game)
    if budget is None:
        budget = 1 << n if method == "exact" else max(default_budget(n), 4 * n * n)
    budget = checked_budget(budget, n)
    method, reason = _choose(game, index, method, budget)
    if method == "exact":
        if isinstance(game, InducedSubgraphGame):
            return PairEstimate(game.graph.matrix, np.zeros((n, n)), 0, method, reason)
        if 1 << n > budget and table_of(game) is None:
            raise BudgetError(f"exact values of {n} players need 2^{n} evaluations, not {budget}")
        values = pairs_of_table(value_table(game), index)
        return PairEstimate(values, np.zeros((n, n)), 1 << n, method, reason)
    if n == 1:
        return PairEstimate(np.zeros((1, 1)), np.zeros((1, 1)), 0, method, "there is no pair")
    evaluator = Evaluator(game, budget)
    sample = SAMPLERS[index][method]
    sampled = sample(evaluator, generator_of(seed))
    for matrix in (sampled.values, sampled.stderr):
        np.fill_diagonal(matrix, 0.0)
    return PairEstimate(
        sampled.values,
        sampled.stderr,
        evaluator.evaluations,
        method,
        reason,
        sampled.degrees_of_freedom,
    )


def pairs_of_table(table: FloatVector, index: Index) -> FloatMatrix:
    r"""Return the interactions of all pairs from the 2^n values, in O(2^n) operations.

    With weight :math:`w_t` of a T of t players, a coalition U of u players counts
    :math:`w_{u-2}` with both players, :math:`-w_{u-1}` with one and :math:`w_u` with none, so

    .. math:: I_{ij} = \sum_{U \supseteq ij} (w_{u-2} + 2 w_{u-1} + w_u) v(U)
        - \Big(\sum_{U \ni i} + \sum_{U \ni j}\Big) (w_{u-1} + w_u) v(U) + \sum_U w_u v(U).
    """
    n = len(table).bit_length() - 1
    if n < 2:
        return np.zeros((n, n))
    if index == "banzhaf":
        w = np.full(n - 1, 0.5 ** (n - 2))
    else:
        w = np.array([1 / ((n - 1) * comb(n - 2, t)) for t in range(n - 1)])
    none, one, both = np.append(w, [0, 0]), np.array([0, *w, 0]), np.append([0, 0], w)
    sizes = coalition_sizes(n)
    values = table - table[0]
    single = sums_with_player((one + none)[sizes] * values)
    pairs = sums_with_pair((both + 2 * one + none)[sizes] * values)
    result: FloatMatrix = pairs - single[:, None] - single[None, :] + (none[sizes] * values).sum()
    np.fill_diagonal(result, 0.0)
    return result


def _checked_coalition(coalition: object, n_players: int) -> list[int]:
    """Return the different players of a coalition in ascending order."""
    try:
        players = sorted({operator.index(player) for player in coalition})  # type: ignore[attr-defined]
    except TypeError:
        players = []
    if not players or players[0] < 0 or players[-1] >= n_players:
        raise InvalidInputError(
            f"{coalition!r} is not a coalition of some of the players 0 … {n_players - 1}"
        )
    return players


def _check_index(index: str) -> None:
    if index not in ("shapley", "banzhaf"):
        raise UnknownNameError(
            f"there is no interaction index named {index!r}; there are: banzhaf, shapley"
        )


SAMPLERS = {
    "shapley": {"stratified": stratified, "chains": chains},
    "banzhaf": {"regression": regression, "msr": maximum_sample_reuse},
}


def _choose(game: Game, index: Index, method: str, budget: int) -> tuple[str, str]:
    """Return the method and why."""
    n = game.n_players
    known = ("exact", *SAMPLERS[index])
    if method in known:
        return method, "you asked for it"
    if method != "auto":
        raise UnknownNameError(
            f"there is no method named {method!r} for the {index} interaction index; there are:"
            f" auto, {', '.join(known)}"
        )
    if isinstance(game, InducedSubgraphGame):
        return "exact", "the synergies are the interactions"
    if table_of(game) is not None:
        return "exact", f"the game has its table of 2^{n} values"
    if n < 63 and 1 << n <= budget:
        return "exact", f"all 2^{n} = {1 << n} coalitions fit in the budget of {budget}"
    fits = n <= FITTED_PLAYERS and budget >= 2 * (n + n_coefficients(n))
    if fits:
        best = "stratified" if index == "shapley" else "regression"
        return best, "the budget is twice the coefficients of a model of degree two, or more"
    fallback = "msr"
    if index == "shapley":
        fallback = "chains" if budget >= chains_budget(n) else "stratified"
    return fallback, "a model of degree two is too large or beyond the budget"


def _expected_contributions(table: FloatVector, p: float) -> FloatVector:
    """Return the expected joint contribution of every S if others join with probability p."""
    result = table.copy()
    half = 1
    while half < len(table):
        blocks = result.reshape(-1, 2, half)
        difference = blocks[:, 1] - blocks[:, 0]
        blocks[:, 0] += p * difference
        blocks[:, 1] = difference
        half *= 2
    return result


def _cubes(
    rng: np.random.Generator, n_players: int, coalition: list[int], index: Index, n_draws: int
) -> tuple[BoolMatrix, FloatVector]:
    """Return T ∪ L for drawn sets T and all L ⊆ S, and the sign of each L."""
    s = len(coalition)
    others = np.delete(np.arange(n_players), coalition)
    if index == "banzhaf":
        chosen = rng.random((n_draws, len(others))) < 0.5
    else:
        # A uniform size, then a uniform set of that size: the ranks below it.
        size = rng.integers(0, len(others) + 1, n_draws)
        rank = rng.permuted(np.tile(np.arange(len(others)), (n_draws, 1)), axis=1)
        chosen = rank < size[:, None]
    rows = np.zeros((n_draws, 1 << s, n_players), np.bool_)
    rows[:, :, others] = chosen[:, None, :]
    masks = np.arange(1 << s)
    rows[:, :, coalition] = (masks[:, None] >> np.arange(s)) & 1
    signs = np.where((s - coalition_sizes(s).astype(np.int64)) % 2, -1.0, 1.0)
    return rows.reshape(-1, n_players), signs
