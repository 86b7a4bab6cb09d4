"""What every estimator of Shapley values promises, as checks for plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from coalitions.game import BoolMatrix, FloatVector
from coalitions.games.function import FunctionGame
from coalitions.games.unanimity import UnanimityGame
from coalitions.sampling.estimator import AXIOMS, ESTIMATORS, Estimate
from coalitions.values.shapley import shapley

PLAYERS = 7
RUNS = 60
"""Estimates whose mean is compared with the truth."""

ROUNDING = 1e-9


class _Recorder:
    """A game without short cuts that remembers what it was asked."""

    def __init__(self, seed: int = 5) -> None:
        # Whole dividends, so that the game's own sums are exact in any batch; the last player adds
        # nothing.
        game = UnanimityGame.random(PLAYERS - 1, 15, seed=seed, max_size=4)
        groups = [np.flatnonzero(group) for group in game.groups]
        self.game = UnanimityGame(PLAYERS, groups, np.rint(game.dividends * 64))
        self.n_players = PLAYERS
        self.seen: list[bytes] = []

    def __call__(self, coalitions: BoolMatrix) -> FloatVector:
        self.seen.extend(row.tobytes() for row in coalitions)
        return self.game(coalitions)


def estimator_checks(name: str) -> Iterator[tuple[str, Callable[[], str | None]]]:
    """Give what is checked of a registered estimator, each with a function that finds the fault.

    Parameters
    ----------
    name
        The name it is registered by.

    Returns
    -------
    Pairs of a promise and a function, which returns None if it is kept, and a sentence if not.
    """
    yield "says what it claims", lambda: _claims(name)
    yield "the budget is kept", lambda: _budget(name)
    yield "the same seed gives the same values", lambda: _repeats(name)
    yield "batches change nothing", lambda: _batches(name)
    yield "the claimed axioms hold", lambda: _axioms(name)
    yield "more evaluations bring it closer", lambda: _closer(name)
    yield "unbiased if it says so", lambda: _unbiased(name)


def _estimate(name: str, game: object = None, *, times: int = 1, **more: object) -> Estimate:
    budget = max(40, ESTIMATORS[name]().minimum_budget(PLAYERS)) * times
    return shapley(_Recorder() if game is None else game, name, budget, **more)  # type: ignore[arg-type]


def _claims(name: str) -> str | None:
    estimator = ESTIMATORS[name]
    for what in ("unbiased", "axioms", "stderr_means"):
        if not hasattr(estimator, what):
            return f"the class has no attribute {what}"
    if getattr(estimator, "unbiased", None) not in (True, False):
        return "unbiased is True or False"
    if not estimator.axioms <= AXIOMS:
        return f"axioms are among {', '.join(sorted(AXIOMS))}"
    if not (estimator.__doc__ or "").strip():
        return "it has no docstring"
    return None


def _budget(name: str) -> str | None:
    for extra in (0, 9):
        game = _Recorder()
        budget = ESTIMATORS[name]().minimum_budget(PLAYERS) + extra
        found = shapley(game, name, budget)
        if not found.evaluations == len(set(game.seen)) == len(game.seen) <= budget:
            return (
                f"with a budget of {budget} it evaluated {len(set(game.seen))} coalitions and told"
                f" of {found.evaluations}"
            )
        if not np.isfinite(found.values).all() or not (found.stderr >= 0).all():
            return f"with a budget of {budget} values are not finite, or errors negative"
    return None


def _repeats(name: str) -> str | None:
    first, second = (_estimate(name, seed=1) for _ in range(2))
    same = (first.values == second.values).all() and (first.stderr == second.stderr).all()
    return None if same else "two calls with seed 1 differ: take all chance from the seed"


def _batches(name: str) -> str | None:
    whole, parts = _estimate(name, seed=2), _estimate(name, seed=2, batch_size=5)
    same = (whole.values == parts.values).all()
    return None if same else "with batch_size=5 the values are others"


def _axioms(name: str) -> str | None:
    claimed = ESTIMATORS[name].axioms
    game = _Recorder()
    found = _estimate(name, game, seed=3)
    ends = game.game(np.array([[False] * PLAYERS, [True] * PLAYERS]))
    scale = ROUNDING * float(np.abs(game.game.dividends).sum())
    if "efficiency" in claimed and abs(found.values.sum() - (ends[1] - ends[0])) > scale:
        return f"efficiency: the values add up to {found.values.sum()}, not {ends[1] - ends[0]}"
    if "null player" in claimed and abs(found.values[-1]) > scale:
        return f"null player: one that adds nothing got {found.values[-1]}"
    if "linearity" in claimed:
        twice = _estimate(name, FunctionGame(lambda rows: 2 * game.game(rows), PLAYERS), seed=3)
        if (np.abs(twice.values - 2 * found.values) > scale).any():
            return "linearity: twice the game is not worth twice as much"
    return None


def _closer(name: str) -> str | None:
    truth = _Recorder().game.shapley_values()

    def error(times: int) -> float:
        runs = [_estimate(name, times=times, seed=seed).values for seed in range(8)]
        return float(np.mean((np.array(runs) - truth) ** 2))

    few, many = error(1), error(3)
    if few > ROUNDING and many >= few:
        return f"the mean squared error is {few:.3g}, and {many:.3g} with three times the budget"
    return None


def _unbiased(name: str) -> str | None:
    if not ESTIMATORS[name].unbiased:
        return None
    truth = _Recorder().game.shapley_values()
    values = np.array([_estimate(name, seed=seed).values for seed in range(RUNS)])
    spread = values.std(axis=0, ddof=1) / np.sqrt(RUNS)
    scale = ROUNDING * float(np.abs(truth).sum())
    off = np.abs(values.mean(axis=0) - truth) - 4.5 * spread
    if (off > scale).any():
        player = int(off.argmax())
        mean = values.mean(axis=0)[player]
        return (
            f"the mean of {RUNS} estimates for player {player} is {mean:.4g}, and the value"
            f" {truth[player]:.4g}"
        )
    return None
