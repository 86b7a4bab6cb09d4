"""shapley(game): the front door; it picks a method, watches the budget and says what it did."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from coalitions.checks import Seed, number_in, seed_of, whole_number
from coalitions.errors import BudgetError, InvalidInputError
from coalitions.game import Game, closed_form_of, players_of, table_of
from coalitions.sampling.estimator import ESTIMATORS, Estimate, Estimator, Sampled
from coalitions.sampling.evaluator import Evaluator, Progress

EXACT_PLAYERS = 16
"""Up to this many players the default budget is all 2^n coalitions."""

BUDGET_PER_PLAYER = 100
"""Default budget of larger games, for each player."""

PROCESS_BUDGET = 50_000
"""Up to this budget a Gaussian process, which stops at 10 002 evaluations, has the least error.

Measured by ``benchmarks/shapley.py --large``: least squares with 50 000 evaluations is where it is
overtaken on the first of the games.
"""

REGRESSION_PLAYERS = 1000
"""Up to this many players a least-squares fit takes seconds at most."""

MOST_REPEATS = 100_000
"""Budgets larger than this and than 2^n are cut to the larger of the two."""

FIRST_SHARE = 16
"""With a target error, the first look is after a 16th of the budget, and then at each doubling."""


class Choice(NamedTuple):
    """A method and why it was taken."""

    method: str
    reason: str


def shapley(
    game: Game,
    method: str | Estimator = "auto",
    budget: int | None = None,
    *,
    target_error: float | None = None,
    seed: Seed = 0,
    batch_size: int | None = None,
    progress: Progress | None = None,
    **options: Any,  # noqa: ANN401 (the options of the method, checked by its constructor)
) -> Estimate:
    """Return the Shapley values of a game, exact or with standard errors.

    Parameters
    ----------
    game
        Any `Game`; shapiq's fit as they are.
    method
        ``"auto"``, a name from `coalitions.ESTIMATORS`, or an estimator with its options set.
    budget
        Most distinct coalitions that may be evaluated, the empty and the grand one included.
        Default: all 2^n up to 16 players, else 100·n.
    target_error
        Stop early, once no player's standard error is larger than this.
    seed
        Source of all randomness: the same seed gives the same numbers, whatever the batch size
        and the number of threads.
    batch_size
        Most coalitions of one call to the game; by default a method asks for all it can.
    progress
        Called with the evaluations made and the budget after each call to the game.
    **options
        Options of the method, e.g. ``tolerance=0.05`` of ``"truncated"``.

    Raises
    ------
    BudgetError
        If the method cannot work with so few evaluations.

    Examples
    --------
    >>> from coalitions import TableGame
    >>> result = shapley(TableGame([0, 0, 0, 1, 0, 1, 0, 1]))
    >>> result.values.round(3)
    array([0.667, 0.167, 0.167])
    >>> result.method, result.evaluations
    ('exact', 8)
    """
    n = players_of(game)
    default = default_budget(n)
    if budget is not None:
        budget = checked_budget(budget, n)
    if batch_size is not None:
        batch_size = whole_number(batch_size, "the batch size", 1)
    if target_error is not None:
        target_error = number_in(target_error, "the target error", 0.0, inf)
    seed = seed_of(seed)
    if isinstance(method, Estimator):
        if options:
            raise TypeError(f"set the options on the estimator: {', '.join(options)}")
        estimator, choice = method, Choice(name_of(method), "you asked for it")
    elif not isinstance(method, str):
        raise InvalidInputError(
            f"the method is {method!r}; it must be a name or an estimator with its options set"
        )
    else:
        choice = Choice(method, "you asked for it")
        if method == "auto":
            if options:
                raise TypeError(f"name the method that these options are for: {', '.join(options)}")
            choice = choose(game, budget or default)
        estimator = ESTIMATORS[choice.method](**options)
    if budget is None:
        exact = choice.method == "exact"
        budget = 1 << n if exact else max(default, estimator.minimum_budget(n))
    evaluator = Evaluator(game, budget, batch_size=batch_size, progress=progress)
    if n == 1:
        if evaluator.budget < 2:
            raise BudgetError("a lone player's value takes 2 evaluations, but the budget is 1")
        empty, grand = evaluator.ends
        sampled = Sampled(np.array([grand - empty]), np.zeros(1))
        choice = Choice("exact", "a lone player gets everything")
    else:
        try:
            sampled = _estimated(estimator, choice, evaluator, target_error, seed)
        except MemoryError:
            raise BudgetError(
                f"{choice.method} needs more memory than there is for {n} players and a budget of"
                f" {budget} evaluations; allow fewer"
            ) from None
    return Estimate(
        values=sampled.values,
        stderr=sampled.stderr,
        evaluations=evaluator.evaluations if sampled.evaluations is None else sampled.evaluations,
        method=choice.method,
        reason=choice.reason,
        degrees_of_freedom=sampled.degrees_of_freedom,
    )


def default_budget(n_players: int) -> int:
    """Return the budget of a game of n players if none is given."""
    return 1 << n_players if n_players <= EXACT_PLAYERS else BUDGET_PER_PLAYER * n_players


def checked_budget(budget: object, n_players: int) -> int:
    """Return the budget as a whole number, and no more of it than makes sense.

    There are only 2^n coalitions. More evaluations than that are repeats, which cost nothing but
    are drawn one by one; so the budget of a small game ends at 100 000.
    """
    whole = whole_number(budget, "the budget", 1)
    return min(whole, max(1 << n_players, MOST_REPEATS))


def name_of(estimator: Estimator) -> str:
    """Return the name an estimator is registered under, or that of its class."""
    for name in ESTIMATORS:
        if ESTIMATORS[name] is type(estimator):
            return name
    return type(estimator).__name__


def choose(game: Game, budget: int) -> Choice:
    """Return the method that ``"auto"`` stands for, and why."""
    n = int(game.n_players)
    if closed_form_of(game) is not None:
        return Choice("exact", "the game has a closed form")
    if table_of(game) is not None:
        return Choice("exact", f"the game has its table of 2^{n} values")
    if n < 63 and 1 << n <= budget:
        return Choice("exact", f"all 2^{n} = {1 << n} coalitions fit in the budget of {budget}")
    if budget <= PROCESS_BUDGET:
        return Choice(
            "gaussian-process",
            f"smallest measured error up to {PROCESS_BUDGET} evaluations; the budget is {budget}",
        )
    if n <= REGRESSION_PLAYERS:
        return Choice(
            "leverage", f"smallest measured error for {budget} evaluations, over {PROCESS_BUDGET}"
        )
    return Choice(
        "antithetic",
        f"least squares would take too long for {n} players, over {REGRESSION_PLAYERS}",
    )


def _estimated(
    estimator: Estimator,
    choice: Choice,
    evaluator: Evaluator,
    target_error: float | None,
    seed: int,
) -> Sampled:
    """Return the estimate with the whole budget, or with less once the target is met."""
    n = evaluator.n_players
    game = evaluator.game
    known = closed_form_of(game) is not None or table_of(game) is not None
    free = choice.method == "exact" and known
    least = 0 if free else estimator.minimum_budget(n)
    if evaluator.budget < least:
        raise BudgetError(
            f"{choice.method} needs at least {least} evaluations for {n} players, but the budget"
            f" is {evaluator.budget}"
        )
    if target_error is None or choice.method == "exact":
        return estimator.estimate(evaluator, seed=seed)
    share = FIRST_SHARE
    while True:
        part = evaluator.within(max(least, evaluator.budget // share))
        sampled = estimator.estimate(part, seed=seed)
        if part.budget == evaluator.budget or sampled.stderr.max() <= target_error:
            return sampled
        share = max(1, share // 2)
