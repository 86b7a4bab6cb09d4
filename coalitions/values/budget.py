"""From a question to an estimate: budget, method, seed and stopping of all sampled values.

The first half is the `Evaluator`, through which an estimator sees the game: it counts evaluations,
remembers values and reports progress. The second half is the `Concept`, what is asked of a game: it
checks the arguments, sets the default budget, chooses the method, and stops at a target error or
by Ctrl-C.
"""

from __future__ import annotations

import contextlib
import math
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeVar

import numpy as np

from coalitions.checks import Seed, number_in, seed_of, whole_number
from coalitions.enumeration import ROWS_PER_CALL, coalitions_of_masks, value_table
from coalitions.errors import (
    BudgetError,
    InvalidInputError,
    UnknownKeywordError,
    UnknownNameError,
    did_you_mean,
    unknown_keyword,
)
from coalitions.execution.progress import Evaluations, OnEvaluations
from coalitions.game import (
    BoolMatrix,
    FloatVector,
    Game,
    Kernel,
    answers_checked,
    closed_form_of,
    evaluate,
    kernel_of,
    labels_of,
    players_of,
    table_of,
)
from coalitions.games.wrappers import CachedGame
from coalitions.runtime import clock
from coalitions.values.estimate import Estimate
from coalitions.values.estimator import Sampled, Sampler

# ----------------------------------------------------------------------------------------
# A game with a budget, a memory and a progress report

ROWS_PER_REPORT = 16
"""Rows of one call to a game that takes long, if somebody waits for reports of progress."""

PROBE = 2
"""Coalitions that are evaluated first, to see how long the rest will take."""

ORDINARY = 128
"""Games whose largest value is between 2^−128 and 2^128 are sampled as they are: fourth powers of
their values are far from the ends of the floats. Others are sampled in larger or smaller units."""


def exponent_of(largest: float) -> int:
    """Return the exponent of the power of two above a number; 2^1000 times it is no overflow."""
    return max(-1000, math.frexp(largest)[1])


class TooLongError(Exception):
    """A call to the game would take longer than it may; what is evaluated is remembered."""


class SpentError(Exception):
    """The budget is spent, and nobody waits for an estimate yet."""


class OtherUnitsError(Exception):
    """A value is too large for the units so far; the estimate begins anew in larger ones."""


