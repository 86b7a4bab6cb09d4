"""One door for all values that can be sampled: budget, method, seed and stopping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple, TypedDict, TypeVar

from coalitions.checks import Seed, number_in, seed_of, whole_number
from coalitions.errors import BudgetError, InvalidInputError, UnknownNameError, did_you_mean
from coalitions.game import Game, closed_form_of, kernel_of, labels_of, players_of, table_of
from coalitions.sampling.estimator import Estimate, Sampled, Sampler
from coalitions.sampling.evaluator import EvaluationProgress, Evaluator

EXACT_PLAYERS = 16
"""Up to this many players the default budget is all 2^n coalitions."""

COMPILED_PLAYERS = 20
"""The same for a compiled game, which takes a twentieth of a second for a million of them."""

BUDGET_PER_PLAYER = 100
"""Default budget of larger games, for each player."""

MOST_REPEATS = 100_000
"""Budgets larger than this and than 2^n are cut to the larger of the two."""

FIRST_SHARE = 16
"""With a target error, the first look is after a 16th of the budget, and then at each doubling."""

E = TypeVar("E", bound=Estimate)
S = TypeVar("S", bound=Sampler)


class Choice(NamedTuple):
    """A method and why it was taken."""

    method: str
    reason: str


ASKED_FOR = "you asked for it"


class Sampling(TypedDict, total=False):
    """What every front door passes on as it came."""

    target_error: float | None
    batch_size: int | None
    progress: EvaluationProgress | None


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
        kind: type[E],
        method: str | Sampler,
        budget: int | None,
        seed: Seed,
        *,
        target_error: float | None = None,
        batch_size: int | None = None,
        progress: EvaluationProgress | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> E:
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
        evaluator = Evaluator(game, budget, batch_size=batch_size, progress=progress)
        try:
            sampled, stopped = self._estimated(
                estimator, choice.method, evaluator, target_error, seed
            )
        except MemoryError:
            raise BudgetError(
                f"{choice.method} needs more memory than there is for {n} players and a budget of"
                f" {budget} evaluations; allow fewer"
            ) from None
        counted = sampled.evaluations
        return kind(
            values=sampled.values,
            stderr=sampled.stderr,
            evaluations=evaluator.evaluations if counted is None else counted,
            method=choice.method,
            reason=choice.reason,
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
                raise TypeError(f"set the options on the estimator: {', '.join(options)}")
            return method, Choice(self._name_of(method), ASKED_FOR)
        if not isinstance(method, str):
            raise InvalidInputError(
                f"the method is {method!r}; it must be a name or an estimator with its options set"
            )
        choice = Choice(method, ASKED_FOR)
        if method == "auto":
            if options:
                raise TypeError(f"name the method that these options are for: {', '.join(options)}")
            choice = self._automatic(game, budget)
        elif method not in self.methods:
            raise UnknownNameError(
                f"there is no method named {method!r}{self.what};"
                f" {did_you_mean(method, self.methods)}there are: auto, {', '.join(self.methods)}"
            )
        return self.methods[choice.method](**options), choice

    def _automatic(self, game: Game, budget: int) -> Choice:
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

    def _estimated(
        self,
        estimator: Sampler,
        method: str,
        evaluator: Evaluator,
        target_error: float | None,
        seed: int,
    ) -> tuple[Sampled, str]:
        """Return the estimate with the whole budget, or with less once the target is met."""
        n, game = evaluator.n_players, evaluator.game
        known = closed_form_of(game, self.closed_form) is not None or table_of(game) is not None
        least = 0 if method == "exact" and known else estimator.minimum_budget(n)
        if evaluator.budget < least:
            raise BudgetError(
                f"{method} needs at least {least} evaluations for {n} players, but the budget"
                f" is {evaluator.budget}"
            )
        if target_error is None or method == "exact":
            return estimator.estimate(evaluator, seed=seed), ""
        if not estimator.nested:
            raise InvalidInputError(
                f"{method} cannot stop early at a target error: with another budget it evaluates"
                " other coalitions; leave the target error out"
            )
        share = FIRST_SHARE
        while True:
            part = evaluator.within(max(least, evaluator.budget // share))
            sampled = estimator.estimate(part, seed=seed)
            if part.budget == evaluator.budget:
                return sampled, ""
            if sampled.stderr.max() <= target_error:
                return sampled, "target error"
            share = max(1, share // 2)


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
