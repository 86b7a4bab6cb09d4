"""What every estimator promises: checks for ours, and for plug-ins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from coalitions.enumeration import value_table
from coalitions.errors import BudgetError
from coalitions.game import BoolMatrix, FloatVector, Game
from coalitions.games.function import FunctionGame
from coalitions.games.table import TableGame
from coalitions.games.unanimity import UnanimityGame
from coalitions.registry import Checks
from coalitions.values.estimate import Estimate
from coalitions.values.estimator import (
    AXIOMS,
    ESTIMATORS,
    INTERACTION_ESTIMATORS,
    PAIR_ESTIMATORS,
    SEMIVALUE_ESTIMATORS,
    Sampler,
)
from coalitions.values.interactions import interactions
from coalitions.values.semivalues import banzhaf, beta_shapley
from coalitions.values.shapley import shapley

RUNS = 200
"""Estimates whose mean is compared with the truth."""

COVER = (0.90, 0.99)
"""How often an interval of 95 % may cover the truth, over players and runs."""


class Recorder:
    """A game without short cuts that remembers what it was asked."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.n_players = game.n_players
        self.seen: list[bytes] = []
        self.batches: list[int] = []

    def __call__(self, coalitions: BoolMatrix) -> FloatVector:
        """Return what the game does, and remember the rows."""
        self.seen.extend(row.tobytes() for row in coalitions)
        self.batches.append(len(coalitions))
        values: FloatVector = self.game(coalitions)
        return values


def estimator_checks(name: str) -> Checks:
    """Give what is checked of the estimator that is registered by this name."""
    yield "says what it claims", lambda: _claims(name)
    yield "the budget is kept", lambda: _budget(name)
    yield "too small a budget is refused", lambda: _too_little(name)
    yield "the same seed gives the same values", lambda: _repeats(name)
    yield "batches change nothing", lambda: _batches(name)
    yield "one player, and nothing to share", lambda: _trivial(name)
    yield "the claimed axioms hold", lambda: _axioms(name)
    yield "more evaluations bring it closer", lambda: _closer(name)
    yield "unbiased if it says so", lambda: _unbiased(name)


def plain(table: FloatVector) -> FunctionGame:
    """Return the game of a table that has to be asked for each value."""
    game = TableGame(table)
    return FunctionGame(game, game.n_players)


def enough(name: str, n_players: int, at_least: int) -> int:
    """Return a budget that suffices an estimator, and is no smaller than a number."""
    return max(at_least, ESTIMATORS[name]().minimum_budget(n_players))


def mixed_game() -> UnanimityGame:
    """Return a game of eight players, with positive and negative groups of up to five; v(∅) = 3.

    Dividends are multiples of 1/64, so that the game's own sums are exact in any batch.
    """
    game = UnanimityGame.random(8, 25, seed=5, max_size=5)
    dividends = np.rint(np.append(game.dividends, 3.0) * 64) / 64
    return UnanimityGame(8, [*map(np.flatnonzero, game.groups), []], dividends)


def budget_fault(name: str, game: Game, budget: int, seed: int = 0) -> str | None:
    """Return what is wrong with an estimate by a budget: too many evaluations, or odd numbers."""
    asked = Recorder(game)
    found = shapley(asked, name, budget, seed=seed)
    if not found.evaluations == len(set(asked.seen)) == len(asked.seen) <= budget:
        return (
            f"with a budget of {budget} it evaluated {len(set(asked.seen))} coalitions, and reports"
            f" {found.evaluations}"
        )
    if not np.isfinite(found.values).all() or not (found.stderr >= 0).all():
        return f"with a budget of {budget} values are not finite, or errors negative"
    return None