class Evaluator:
    """What an estimator sees of a game.

    It never evaluates a coalition twice, refuses to exceed the budget, splits calls that are
    larger than the game wants, and reports progress.

    Parameters
    ----------
    game
        Any game.
    budget
        Most distinct coalitions that may be evaluated.
    batch_size
        Most rows of one call to the game; None for no limit.
    progress
        Called after each call to the game.
    most_seconds
        What one call of an estimator may take, as far as a few coalitions can tell; a longer one
        is refused by `TooLongError`. None for no limit.

    Attributes
    ----------
    without_estimate
        Raise `SpentError` as soon as the budget is spent: what was evaluated is remembered, and
        the estimator does not come to its estimate.
    exponent
        Values are given in units of 2^exponent. It is 0 unless an estimator samples, see
        `Sampler.estimate`, and the largest value is not an `ORDINARY` one.
    """

    def __init__(
        self,
        game: Game,
        budget: int,
        *,
        batch_size: int | None = None,
        progress: OnEvaluations | None = None,
        most_seconds: float | None = None,
    ) -> None:
        self.game = game
        self.budget = budget
        self.most_seconds = most_seconds
        self.without_estimate = False
        self.exponent = 0
        self._largest: float | None = None
        self._batch_size = batch_size
        self._progress = progress
        self._calls = _Split(self)
        self._memory = CachedGame(self._calls, limit=budget)
        self._table_empty: float | None = None

    def within(self, budget: int) -> Evaluator:
        """Return an evaluator with a smaller budget that shares what is known already."""
        part = Evaluator(self.game, budget)
        part._memory = CachedGame(self._memory, limit=budget)
        return part

    def go_slowly(self) -> None:
        """Take as long as it takes from now on, with reports every few coalitions."""
        self.most_seconds = None
        if self._progress is not None and self._batch_size is None:
            # Of a game that is shared among workers, so many chunks.
            self._batch_size = ROWS_PER_REPORT * int(getattr(self.game, "chunk_size", 1))

    @property
    def n_players(self) -> int:
        """Number of players."""
        return int(self.game.n_players)

    @property
    def evaluations(self) -> int:
        """Number of distinct coalitions evaluated so far."""
        return self._memory.evaluations

    @property
    def seconds(self) -> float:
        """How long the game has taken for what was asked through here."""
        return self._calls.seconds

    @property
    def left(self) -> int:
        """Number of evaluations left in the budget."""
        return self.budget - self.evaluations

    @property
    def kernel(self) -> Kernel | None:
        """The game as compiled code, if it offers that."""
        return kernel_of(self.game)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The values of the empty and of the grand coalition."""
        empty, grand = self(np.repeat([[False], [True]], self.n_players, axis=1))
        return float(empty), float(grand)

    @property
    def empty(self) -> float | None:
        """The value of the empty coalition if it is known; nothing is evaluated for it."""
        table = table_of(self.game)
        if table is not None:
            return float(table[0])
        nobody = np.zeros((1, self.n_players), np.bool_)
        return self._table_empty if self.unseen(nobody) else float(self._memory(nobody)[0])

    def __call__(self, coalitions: BoolMatrix) -> FloatVector:
        """Return the values of the coalitions [m, n], one for each row."""
        values = self._memory(coalitions)
        # Coalitions come in pairs, so one evaluation that is left may be of no use.
        if self.without_estimate and self.left < 2:
            raise SpentError
        return self._in_units(values)

    def sampled_in_units(self, sampler: Sampler, seed: int) -> Sampled:
        """Return the estimate of a sampler that sees values of an ordinary size.

        The squares of values of 1e160 overflow, and those of 1e−160 vanish. A power of two is
        exact, so it changes nothing else. The first values that are not 0 tell which one; if there
        is a much larger one later, the estimate begins anew, with the same coalitions.
        """
        self._largest = 0.0
        while True:
            try:
                found = sampler.estimate(self, seed=seed)
            except OtherUnitsError:
                self.__dict__.pop("ends", None)
                continue
            break
        if not self.exponent:
            return found
        with np.errstate(over="ignore"):  # what is infinite is refused by the door
            values, stderr = np.ldexp((found.values, found.stderr), self.exponent)
        return replace(found, values=values, stderr=stderr)

    def in_units(self, number: float) -> float:
        """Return a number of the game's own units, such as a threshold, in those of the values."""
        with np.errstate(over="ignore"):
            return float(np.ldexp(number, -self.exponent))

    def _in_units(self, values: FloatVector) -> FloatVector:
        if self._largest is not None and len(values):
            known, self._largest = self._largest, max(self._largest, float(np.abs(values).max()))
            exponent = exponent_of(self._largest)
            if exponent > self.exponent + ORDINARY or (not known and exponent < -ORDINARY):
                self.exponent = exponent
                if known:
                    raise OtherUnitsError
        return np.ldexp(values, -self.exponent) if self.exponent else values

    def unseen(self, coalitions: BoolMatrix) -> int:
        """Return how many distinct coalitions among these would cost an evaluation."""
        return self._memory.unseen(coalitions)

    def table(self) -> FloatVector:
        """Return all 2^n values; they are not remembered one by one, unless some are already."""
        rows = min(ROWS_PER_CALL, self._batch_size or ROWS_PER_CALL)
        if self.evaluations:
            return value_table(self._memory, rows_per_call=rows)
        known = None
        if self.most_seconds is not None:
            start = clock()
            known = self._memory(coalitions_of_masks(range(PROBE), self.n_players))
            self._check_speed((clock() - start) / PROBE, (1 << self.n_players) - PROBE)
        table = value_table(self.game, rows_per_call=rows, between=self._after_batch, known=known)
        self._table_empty = float(table[0])
        return table

    def _after_batch(self, done: int, size: int) -> None:
        if done and self._progress is not None:
            self._progress(Evaluations(done, size))

    def _check_speed(self, seconds_each: float, rows_left: int) -> None:
        if self.most_seconds is not None and seconds_each * rows_left > self.most_seconds:
            raise TooLongError


@answers_checked
class _Split:
    """The game in calls of at most the evaluator's batch size, with a report after each."""

    def __init__(self, owner: Evaluator) -> None:
        self._owner = owner
        self._done = 0
        self.seconds = 0.0

    @property
    def n_players(self) -> int:
        return self._owner.n_players

    def __call__(self, rows: BoolMatrix) -> FloatVector:
        owner = self._owner
        size = owner._batch_size or max(1, len(rows))
        values = np.empty(len(rows))
        start = 0
        while start < len(rows):
            step = size
            if owner.most_seconds is not None:
                if not self._done:
                    step = min(size, PROBE)
                else:
                    try:
                        owner._check_speed(self.seconds / self._done, len(rows) - start)
                    except TooLongError:
                        owner._memory.remember(rows[:start], values[:start])
                        raise
            part = rows[start : start + step]
            begun = clock()
            values[start : start + step] = evaluate(owner.game, part)
            self.seconds += clock() - begun
            self._done += len(part)
            start += len(part)
            if owner._progress is not None:
                owner._progress(Evaluations(self._done, owner.budget))
        return values


