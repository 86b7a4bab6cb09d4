"""shapley(game): exact, or estimated by the method that fits the game and the budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coalitions.checks import GameLike, Seed, as_game
from coalitions.execution.progress import OnEvaluations
from coalitions.values.budget import PORTFOLIO_BUDGET, Choice, Concept
from coalitions.values.estimate import Estimate
from coalitions.values.estimator import ESTIMATORS, Estimator

REGRESSION_PLAYERS = 1000
"""Up to this many players a least-squares fit takes seconds at most."""


def shapley(
    game: GameLike,
    method: str | Estimator = "auto",
    budget: int | None = None,
    *,
    target_error: float | None = None,
    seed: Seed = 0,
    batch_size: int | None = None,
    progress: OnEvaluations | None = None,
    resume: str | Path | None = None,
    interruptible: bool = True,
    **options: Any,  # noqa: ANN401 (the options of the method, checked by its constructor)
) -> Estimate:
    """Return the Shapley values of a game, exact or with standard errors.

    Parameters
    ----------
    game
        Any `Game` (shapiq's fit as they are), a synergy graph or what makes one, or a table of 2^n
        values.
    method
        ``"auto"``, a name from `coalitions.ESTIMATORS`, or an estimator with its options set.
    budget
        Most distinct coalitions that may be evaluated, the empty and the grand one included.
        Default: all 2^n up to 16 players (20 if the game is compiled, see `Kernel`), else 100·n.
    target_error
        Stop early, once no player's standard error is larger than this.
    seed
        Source of all randomness: the same seed gives the same numbers, whatever the batch size
        and the number of threads.
    batch_size
        Most coalitions of one call to the game; by default a method asks for all it can.
    progress
        Called after each call to the game with its evaluations, `done` of `total`, see `Progress`.
    resume
        A folder that keeps every value as soon as the game has returned it, see `stored`. After a
        crash, or `kill -9`, the same call goes on where it was.
    interruptible
        Whether Ctrl-C returns the estimate so far, with ``stopped="interrupted"``, if there is one:
        a game that takes more than ten seconds is estimated with few evaluations first, and then
        with twice as many each time. What comes out in the end is the same.
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
    methods = {name: ESTIMATORS[name] for name in ESTIMATORS}
    return Concept(methods, "shapley_values", best_sampler).answer(
        as_game(game),
        method,
        budget,
        seed,
        target_error=target_error,
        batch_size=batch_size,
        progress=progress,
        resume=resume,
        interruptible=interruptible,
        options=options,
    )


def best_sampler(n_players: int, budget: int) -> Choice:
    """Return what ``"auto"`` samples with."""
    if budget <= PORTFOLIO_BUDGET:
        return Choice(
            "portfolio",
            f"smallest measured error up to {PORTFOLIO_BUDGET} evaluations; the budget is {budget}",
        )
    if n_players <= REGRESSION_PLAYERS:
        return Choice(
            "leverage", f"smallest measured error for {budget} evaluations, over {PORTFOLIO_BUDGET}"
        )
    return Choice(
        "antithetic",
        f"least squares would take too long for {n_players} players, over {REGRESSION_PLAYERS}",
    )