def axiom_fault(
    name: str, table: FloatVector, other: FloatVector, pair: tuple[int, int], seed: int
) -> str | None:
    """Return which of the axioms that an estimator claims does not hold.

    Parameters
    ----------
    name
        The estimator.
    table, other
        The values of two games of as many players [2^n].
    pair
        Two players: they are made equal for symmetry, and the first adds nothing as null player.
    seed
        Source of all randomness.
    """
    n = len(table).bit_length() - 1
    claimed, budget = ESTIMATORS[name].axioms, enough(name, n, 20)
    scale = 1 + float(np.abs(table).max())

    def values(game: FloatVector) -> FloatVector:
        return shapley(plain(game), name, budget, seed=seed).values

    found, masks, (i, j) = values(table), np.arange(1 << n), pair
    grand = table[-1] - table[0]
    if "efficiency" in claimed and abs(found.sum() - grand) > 1e-9 * scale:
        return f"efficiency: the values add up to {found.sum()}, not {grand}"
    if "null player" in claimed:
        null = values(table[masks & ~(1 << i)])[i]
        if abs(null) > 1e-12 * scale:
            return f"null player: one that adds nothing got {null}"
    if "linearity" in claimed:
        both, apart = values(2 * table - 3 * other), 2 * found - 3 * values(other)
        if np.abs(both - apart).max() > 1e-8 * (scale + float(np.abs(other).max())):
            return "linearity: a weighted sum of two games has other values than that sum of theirs"
    if "symmetry" in claimed:
        differ = (masks >> i & 1) ^ (masks >> j & 1)
        swapped = values((table + table[masks ^ (differ << i) ^ (differ << j)]) / 2)
        if abs(swapped[i] - swapped[j]) > 1e-12 * scale:
            return f"symmetry: two that are the same got {swapped[i]} and {swapped[j]}"
    return None


def _claims(name: str) -> str | None:
    estimator = ESTIMATORS[name]
    for what in ("unbiased", "axioms", "stderr_means"):
        if not hasattr(estimator, what):
            return f"the class has no attribute {what}"
    if getattr(estimator, "unbiased", None) not in (True, False):
        return "unbiased is True or False"
    if not estimator.axioms <= AXIOMS:
        return f"axioms are among {', '.join(sorted(AXIOMS))}"
    if len(estimator.stderr_means) <= 10:
        return "stderr_means says in words what the errors are"
    if not (estimator.__doc__ or "").strip():
        return "it has no docstring"
    return None


def _budget(name: str) -> str | None:
    least = ESTIMATORS[name]().minimum_budget(8)
    for extra in (0, 9):
        wrong = budget_fault(name, mixed_game(), least + extra)
        if wrong is not None:
            return wrong
    return None


def _too_little(name: str) -> str | None:
    for n in (2, 3, 4, 5, 9):
        least = ESTIMATORS[name]().minimum_budget(n)
        game = plain(np.arange(1 << n, dtype=float))
        if shapley(game, name, least).evaluations > least:
            return f"with {n} players it takes more than its minimum_budget of {least}"
        try:
            shapley(game, name, least - 1)
        except BudgetError as error:
            if f"{name} needs at least {least} evaluations" not in str(error):
                return f"with {n} players and one evaluation less than {least} it says: {error}"
        else:
            return f"with {n} players one evaluation less than {least} is enough"
    return None


def _estimate(name: str, game: Game | None = None, **more: object) -> Estimate:
    asked = FunctionGame(mixed_game(), 8) if game is None else game
    return shapley(asked, name, enough(name, 8, 100), **more)  # type: ignore[arg-type]


def _same(one: Estimate, other: Estimate) -> bool:
    return bool((one.values == other.values).all() and (one.stderr == other.stderr).all())


def _repeats(name: str) -> str | None:
    first, second = (_estimate(name, seed=1) for _ in range(2))
    same = _same(first, second)
    return None if same else "two calls with seed 1 differ: take all chance from the seed"