# ----------------------------------------------------------------------------------------
# The arguments of a call, the method, and when to stop

EXACT_PLAYERS = 16
"""Up to this many players the default budget is all 2^n coalitions."""

COMPILED_PLAYERS = 20
"""The same for a compiled game, which takes a twentieth of a second for a million of them."""

BUDGET_PER_PLAYER = 100
"""Default budget of larger games, for each player."""

MOST_REPEATS = 100_000
"""Budgets larger than this and than 2^n are cut to the larger of the two."""

PORTFOLIO_BUDGET = 50_000
"""Up to this budget a portfolio of surrogates takes seconds, see ``benchmarks/values.py``."""

LONG = 10.0
"""Seconds from which on there should be an estimate to return if somebody presses Ctrl-C."""

MOST_SHARE = 0.2
"""An estimate on the way may take this share of the time that the game takes for it."""

FIRST_SHARE = 16
"""With a target error, the first look is after a 16th of the budget, and then at each doubling."""

S = TypeVar("S", bound=Sampler)


class Choice(NamedTuple):
    """A method and why it was taken."""

    method: str
    reason: str


ASKED_FOR = "you asked for it"

NOT_SEEN = "a rare coalition that is far off is in the errors only if it was among those evaluated"
"""What no sample can tell, so every estimate from one says it."""


class Sampling(TypedDict, total=False):
    """What every front door passes on as it came."""

    target_error: float | None
    batch_size: int | None
    progress: OnEvaluations | None
    resume: str | Path | None
    interruptible: bool


def _options_of(kind: Callable[..., Sampler]) -> list[str]:
    """Return what an estimator can be told beside the shared arguments."""
    return [each.name for each in fields(kind)]  # type: ignore[arg-type]


SHARED = ("method", "budget", "seed", *Sampling.__annotations__)
"""The arguments of every method."""


