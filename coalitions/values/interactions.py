r"""Interaction indices: what players are worth together beyond what they are worth apart.

The joint contribution of S to T, :math:`\Delta_S v(T) = \sum_{L \subseteq S} (-1)^{|S|-|L|}
v(T \cup L)`, is averaged over the T without S. The Shapley index weighs all sizes of T alike, the
Banzhaf index all T alike [Grabisch1999]_.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal, Unpack

import numpy as np

from coalitions.checks import Seed, generator_of
from coalitions.enumeration import value_table
from coalitions.errors import BudgetError, InvalidInputError, UnknownNameError
from coalitions.game import BoolMatrix, FloatVector, Game, players_of
from coalitions.one_thread import one_blas_thread
from coalitions.sampling.degree_two import is_fitted
from coalitions.sampling.estimator import PAIR_ESTIMATORS, Estimate
from coalitions.sampling.evaluator import Evaluator
from coalitions.subset_sums import coalition_sizes
from coalitions.values.door import Choice, Concept, Sampling, checked_budget

Index = Literal["shapley", "banzhaf"]


@dataclass(frozen=True, eq=False)
class PairEstimate(Estimate):
    """Interactions of all pairs with their errors: `values` and `stderr` are [n, n]."""


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
    **sampling: Unpack[Sampling],
) -> PairEstimate:
    r"""Return the interaction index of every pair of players.

    Parameters
    ----------
    game
        Any game.
    index
        ``"shapley"`` or ``"banzhaf"``.
    method
        ``"auto"``, or a name from `coalitions.PAIR_ESTIMATORS`; their classes say what each does
        and for which index. ``"auto"``: exact if the budget allows or the game has a table or is
        that of a graph; else stratified or regression if there are two evaluations for each
        coefficient of a model of degree two; else chains or msr.
    budget
        Most coalitions to evaluate; as for `shapley`, but at least 4 n², if there is none.
    seed, **sampling
        As for `banzhaf`.

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
    if players_of(game) == 1:
        zero = np.zeros((1, 1))
        return PairEstimate(zero, zero, 0, "exact", "there is no pair")
    concept = Concept(
        {
            name: partial(PAIR_ESTIMATORS[name], index)
            for name in PAIR_ESTIMATORS
            if index in PAIR_ESTIMATORS[name].indices
        },
        "pair_interactions",
        partial(_best_sampler, index),
        least=lambda n_players: 4 * n_players * n_players,
        what=f" for the {index} interaction index",
    )
    found = concept.answer(game, PairEstimate, method, budget, seed, **sampling)
    if found.method != "exact":
        for matrix in (found.values, found.stderr):
            np.fill_diagonal(matrix, 0.0)
    return found


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


def _best_sampler(index: Index, n_players: int, budget: int) -> Choice:
    if is_fitted(n_players, budget):
        return Choice(
            "stratified" if index == "shapley" else "regression",
            "the budget is twice the coefficients of a model of degree two, or more",
        )
    fallback = "msr"
    if index == "shapley":
        chained = PAIR_ESTIMATORS["chains"](index).minimum_budget(n_players) <= budget
        fallback = "chains" if chained else "stratified"
    return Choice(fallback, "a model of degree two is too large or beyond the budget")


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
