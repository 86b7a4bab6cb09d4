r"""Interaction indices: what players are worth together beyond what they are worth apart.

The joint contribution of S to T, :math:`\Delta_S v(T) = \sum_{L \subseteq S} (-1)^{|S|-|L|}
v(T \cup L)`, is averaged over the T without S. The Shapley index weighs all sizes of T alike, the
Banzhaf index all T alike (Grabisch and Roubens 1999, Eqs. 4 and 6).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import comb
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coalitions._coins import fair_coalitions, least_squares
from coalitions._subsets import coalition_sizes, sums_with_pair, sums_with_player
from coalitions.enumeration import value_table
from coalitions.errors import BudgetError, InvalidInputError, UnknownNameError
from coalitions.estimator import Sampled
from coalitions.evaluator import Evaluator
from coalitions.game import BoolMatrix, FloatMatrix, FloatVector, Game, table_of
from coalitions.games.induced_subgraph import InducedSubgraphGame
from coalitions.shapley_value import default_budget

Index = Literal["shapley", "banzhaf"]
IntMatrix: TypeAlias = NDArray[np.int64]

FITTED_PLAYERS = 48
"""Up to this many players "auto" fits a model of degree two: 1177 coefficients."""


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
        nodes, weights = np.polynomial.legendre.leggauss(game.n_players // 2 + 1)
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
    seed: int = 0,
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
    n = game.n_players
    asked = [sorted({int(player) for player in coalition}) for coalition in coalitions]
    for coalition in asked:
        if not coalition or coalition[0] < 0 or coalition[-1] >= n:
            raise InvalidInputError(f"{coalition} is not a coalition of the players 0 … {n - 1}")
    cost = sum(1 << len(coalition) for coalition in asked)
    n_draws = budget // max(1, cost)
    if n_draws < 2:
        raise BudgetError(f"these interactions need {2 * cost} evaluations or more, not {budget}")
    rng = np.random.default_rng(seed)
    batches = [_cubes(rng, n, coalition, index, n_draws) for coalition in asked]
    evaluator = Evaluator(game, budget)
    values = evaluator(np.concatenate([rows for rows, _ in batches]))
    means, errors, start = [], [], 0
    for rows, signs in batches:
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
    seed: int | np.random.Generator = 0,
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
        ``"chains"`` (Shapley): in a random order of the players, two that follow each other meet
        a T of uniform size, so each order gives n − 1 joint contributions for 2 n − 2 evaluations.
        Unbiased. Orders come in rounds of n in which every pair meets twice; the standard errors
        are those of the means over rounds.
        ``"msr"`` (Banzhaf): maximum sample reuse, the mean over sampled coalitions of
        :math:`4 ε_i ε_j v(S)` with :math:`ε = ±1` for in and out. Unbiased but for the mean value,
        which is subtracted first.
        ``"regression"`` (Banzhaf): the interactions are the coefficients of :math:`x_i x_j` in the
        best approximation of v of degree two (Hammer and Holzman 1992), fitted by least squares.
        What single players and pairs explain is no noise here, so it needs the fewest samples;
        a 2-additive game is fitted without error. Its bias is of the order of 1 / budget.
        ``"auto"``: exact if the budget allows or the game has a table; else chains, or regression
        if there are two samples for each coefficient, or msr.
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
    n = game.n_players
    if budget is None:
        budget = 1 << n if method == "exact" else max(default_budget(n), 4 * n * n)
    if budget < 1:
        raise BudgetError(f"the budget is {budget}; there must be something to evaluate")
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
    sample = {"chains": _chains, "msr": _maximum_sample_reuse, "regression": _regression}[method]
    sampled = sample(evaluator, np.random.default_rng(seed))
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
    result: FloatMatrix = pairs - single[:, None] - single[None, :] + none[sizes] @ values
    np.fill_diagonal(result, 0.0)
    return result


def _check_index(index: str) -> None:
    if index not in ("shapley", "banzhaf"):
        raise UnknownNameError(
            f"there is no interaction index named {index!r}; there are: banzhaf, shapley"
        )


def _choose(game: Game, index: Index, method: str, budget: int) -> tuple[str, str]:
    """Return the method and why."""
    n = game.n_players
    known = ("exact", "chains") if index == "shapley" else ("exact", "msr", "regression")
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
    if 1 << n <= budget:
        return "exact", f"all 2^{n} = {1 << n} coalitions fit in the budget of {budget}"
    if index == "shapley":
        return "chains", "the budget does not cover all coalitions"
    if n <= FITTED_PLAYERS and budget >= 2 * _n_coefficients(n):
        return "regression", f"the budget is twice the {_n_coefficients(n)} coefficients or more"
    return "msr", f"a fit of {_n_coefficients(n)} coefficients is too large or beyond the budget"


def _n_coefficients(n_players: int) -> int:
    return 1 + n_players * (n_players + 1) // 2


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


def _chains(game: Evaluator, rng: np.random.Generator) -> Sampled:
    n = game.n_players
    # An order needs the prefixes of 1 … n − 1 players and the n − 1 prefixes of 2 … n players
    # without the last but one; ∅ and N are the same for all orders.
    n_rounds = (game.budget - 2) // (n * (2 * n - 2))
    if n_rounds < 2:
        raise BudgetError(
            f"chains need {2 * n * (2 * n - 2) + 2} evaluations or more for {n} players, not"
            f" {game.budget}"
        )
    order = _neighbourly_orders(n, n_rounds, rng)
    n_orders = len(order)
    rank = np.argsort(order, axis=1)
    prefixes = rank[:, None, :] < np.arange(n + 1)[:, None]  # [orders, n + 1, n]
    skipping = prefixes[:, 2:].copy()
    skipping[np.arange(n_orders)[:, None], np.arange(n - 1), order[:, :-1]] = False
    values = game(np.concatenate([prefixes.reshape(-1, n), skipping.reshape(-1, n)]))
    along = values[: n_orders * (n + 1)].reshape(n_orders, n + 1)
    beside = values[n_orders * (n + 1) :].reshape(n_orders, n - 1)
    joint = (along[:, 2:] - along[:, 1:-1] - beside + along[:, :-2]).reshape(n_rounds, -1)
    i = order[:, :-1].reshape(n_rounds, -1)
    j = order[:, 1:].reshape(n_rounds, -1)
    # The two draws of a pair in a round depend on each other, rounds do not: a round is one draw.
    draws = np.zeros((n_rounds, n, n))
    each = np.broadcast_to(np.arange(n_rounds)[:, None], i.shape)
    np.add.at(draws, (each, i, j), joint / 2)
    draws += draws.transpose(0, 2, 1)
    stderr = draws.std(axis=0, ddof=1) / np.sqrt(n_rounds)
    return Sampled(draws.mean(axis=0), stderr, n_rounds - 1)


def _neighbourly_orders(n_players: int, n_rounds: int, rng: np.random.Generator) -> IntMatrix:
    """Return rounds of n random orders in which every pair stands side by side exactly twice.

    The zigzag 0, n−1, 1, n−2, … and its n rotations modulo n have that property (a construction
    of Walecki); renaming the players at random makes every single order uniform.
    """
    zigzag = np.empty(n_players, np.int64)
    zigzag[::2] = np.arange((n_players + 1) // 2)
    zigzag[1::2] = np.arange(n_players - 1, (n_players - 1) // 2, -1)
    rotations = (zigzag + np.arange(n_players)[:, None]) % n_players
    names = rng.permuted(np.tile(np.arange(n_players), (n_rounds, 1)), axis=1)
    return names[:, rotations].reshape(-1, n_players)


def _maximum_sample_reuse(game: Evaluator, rng: np.random.Generator) -> Sampled:
    if game.budget < 8:
        raise BudgetError(f"msr needs a budget of at least 8 evaluations, not {game.budget}")
    coalitions = fair_coalitions(game.budget, game.n_players, rng)
    values = game(coalitions)
    centred = values - values.mean()
    signs = np.where(coalitions, 1.0, -1.0)
    m = len(values)
    mean = 4 * (signs.T * centred) @ signs / m
    # (4 ε_i ε_j v)² does not depend on the pair: only the mean that is subtracted does.
    square = 16 * float(centred @ centred) / m
    stderr = np.sqrt(np.maximum(0.0, square - mean**2) / (m - 1))
    return Sampled(mean, stderr, m - 1)


def _regression(game: Evaluator, rng: np.random.Generator) -> Sampled:
    n = game.n_players
    coalitions = fair_coalitions(game.budget, n, rng)
    values = game(coalitions)
    signs = np.where(coalitions, 1.0, -1.0)
    i, j = np.triu_indices(n, 1)
    design = np.column_stack([np.ones(len(values)), signs, signs[:, i] * signs[:, j]])
    coefficients, errors, freedom = least_squares(design, values)
    mean, stderr = np.zeros((n, n)), np.zeros((n, n))
    # A step from out (−1) to in (+1) of both players is four times the coefficient.
    mean[i, j] = mean[j, i] = 4 * coefficients[1 + n :]
    stderr[i, j] = stderr[j, i] = 4 * errors[1 + n :]
    return Sampled(mean, stderr, freedom)