@dataclass(frozen=True)
class Concept:
    """What is asked of a game.

    Attributes
    ----------
    methods
        Makes the estimator of each method; ``"exact"`` is one of them.
    closed_form
        Name of the function by which a game may know the answer, see `Game`.
    choose
        Returns what ``"auto"`` samples with, from players and budget.
    least
        Returns the least default budget of a game that is sampled.
    what
        Words for messages, after "there is no method named …".
    """

    methods: Mapping[str, Callable[..., Sampler]]
    closed_form: str
    choose: Callable[[int, int], Choice]
    least: Callable[[int], int] = lambda n_players: 0
    what: str = ""

    def answer(
        self,
        game: Game,
        method: str | Sampler,
        budget: int | None,
        seed: Seed,
        *,
        target_error: float | None = None,
        batch_size: int | None = None,
        progress: OnEvaluations | None = None,
        resume: str | Path | None = None,
        interruptible: bool = True,
        options: Mapping[str, Any] | None = None,
    ) -> Estimate:
        """Return the estimate, after every argument was looked at once."""
        n = players_of(game)
        if budget is not None:
            budget = checked_budget(budget, n)
        if batch_size is not None:
            batch_size = whole_number(batch_size, "the batch size", 1)
        if target_error is not None:
            target_error = number_in(target_error, "the target error", 0.0, inf)
        seed = seed_of(seed)
        default = max(default_budget(game), self.least(n))
        estimator, choice = self._chosen(game, method, budget or default, options or {})
        if n == 1:  # no sampler has anything to sample
            estimator = self.methods["exact"]()
            choice = Choice("exact", "a lone player gets everything")
        if budget is None:
            exact = choice.method == "exact"
            budget = 1 << n if exact else max(default, estimator.minimum_budget(n))
        if resume is not None and not self._is_known(game):
            game = _resumed(game, resume, batch_size)
        heard = interruptible and _hears_ctrl_c()
        evaluator = Evaluator(
            game,
            budget,
            batch_size=batch_size,
            progress=progress,
            most_seconds=LONG if heard and target_error is None else None,
        )
        try:
            sampled, choice, stopped = self._estimated(
                estimator, choice, evaluator, target_error, seed, heard
            )
        except MemoryError:
            raise BudgetError(
                f"{choice.method} needs more memory than there is for {n} players and a budget of"
                f" {budget} evaluations; allow fewer"
            ) from None
        if not (np.isfinite(sampled.values).all() and np.isfinite(sampled.stderr).all()):
            raise InvalidInputError(
                "sums of the game's values are beyond the largest float; divide the values by a"
                " constant, which divides what comes out"
            )
        evaluations = evaluator.evaluations if sampled.evaluations is None else sampled.evaluations
        sample = choice.method != "exact" and evaluations < 1 << n
        return Estimate(
            values=sampled.values,
            stderr=sampled.stderr,
            evaluations=evaluations,
            method=choice.method,
            reason=f"{choice.reason}; {NOT_SEEN}" if sample else choice.reason,
            degrees_of_freedom=sampled.degrees_of_freedom,
            labels=labels_of(game),
            base=evaluator.empty,
            stopped=stopped,
        )

    def _chosen(
        self, game: Game, method: str | Sampler, budget: int, options: Mapping[str, Any]
    ) -> tuple[Sampler, Choice]:
        if isinstance(method, Sampler):
            if options:
                raise UnknownKeywordError(
                    f"the method is an estimator with its options set; leave out"
                    f" {', '.join(options)}"
                )
            return method, Choice(self._name_of(method), ASKED_FOR)
        if not isinstance(method, str):
            raise InvalidInputError(
                f"the method is {method!r}; it must be a name or an estimator with its options set"
            )
        choice = Choice(method, ASKED_FOR)
        if method == "auto":
            for option in options:
                owners = [
                    name for name in self.methods if option in _options_of(self.methods[name])
                ]
                if owners:
                    raise UnknownKeywordError(
                        f"name the method that {option} is for: {', '.join(owners)}"
                    )
                raise unknown_keyword("shapley", option, SHARED)
            choice = self.automatic(game, budget)
        elif method not in self.methods:
            raise UnknownNameError(
                f"there is no method named {method!r}{self.what};"
                f" {did_you_mean(method, self.methods)}there are: auto, {', '.join(self.methods)}"
            )
        kind = self.methods[choice.method]
        for option in options:
            if option not in _options_of(kind):
                known = [*_options_of(kind), *SHARED]
                raise unknown_keyword(f"shapley by {choice.method}", option, known)
        return kind(**options), choice

    def automatic(self, game: Game, budget: int) -> Choice:
        """Return the method that ``"auto"`` stands for, and why."""
        n = players_of(game)
        if closed_form_of(game, self.closed_form) is not None:
            return Choice("exact", "the game has a closed form")
        if table_of(game) is not None:
            return Choice("exact", f"the game has its table of 2^{n} values")
        if n < 63 and 1 << n <= budget:
            return Choice("exact", f"all 2^{n} = {1 << n} coalitions fit in the budget of {budget}")
        return self.choose(n, budget)

    def _name_of(self, estimator: Sampler) -> str:
        """Return the name an estimator is registered under, or that of its class."""
        return next(
            (name for name in self.methods if self.methods[name] is type(estimator)),
            type(estimator).__name__,
        )

    def _is_known(self, game: Game) -> bool:
        """Tell whether the answer needs no value of the game."""
        return closed_form_of(game, self.closed_form) is not None or table_of(game) is not None

    def _estimated(
        self,
        estimator: Sampler,
        choice: Choice,
        evaluator: Evaluator,
        target_error: float | None,
        seed: int,
        interruptible: bool,
    ) -> _Outcome:
        """Return the estimate with the whole budget, or with less, and why it is less."""
        n, method = evaluator.n_players, choice.method
        exact = method == "exact"
        least = 0 if exact and self._is_known(evaluator.game) else estimator.minimum_budget(n)
        if evaluator.budget < least:
            raise BudgetError(
                f"{method} needs at least {least} evaluations for {n} players, but the budget"
                f" is {evaluator.budget}"
            )
        last = _Stage(estimator, choice, evaluator.budget)
        if target_error is None or exact:
            try:
                return _Outcome(evaluator.sampled_in_units(estimator, seed), choice, "")
            except TooLongError:
                evaluator.go_slowly()
            # There is time for an estimate on the way, which Ctrl-C can return.
            rough = last
            if exact:
                named = self.choose(n, evaluator.budget).method
                reason = f"Ctrl-C came before all 2^{n} coalitions were evaluated"
                rough = _Stage(self.methods[named](), Choice(named, reason), evaluator.budget)
            least = max(rough.sampler.minimum_budget(n), 2 * n + 2)
            # Where a smaller budget asks for other coalitions it would cost evaluations.
            stages = _doubled(rough, least) if exact or estimator.nested else []
            return _staged([*stages, last], evaluator, None, seed, interruptible)
        if not estimator.nested:
            raise InvalidInputError(
                f"{method} cannot stop early at a target error: with another budget it evaluates"
                " other coalitions; leave the target error out"
            )
        stages = _doubled(last, max(least, evaluator.budget // FIRST_SHARE))
        return _staged([*stages, last], evaluator, target_error, seed, interruptible)


class _Stage(NamedTuple):
    """An estimate on the way: who makes it, under which name, with how many evaluations."""

    sampler: Sampler
    choice: Choice
    budget: int

    def estimated(self, evaluator: Evaluator, seed: int) -> _Outcome:
        """Return the estimate and how many evaluations it has."""
        sampled = evaluator.sampled_in_units(self.sampler, seed)
        counted = evaluator.evaluations if sampled.evaluations is None else sampled.evaluations
        return _Outcome(replace(sampled, evaluations=counted), self.choice, "")


class _Outcome(NamedTuple):
    """The numbers, who found them, and why with less than the whole budget, if so."""

    sampled: Sampled
    choice: Choice
    stopped: str


def _doubled(last: _Stage, first: int) -> list[_Stage]:
    """Return the stages before the last, from the first on, each with about twice the budget."""
    budgets = [last.budget]
    while budgets[0] > first:
        budgets.insert(0, max(first, budgets[0] // 2))
    return [last._replace(budget=budget) for budget in budgets[:-1]]


def _staged(
    stages: list[_Stage],
    evaluator: Evaluator,
    target_error: float | None,
    seed: int,
    interruptible: bool,
) -> _Outcome:
    """Return the last estimate of a row with more and more evaluations, and why it is the last.

    Each stage has the evaluations of the one before. Where the game is fast beside the estimates, a
    stage is evaluated only. Ctrl-C ends the stage at work and returns the one before, a second one
    the last estimate; before the first there is nothing to return, and it goes its usual way.
    """
    latest: _Outcome | None = None
    evaluated: _Stage | None = None  # after the latest estimate, without one of its own
    overhead = 0.0  # what the estimate before took beside the game
    try:
        for stage in stages:
            whole = stage is stages[-1]
            each = evaluator.seconds / max(1, evaluator.evaluations)
            ahead = each * (stage.budget - evaluator.evaluations)
            begun, asked = clock(), evaluator.seconds
            part = evaluator if whole else evaluator.within(stage.budget)
            hurry = target_error is None and not whole and overhead > MOST_SHARE * ahead
            part.without_estimate = hurry
            try:
                latest = stage.estimated(part, seed)
            except SpentError:
                evaluated = stage
                continue
            evaluated = None
            overhead = clock() - begun - (evaluator.seconds - asked)
            met = target_error is not None and latest.sampled.stderr.max() <= target_error
            if met and not whole:
                return latest._replace(stopped="target error")
    except KeyboardInterrupt:
        if latest is None or not interruptible:
            raise
        if evaluated is not None:
            with contextlib.suppress(KeyboardInterrupt):
                latest = evaluated.estimated(evaluator.within(evaluated.budget), seed)
        return latest._replace(stopped="interrupted")
    assert latest is not None
    return latest


def _hears_ctrl_c() -> bool:
    """Tell whether Ctrl-C ends this call, and no other code handles it."""
    ours = threading.current_thread() is threading.main_thread()
    return ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _resumed(game: Game, folder: str | Path, batch_size: int | None) -> Game:
    """Return the game with its values kept in the folder; work that is shared stays shared."""
    from coalitions.execution.store import stored
    from coalitions.execution.workers import ParallelGame

    if isinstance(game, ParallelGame):
        return game.around(stored(game.game, folder, batch_size=game.chunk_size))
    return stored(game, folder, batch_size=batch_size or 1)


def default_budget(game: Game) -> int:
    """Return the budget of a game if none is given."""
    n = players_of(game)
    exact = EXACT_PLAYERS if kernel_of(game) is None else COMPILED_PLAYERS
    return 1 << n if n <= exact else BUDGET_PER_PLAYER * n


def checked_budget(budget: object, n_players: int) -> int:
    """Return the budget as a whole number, and no more of it than makes sense.

    There are only 2^n coalitions. More evaluations than that are repeats, which cost nothing but
    are drawn one by one; so the budget of a small game ends at 100 000.
    """
    whole = whole_number(budget, "the budget", 1)
    return min(whole, max(1 << n_players, MOST_REPEATS))