def _batches(name: str) -> str | None:
    once, split = Recorder(mixed_game()), Recorder(mixed_game())
    whole = _estimate(name, once, seed=3)
    parts = _estimate(name, split, seed=3, batch_size=7)
    if max(split.batches) > 7 or set(split.seen) != set(once.seen):
        return "with batch_size=7 it asks for more at a time, or for other coalitions"
    return None if _same(whole, parts) else "with batch_size=7 the values are others"


def _trivial(name: str) -> str | None:
    alone = shapley(plain(np.array([2.0, 7.0])), name, 2)
    if (alone.values.tolist(), alone.stderr.tolist(), alone.evaluations) != ([5.0], [0.0], 2):
        return f"a lone player who adds 5 gets {alone.values} ± {alone.stderr}"
    for constant in (0.0, -4.0):
        found = shapley(plain(np.full(64, constant)), name, enough(name, 6, 40))
        if max(np.abs(found.values).max(), found.stderr.max()) > 1e-12:
            return f"where everything is worth {constant}, it shares {found.values}"
    return None


def _axioms(name: str) -> str | None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 6))
        table, other = rng.integers(-9, 10, (2, 1 << n)).astype(float)
        i, j = rng.permutation(n)[:2]
        wrong = axiom_fault(name, table, other, (int(i), int(j)), seed)
        if wrong is not None:
            return wrong
    return None


def _closer(name: str) -> str | None:
    game = UnanimityGame.random(10, 30, seed=8, max_size=4)
    truth, asked, least = game.shapley_values(), FunctionGame(game, 10), enough(name, 10, 30)

    def error(budget: int) -> float:
        runs = [shapley(asked, name, budget, seed=seed).values for seed in range(5)]
        return float(np.mean((np.array(runs) - truth) ** 2))

    few, many = error(least), error(5 * least)
    if few > 1e-20 and not many < few / 1.5:
        return f"the mean squared error is {few:.3g}, and {many:.3g} with five times the budget"
    return None


def _unbiased(name: str) -> str | None:
    if not ESTIMATORS[name].unbiased:
        return None
    truth = mixed_game().shapley_values()
    runs = [_estimate(name, seed=seed) for seed in range(RUNS)]
    values = np.array([run.values for run in runs])
    spread = values.std(axis=0, ddof=1) / np.sqrt(RUNS)
    # Eight players: |z| > 4 would happen once in two thousand tries.
    off = np.abs(values.mean(axis=0) - truth) - 4 * spread
    if (off > 1e-12).any():
        player = int(off.argmax())
        mean = values.mean(axis=0)[player]
        return (
            f"the mean of {RUNS} estimates for player {player} is {mean:.4g}, and the value"
            f" {truth[player]:.4g}"
        )
    if not any(run.stderr.any() for run in runs):  # it is exact
        return None
    low, high = np.array([run.interval(0.95) for run in runs]).transpose(1, 0, 2)
    cover = float(((low <= truth) & (truth <= high)).mean())
    if not COVER[0] <= cover <= COVER[1]:
        return f"its intervals of 95 % cover the value in {cover:.1%} of {RUNS} estimates"
    return None


# ----------------------------------------------------------------------------------------
# Estimators of semivalues, of pairs and of interactions


def semivalue_checks(name: str) -> Checks:
    """Give what is checked of the semivalue estimator that is registered by this name."""
    kind = SEMIVALUE_ESTIMATORS[name]
    ask = partial(banzhaf if kind.banzhaf_only else _beta_shapley, method=name)
    return _sampler_checks(kind, ask)


def pair_checks(name: str) -> Checks:
    """Give what is checked of the estimator of pairs, for each index that it knows."""
    kind = PAIR_ESTIMATORS[name]
    for index in ("shapley", "banzhaf"):
        if index in kind.indices:
            ask = partial(interactions, index=index, coalitions="pairs", method=name)
            for promise, fault_of in _sampler_checks(kind, ask):
                yield f"{index}: {promise}", fault_of


def interaction_checks(name: str) -> Checks:
    """Give what is checked of the estimator of interactions that is registered by this name."""
    return _sampler_checks(INTERACTION_ESTIMATORS[name], partial(interactions, method=name))


