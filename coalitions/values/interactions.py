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
from math import comb
from typing import Literal, Unpack

import numpy as np

from coalitions.checks import Seed, generator_of, whole_number
from coalitions.enumeration import coalition_sizes, value_table
from coalitions.errors import BudgetError, InvalidInputError, UnknownNameError
from coalitions.game import BoolMatrix, FloatVector, Game, players_of
from coalitions.runtime import one_blas_thread
from coalitions.values.budget import (
    PORTFOLIO_BUDGET,
    Choice,
    Concept,
    Evaluator,
    Sampling,
    checked_budget,
)
from coalitions.values.designs import is_fitted
from coalitions.values.estimate import Estimate, Interactions
from coalitions.values.estimator import INTERACTION_ESTIMATORS, PAIR_ESTIMATORS
from coalitions.values.exact import expected_contributions, indices_of_table
from coalitions.values.interaction_indices import (
    INDICES,
    OTHER_NAMES,
    Index,
    check_number,
    coalitions_of_size,
)

MOST_WEIGHTS = 100_000_000
"""Pairs times evaluations up to which a portfolio takes seconds."""

PairIndex = Literal["shapley", "banzhaf"]


@dataclass(frozen=True, eq=False)
class PairEstimate(Estimate):
    """Interactions of all pairs with their errors: `values` and `stderr` are [n, n]."""


def interactions(
    game: Game,
    index: str = "k-SII",
    order: int = 2,
    *,
    method: str = "auto",
    budget: int | None = None,
    seed: Seed = 0,
    **sampling: Unpack[Sampling],
) -> Interactions:
    """Return an interaction index of all coalitions of up to `order` players.

    Parameters
    ----------
    game
        Any game.
    index
        A name from `coalitions.INDICES`, as shapiq has them: ``"SII"``, ``"k-SII"``, ``"STII"``,
        ``"FSII"``, ``"BII"``, ``"FBII"``, ``"CHII"``, ``"Moebius"`` or ``"Co-Moebius"``.
    order
        The size of the largest coalitions.
    method
        ``"auto"``, or a name from `coalitions.INTERACTION_ESTIMATORS`. ``"auto"``: exact if the
        budget covers all coalitions that count or the game has a table, else portfolio.
    budget
        Most coalitions to evaluate; as for `shapley`, but at least 4 n², if there is none.
    seed, **sampling
        As for `banzhaf`.

    Examples
    --------
    >>> from coalitions import TableGame
    >>> glove = TableGame([0, 0, 0, 1, 0, 1, 0, 1])
    >>> found = interactions(glove, "STII", order=2)
    >>> {players: round(value, 3) for players, value in found.mapping.items() if value}
    {(0, 1): 0.667, (0, 2): 0.667, (1, 2): -0.333}
    """
    n = players_of(game)
    asked = _checked_index(index, order, n)
    concept = Concept(
        {name: partial(INTERACTION_ESTIMATORS[name], asked) for name in INTERACTION_ESTIMATORS},
        "interactions",
        partial(_best_for_all, asked),
        least=lambda n_players: 4 * n_players * n_players,
        what=" for interactions",
    )
    found = concept.answer(game, Estimate, method, budget, seed, **sampling)
    coalitions = [
        tuple(row) for size in asked.sizes() for row in coalitions_of_size(n, size).tolist()
    ]
    return Interactions(
        index=OTHER_NAMES.get(index, index),
        order=asked.order,
        n_players=n,
        labels=found.labels,
        coalitions=tuple(coalitions),
        values=found.values,
        stderr=found.stderr,
        evaluations=found.evaluations,
        method=found.method,
        reason=found.reason,
        degrees_of_freedom=found.degrees_of_freedom,
        stopped=found.stopped,
    )


def interaction_indices(
    game: Game, index: str = "shapley", order: int | None = None
) -> FloatVector:
    r"""Return an interaction index of every coalition S, indexed by its bits [2^n].

    The index is an integral over the bias p of the coin by which everybody else joins, see
    `coalitions.values.interaction_indices`; Gauss–Legendre quadrature gives it without error. This
    takes n 2^n operations for each of about n/2 nodes; one node is enough for Banzhaf and Möbius.

    The Shapley and Banzhaf indices of single players are their values.

    Parameters
    ----------
    game
        Any game of up to about 20 players.
    index
        ``"shapley"``, ``"banzhaf"``, or another name from `coalitions.INDICES`.
    order
        The size of the largest coalitions; larger ones get 0. All, if there is none.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> both_needed = TableGame([0, 0, 0, 1])
    >>> interaction_indices(both_needed, "shapley")[1:]
    array([0.5, 0.5, 1. ])
    """
    n = players_of(game)
    asked = _checked_index(index, n if order is None else order, n)
    result = np.zeros(1 << n)
    table = value_table(game)
    for size, values in indices_of_table(table, asked).items():
        result[(1 << coalitions_of_size(n, size)).sum(axis=1)] = values
    if asked.least > 0:
        result[0] = table[0] if asked.efficient else _mean_value(table, asked)
    return result


def interaction(
    game: Game,
    coalitions: Iterable[Iterable[int]],
    index: PairIndex = "shapley",
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
    _check_pair_index(index)
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
    index: PairIndex = "shapley",
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
        that of a graph; else portfolio. If that would take long: stratified or regression if there
        are two evaluations for each coefficient of a model of degree two; else chains or msr.
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
    _check_pair_index(index)
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


def _checked_index(index: object, order: object, n_players: int) -> Index:
    """Return the index that a name and an order stand for."""
    if not isinstance(index, str):
        raise InvalidInputError(f"the index is {index!r}; it must be a name, {', '.join(INDICES)}")
    asked = INDICES[OTHER_NAMES.get(index, index)](whole_number(order, "the order", 1))
    if asked.order > n_players:
        raise InvalidInputError(
            f"the order is {asked.order}; there are only {n_players} players to interact"
        )
    check_number(asked, n_players)
    return asked


def _mean_value(table: FloatVector, index: Index) -> float:
    """Return the value of the coalition that everybody joins by a coin of the index."""
    points, weights = index.measure(0, len(table).bit_length() - 1)
    rest = table - table[0]
    means = [float(expected_contributions(rest, point)[0]) for point in points.tolist()]
    return float(table[0] + weights @ means)


def _best_for_all(index: Index, n_players: int, budget: int) -> Choice:
    needed = INTERACTION_ESTIMATORS["exact"](index).minimum_budget(n_players)
    if needed <= budget:
        return Choice("exact", f"the index depends on {needed} coalitions only, within the budget")
    return Choice("portfolio", f"{needed} coalitions are more than the budget of {budget}")


def _check_pair_index(index: str) -> None:
    if index not in ("shapley", "banzhaf"):
        raise UnknownNameError(
            f"there is no interaction index named {index!r}; there are: banzhaf, shapley"
        )


def _best_sampler(index: PairIndex, n_players: int, budget: int) -> Choice:
    if budget <= PORTFOLIO_BUDGET and comb(n_players, 2) * budget <= MOST_WEIGHTS:
        return Choice("portfolio", f"2^{n_players} coalitions are more than the budget of {budget}")
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


def _cubes(
    rng: np.random.Generator, n_players: int, coalition: list[int], index: PairIndex, n_draws: int
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
