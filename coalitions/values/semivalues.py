r"""Semivalues: what a player adds to a random coalition, on average.

A semivalue is given by how likely the player meets k others [Dubey1981]_:

.. math:: \phi_i = \sum_{k=0}^{n-1} q_k \binom{n-1}{k}^{-1}
    \sum_{S \not\ni i, |S| = k} [v(S \cup i) - v(S)]

The Shapley value has :math:`q_k = 1/n`, the Banzhaf value the binomial distribution of a coin that
everybody tosses, and Beta-Shapley the one of a coin whose bias is drawn first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import comb
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from coalitions.checks import (
    GameLike,
    Seed,
    as_game,
    number_in,
    one_number_each,
)
from coalitions.errors import InvalidInputError, with_keywords
from coalitions.game import FloatVector, Game, players_of
from coalitions.values.budget import PORTFOLIO_BUDGET, Choice, Concept, Sampling
from coalitions.values.estimate import Estimate
from coalitions.values.estimator import SEMIVALUE_ESTIMATORS, Sampler
from coalitions.values.interaction_indices import INDICES, BetaSemivalue, Index

PORTFOLIO_PLAYERS = 1000
"""Up to this many players a portfolio takes seconds."""

LARGEST_PARAMETER = 100.0
"""Of a Beta distribution that a quadrature rule is made for."""


@with_keywords(*Sampling.__annotations__)
def banzhaf(
    game: GameLike,
    method: str = "auto",
    budget: int | None = None,
    *,
    seed: Seed = 0,
    **sampling: Unpack[Sampling],
) -> Estimate:
    r"""Return the Banzhaf values: what a player adds if everybody else tosses a coin.

    .. math:: \beta_i = 2^{-(n-1)} \sum_{S \not\ni i} [v(S \cup i) - v(S)]

    They need not add up to v(N) − v(∅) (not normalised; [Banzhaf1965]_).

    Parameters
    ----------
    game
        Any game.
    method
        ``"auto"``, or a name from `coalitions.SEMIVALUE_ESTIMATORS`; their classes say what each
        does. ``"auto"``: exact if the budget allows or the game has a table or a closed form, else
        portfolio, or regression above 50 000 evaluations
        or 1000 players.
    budget
        Most coalitions to evaluate; as for `shapley` if there is none.
    seed
        Source of all randomness.
    **sampling
        `batch_size`, `progress`, `resume` and `interruptible`, as for `shapley`.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> glove = TableGame([0, 0, 0, 1, 0, 1, 0, 1])
    >>> banzhaf(glove).values
    array([0.75, 0.25, 0.25])
    """
    game = as_game(game)
    n = players_of(game)
    sizes = np.array([comb(n - 1, k) / (1 << (n - 1)) for k in range(n)])
    methods = _methods(sizes, INDICES["BII"](1), banzhaf=True)
    concept = Concept(methods, "semivalues", partial(_best_sampler, "regression"))
    return concept.answer(game, method, budget, seed, **sampling)


@with_keywords(*Sampling.__annotations__)
def beta_shapley(
    game: GameLike,
    alpha: float,
    beta: float,
    *,
    method: str = "auto",
    budget: int | None = None,
    seed: Seed = 0,
    **sampling: Unpack[Sampling],
) -> Estimate:
    r"""Return the Beta(α, β)-Shapley values [Kwon2022]_.

    .. math:: q_k = \binom{n-1}{k} \frac{B(k + \beta,\, n - 1 - k + \alpha)}{B(\alpha, \beta)}

    Beta(1, 1) is the Shapley value. A large α looks at small coalitions, a large β at large ones.

    Parameters
    ----------
    game
        Any game.
    alpha, beta
        Positive parameters.
    method, budget, seed, **sampling
        As in `semivalue`.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> glove = TableGame([0, 0, 0, 1, 0, 1, 0, 1])
    >>> beta_shapley(glove, 1, 1).values.round(6).tolist()
    [0.666667, 0.166667, 0.166667]
    """
    alpha = number_in(alpha, "alpha", 1e-300, 1e300)
    beta = number_in(beta, "beta", 1e-300, 1e300)
    game = as_game(game)
    n = players_of(game)
    # Neighbouring terms have a simple ratio; factorials and Beta functions would overflow.
    k = np.arange(n - 1)
    steps = np.log((n - 1 - k) / (k + 1)) + np.log(k + beta) - np.log(n - 2 - k + alpha)
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    sizes = np.exp(logs - logs.max())
    sizes /= sizes.sum()
    coin = BetaSemivalue(1, alpha, beta) if max(alpha, beta) < LARGEST_PARAMETER else None
    return _semivalue(game, sizes, coin, method, budget, seed, sampling)


@with_keywords(*Sampling.__annotations__)
def semivalue(
    game: GameLike,
    sizes: ArrayLike,
    *,
    method: str = "auto",
    budget: int | None = None,
    seed: Seed = 0,
    **sampling: Unpack[Sampling],
) -> Estimate:
    """Return the semivalue of a distribution of sizes.

    Parameters
    ----------
    game
        Any game.
    sizes
        Probability q_k that a player meets k others [n]; the coalitions of a size are equally
        likely.
    method
        ``"auto"``, ``"exact"``, ``"portfolio"`` or ``"star"``, see
        `coalitions.SEMIVALUE_ESTIMATORS`. ``"auto"``: exact if the budget allows or the game has a
        table or a closed form, else portfolio, or star above 50 000 evaluations or 1000
        players.
    budget, seed, **sampling
        As for `banzhaf`.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> glove = TableGame([0, 0, 0, 1, 0, 1, 0, 1])
    >>> semivalue(glove, [0, 1, 0]).values  # what a player adds to one other
    array([1. , 0.5, 0.5])
    """
    game = as_game(game)
    n = players_of(game)
    q = one_number_each(sizes, n, "sizes")
    if not (q >= 0).all() or abs(q.sum() - 1) > 1e-9:
        raise InvalidInputError(
            f"sizes must be {n} probabilities that add up to 1, one for each number of others"
        )
    return _semivalue(game, q, None, method, budget, seed, sampling)


def _semivalue(
    game: Game,
    sizes: FloatVector,
    index: Index | None,
    method: str,
    budget: int | None,
    seed: Seed,
    sampling: Sampling,
) -> Estimate:
    concept = Concept(
        _methods(sizes, index, banzhaf=False), "semivalues", partial(_best_sampler, "star")
    )
    return concept.answer(game, method, budget, seed, options=None, **sampling)


def _methods(
    sizes: FloatVector, index: Index | None, *, banzhaf: bool
) -> Mapping[str, Callable[[], Sampler]]:
    """Return the methods that know the semivalue of these sizes, each ready to be made."""
    return {
        name: partial(SEMIVALUE_ESTIMATORS[name], sizes, index)
        for name in SEMIVALUE_ESTIMATORS
        if banzhaf or not SEMIVALUE_ESTIMATORS[name].banzhaf_only
    }


def _best_sampler(fallback: str, n_players: int, budget: int) -> Choice:
    if budget > PORTFOLIO_BUDGET or n_players > PORTFOLIO_PLAYERS:
        return Choice(
            fallback,
            f"a portfolio would take long for {n_players} players and {budget} evaluations",
        )
    return Choice("portfolio", f"2^{n_players} coalitions are more than the budget of {budget}")
