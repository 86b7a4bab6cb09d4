r"""Interaction indices: what players are worth together beyond what they are worth apart.

The joint contribution of S to T, :math:`\Delta_S v(T) = \sum_{L \subseteq S} (-1)^{|S|-|L|}
v(T \cup L)`, is averaged over the T without S. The Shapley index weighs all sizes of T alike, the
Banzhaf index all T alike [Grabisch1999]_.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import comb
from typing import Literal, Unpack

import numpy as np

from coalitions.checks import GameLike, Seed, as_game, generator_of, whole_number
from coalitions.enumeration import coalition_sizes
from coalitions.errors import BudgetError, InvalidInputError, shown, with_keywords
from coalitions.game import BoolMatrix, FloatVector, Game, labels_of, players_of
from coalitions.runtime import one_blas_thread
from coalitions.structure import numbering, roster
from coalitions.values.budget import (
    PORTFOLIO_BUDGET,
    Choice,
    Concept,
    Evaluator,
    Sampling,
    checked_budget,
    default_budget,
)
from coalitions.values.designs import is_fitted
from coalitions.values.estimate import Estimate, Interactions
from coalitions.values.estimator import INTERACTION_ESTIMATORS, PAIR_ESTIMATORS
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

PAIR_INDICES: dict[str, PairIndex] = {"SII": "shapley", "BII": "banzhaf"}
"""What the indices are called whose pairs can be sampled without all the others."""

DRAWS = "draws"
"""The method that looks at some coalitions only, each by draws of its own."""


@with_keywords(*Sampling.__annotations__)
def interactions(
    game: GameLike,
    index: str = "k-SII",
    order: int = 2,
    coalitions: Iterable[Iterable[Hashable]] | Literal["pairs"] | None = None,
    *,
    method: str = "auto",
    budget: int | None = None,
    seed: Seed = 0,
    **sampling: Unpack[Sampling],
) -> Interactions:
    """Return an interaction index of all coalitions of up to `order` players, or of some.

    Parameters
    ----------
    game
        Any game.
    index
        A name from `coalitions.INDICES`, as shapiq has them: ``"SII"``, ``"k-SII"``, ``"STII"``,
        ``"FSII"``, ``"BII"``, ``"FBII"``, ``"CHII"``, ``"Moebius"`` or ``"Co-Moebius"``. Also
        ``"shapley"`` for SII and ``"banzhaf"`` for BII.
    order
        The size of the largest coalitions.
    coalitions
        Those to look at, players by number or by name, or ``"pairs"`` for all pairs; all if None.
        They may be larger than `order`.
    method
        ``"auto"``, or a name from `coalitions.INTERACTION_ESTIMATORS`. ``"auto"``: exact if the
        budget covers all coalitions that count or the game has a table, else portfolio.
        SII and BII have more methods, which sample only what is asked for. For pairs these are
        those of `coalitions.PAIR_ESTIMATORS`; naming one asks for pairs. ``"auto"`` takes one where
        a portfolio would take long: stratified or regression if there are two evaluations for each
        coefficient of a model of degree two; else chains or msr. For a list of coalitions it is
        ``"draws"``: for each coalition S, sets T without S are drawn as the index weighs them, and
        2^|S| values say what S adds to each. All coalitions get equally many draws.
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
    >>> interactions(glove, "SII", coalitions="pairs").matrix
    array([[ 0. ,  0.5,  0.5],
           [ 0.5,  0. , -0.5],
           [ 0.5, -0.5,  0. ]])
    """
    game = as_game(game)
    n = players_of(game)
    known = OTHER_NAMES.get(index, index) if isinstance(index, str) else index
    pair_index = PAIR_INDICES.get(known) if isinstance(known, str) else None
    only_pairs = {*PAIR_ESTIMATORS} - {*INTERACTION_ESTIMATORS} if pair_index else set()
    if pair_index and (coalitions == "pairs" or (coalitions is None and method in only_pairs)):
        return _pairs(game, known, pair_index, method, budget, seed, sampling)
    chosen: list[tuple[int, ...]] | None = None
    if coalitions is not None:
        chosen = _checked_coalitions(coalitions, game)
        if not chosen:
            return _nothing(known, game)
        order = max([whole_number(order, "the order", 1), *map(len, chosen)])
    asked = _checked_index(index, order, n)
    concept = Concept(
        {name: partial(INTERACTION_ESTIMATORS[name], asked) for name in INTERACTION_ESTIMATORS},
        "interactions",
        partial(_best_for_all, asked),
        least=_least_budget,
        what=" for interactions",
    )
    if chosen and pair_index and method in ("auto", DRAWS):
        most = checked_budget(_default_budget(game) if budget is None else budget, n)
        if method == DRAWS or concept.automatic(game, most).method != "exact":
            return _drawn(game, known, pair_index, chosen, most, seed)
    found = concept.answer(game, method, budget, seed, **sampling)
    every = [tuple(row) for size in asked.sizes() for row in coalitions_of_size(n, size).tolist()]
    whole = _interactions(known, asked.order, game, every, found.values, found)
    if chosen is None:
        return whole
    places = [whole.coalitions.index(coalition) for coalition in chosen]
    return replace(
        whole,
        coalitions=tuple(chosen),
        values=whole.values[places],
        stderr=whole.stderr[places],
    )


def _interactions(
    index: str,
    order: int,
    game: Game,
    coalitions: Iterable[tuple[int, ...]],
    values: FloatVector,
    found: Estimate,
) -> Interactions:
    """Return the result for some coalitions, with their values and what was found."""
    return Interactions(
        index=index,
        order=order,
        n_players=players_of(game),
        labels=labels_of(game),
        coalitions=tuple(coalitions),
        values=values,
        stderr=found.stderr,
        evaluations=found.evaluations,
        method=found.method,
        reason=found.reason,
        degrees_of_freedom=found.degrees_of_freedom,
        stopped=found.stopped,
    )


def _pairs(
    game: Game,
    index: str,
    pair_index: PairIndex,
    method: str,
    budget: int | None,
    seed: Seed,
    sampling: Sampling,
) -> Interactions:
    """Return the index of all pairs, by the methods that look at nothing else."""
    n = players_of(game)
    if n == 1:
        return _nothing(index, game)
    concept = Concept(
        {
            name: partial(PAIR_ESTIMATORS[name], pair_index)
            for name in PAIR_ESTIMATORS
            if pair_index in PAIR_ESTIMATORS[name].indices
        },
        "pair_interactions",
        partial(_best_sampler, pair_index),
        least=_least_budget,
        what=f" for the pairs of {index}",
    )
    found = concept.answer(game, method, budget, seed, **sampling)
    upper = np.triu_indices(n, 1)
    found = replace(found, values=found.values[upper], stderr=found.stderr[upper])
    return _interactions(index, 2, game, combinations(range(n), 2), found.values, found)


def _nothing(index: str, game: Game) -> Interactions:
    """Return what is said if no coalition is asked about, or there is no pair."""
    none = Estimate.exact(np.zeros(0), (), 0, "there is nothing to look at")
    return _interactions(index, 2, game, [], none.values, none)


def _drawn(
    game: Game,
    index: str,
    pair_index: PairIndex,
    coalitions: list[tuple[int, ...]],
    budget: int,
    seed: Seed,
) -> Interactions:
    """Return the index of some coalitions of any size, each from draws of its own."""
    n = players_of(game)
    cost = sum(1 << len(coalition) for coalition in coalitions)
    n_draws = budget // cost
    if n_draws < 2:
        raise BudgetError(f"these interactions need {2 * cost} evaluations or more, not {budget}")
    rng = generator_of(seed)
    batches = [_cubes(rng, n, coalition, pair_index, n_draws) for coalition in coalitions]
    evaluator = Evaluator(game, budget)
    start = 0
    all_values = evaluator(np.concatenate([rows for rows, _ in batches]))
    values, errors = np.empty(len(batches)), np.empty(len(batches))
    for place, (rows, signs) in enumerate(batches):
        with one_blas_thread():
            part = all_values[start : start + len(rows)].reshape(n_draws, -1) @ signs
        values[place], errors[place] = part.mean(), part.std(ddof=1) / np.sqrt(n_draws)
        start += len(rows)
    found = Estimate(
        values,
        errors,
        evaluator.evaluations,
        DRAWS,
        f"{len(batches)} coalitions, {n_draws} draws for each",
    )
    return _interactions(index, max(map(len, coalitions)), game, coalitions, values, found)


def _checked_coalitions(
    coalitions: Iterable[Iterable[Hashable]] | Literal["pairs"], game: Game
) -> list[tuple[int, ...]]:
    """Return the different players of each coalition in ascending order."""
    if coalitions == "pairs":
        return list(combinations(range(players_of(game)), 2))
    number = numbering(roster(game), "coalitions")
    chosen: list[tuple[int, ...]] = []
    for coalition in coalitions:
        if isinstance(coalition, str) or not isinstance(coalition, Iterable):
            raise InvalidInputError(f"{shown(coalition)} is not a coalition; give lists of players")
        players = tuple(sorted({int(number(player)) for player in coalition}))
        if not players:
            raise InvalidInputError("a coalition is empty; leave it out")
        chosen.append(players)
    return chosen


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


def _least_budget(n_players: int) -> int:
    return 4 * n_players * n_players


def _default_budget(game: Game) -> int:
    return max(default_budget(game), _least_budget(players_of(game)))


def _best_for_all(index: Index, n_players: int, budget: int) -> Choice:
    needed = INTERACTION_ESTIMATORS["exact"](index).minimum_budget(n_players)
    if needed <= budget:
        return Choice("exact", f"the index depends on {needed} coalitions only, within the budget")
    return Choice("portfolio", f"{needed} coalitions are more than the budget of {budget}")


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
    rng: np.random.Generator,
    n_players: int,
    coalition: tuple[int, ...],
    index: PairIndex,
    n_draws: int,
) -> tuple[BoolMatrix, FloatVector]:
    """Return T ∪ L for drawn sets T and all L ⊆ S, and the sign of each L."""
    s = len(coalition)
    others = np.delete(np.arange(n_players), list(coalition))
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
    rows[:, :, list(coalition)] = (masks[:, None] >> np.arange(s)) & 1
    signs = np.where((s - coalition_sizes(s).astype(np.int64)) % 2, -1.0, 1.0)
    return rows.reshape(-1, n_players), signs
