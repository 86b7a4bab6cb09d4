"""Evaluator: a game with a budget, a memory and a progress report."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from coalitions.compiling.clock import clock
from coalitions.enumeration import ROWS_PER_CALL, coalitions_of_masks, value_table
from coalitions.game import BoolMatrix, FloatVector, Game, Kernel, evaluate, kernel_of, table_of
from coalitions.games.wrappers import CachedGame

if TYPE_CHECKING:
    from coalitions.sampling.estimator import Sampled, Sampler

EvaluationProgress = Callable[[int, int], None]
"""Called with the evaluations made and the budget."""

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
        Values are told in units of 2^exponent. It is 0 unless an estimator samples, see
        `Sampler.estimate`, and the largest value is not an `ORDINARY` one.
    """

    def __init__(
        self,
        game: Game,
        budget: int,
        *,
        batch_size: int | None = None,
        progress: EvaluationProgress | None = None,
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
        if self.without_estimate and self.left < 2:  # of pairs, one may be left over
            raise SpentError
        return self._in_units(values)

    def told_in_units(self, sampler: Sampler, seed: int) -> Sampled:
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
            self._progress(done, size)

    def _check_speed(self, seconds_each: float, rows_left: int) -> None:
        if self.most_seconds is not None and seconds_each * rows_left > self.most_seconds:
            raise TooLongError


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
                owner._progress(self._done, owner.budget)
        return values