def _beta_shapley(game: Game, **more: Any) -> Estimate:  # noqa: ANN401 (of `beta_shapley`)
    return beta_shapley(game, 2, 1, **more)


def _sampler_checks(kind: type[Sampler], ask: Callable[..., Any]) -> Checks:
    """Give what is checked of an estimator of any kind.

    Parameters
    ----------
    kind
        Its class.
    ask
        Maps a game, a budget, a seed and a batch size to values and standard errors.
    """
    yield "says what it is", lambda: None if (kind.__doc__ or "").strip() else "it has no docstring"
    yield "the budget is kept", lambda: _sampler_budget(ask)
    yield "too small a budget is refused", lambda: _sampler_refuses(ask)
    yield "the same seed gives the same values", lambda: _sampler_repeats(ask)
    yield "batches change nothing", lambda: _sampler_batches(ask)
    yield "nothing to share", lambda: _sampler_trivial(ask)
    yield "close to the exact values with all coalitions", lambda: _sampler_close(ask)


PLENTY = 256
"""Evaluations for a game of eight players: all of its coalitions."""


def _sampler_budget(ask: Callable[..., Any]) -> str | None:
    for budget in (PLENTY // 2, PLENTY):
        asked = Recorder(mixed_game())
        try:
            found = ask(asked, budget=budget)
        except BudgetError:
            continue  # it needs more
        if not found.evaluations == len(set(asked.seen)) == len(asked.seen) <= budget:
            return (
                f"with a budget of {budget} it evaluated {len(set(asked.seen))} coalitions, and"
                f" reports {found.evaluations}"
            )
        if not np.isfinite(found.values).all() or not (found.stderr >= 0).all():
            return f"with a budget of {budget} values are not finite, or errors negative"
    return None


def _sampler_refuses(ask: Callable[..., Any]) -> str | None:
    try:
        ask(Recorder(mixed_game()), budget=2)
    except BudgetError:
        return None
    return "two evaluations are enough for eight players: minimum_budget is too small"


def _sampler_repeats(ask: Callable[..., Any]) -> str | None:
    first, second = (ask(Recorder(mixed_game()), budget=PLENTY, seed=1) for _ in range(2))
    same = _same(first, second)
    return None if same else "two calls with seed 1 differ: take all chance from the seed"


def _sampler_batches(ask: Callable[..., Any]) -> str | None:
    split = Recorder(mixed_game())
    whole = ask(Recorder(mixed_game()), budget=PLENTY, seed=3)
    parts = ask(split, budget=PLENTY, seed=3, batch_size=7)
    if max(split.batches) > 7:
        return "with batch_size=7 it asks for more at a time"
    return None if _same(whole, parts) else "with batch_size=7 the values are others"


def _sampler_trivial(ask: Callable[..., Any]) -> str | None:
    found = ask(plain(np.zeros(PLENTY)), budget=PLENTY)
    if max(np.abs(found.values).max(), found.stderr.max()) > 1e-12:
        return "where every coalition is worth 0, some value or error is not"
    return None


def _sampler_close(ask: Callable[..., Any]) -> str | None:
    """Compare the mean of some estimates with the exact values, by the spread of the estimates."""
    truth = ask(plain(mixed_table()), budget=PLENTY, method="exact").values
    runs = np.array([ask(plain(mixed_table()), budget=PLENTY, seed=s).values for s in range(8)])
    error = np.sqrt(np.mean((runs.mean(axis=0) - truth) ** 2))
    if error > 0.5 * np.sqrt(np.mean(truth**2)) + 1e-9:
        return (
            f"the mean of 8 estimates is {error:.3g} off, where values are about"
            f" {np.sqrt(np.mean(truth**2)):.3g}"
        )
    return None


def mixed_table() -> FloatVector:
    """Return the values of all coalitions of `mixed_game`."""
    return value_table(mixed_game())
