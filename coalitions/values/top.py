"""top_k(game, k): the players with the k largest values, with no more evaluations than needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coalitions.checks import GameLike, Seed, as_game, seed_of, whole_number
from coalitions.errors import InvalidInputError, with_keywords
from coalitions.execution.progress import Evaluations, OnEvaluations
from coalitions.game import closed_form_of, players_of, table_of
from coalitions.games.wrappers import cached
from coalitions.results import PublicResult, Row
from coalitions.values.budget import checked_budget, default_budget
from coalitions.values.estimate import Estimate
from coalitions.values.shapley import best_sampler, shapley

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

FIRST_LOOK = 3
"""Evaluations for each player before the first look; the second, with twice as many, may settle."""

GROWTH = 2.0
"""From one look to the next there are so many times as many evaluations."""


@dataclass(frozen=True, eq=False)
class Top(PublicResult):
    """The players with the k largest values.

    Attributes
    ----------
    players
        Their numbers, the largest value first.
    settled
        Whether the statement holds with the confidence asked for. If not, these are the k largest
        of the estimates, and `open` says who else may belong to them.
    confidence
        The confidence asked for; 1 if the values are exact.
    estimate
        The values at the end, with `evaluations`.
    open
        Players that may or may not belong to the k largest; none if settled.
    """

    players: tuple[int, ...]
    settled: bool
    confidence: float
    estimate: Estimate
    open: tuple[int, ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """Names of the players, the largest value first."""
        return tuple(self.estimate.names[player] for player in self.players)

    @property
    def evaluations(self) -> int:
        """How many distinct coalitions were evaluated."""
        return self.estimate.evaluations

    def to_dict(self) -> dict[str, Any]:
        """Return the players by name, whether they are settled, and what the values are."""
        return {
            "top": list(self.named),
            "settled": self.settled,
            "confidence": self.confidence,
            "open": [self.estimate.names[player] for player in self.open],
            **self.estimate.to_dict(),
        }

    def _rows(self) -> list[Row]:
        rows = self.estimate._rows()
        return [rows[player] | {"settled": player not in self.open} for player in self.players]

    def _below(self) -> str:
        settled = f"settled with {self.confidence:.4g}" if self.settled else "not settled"
        return f"{settled}; {self.estimate._below()}"

    def plot(self, kind: str | None = None, path: str | Path | None = None) -> Figure:
        """Return a matplotlib figure of all values; see `Estimate.plot`."""
        return self.estimate.plot(kind, path)


@with_keywords()
def top_k(
    game: GameLike,
    k: int,
    confidence: float = 0.95,
    *,
    budget: int | None = None,
    seed: Seed = 0,
    batch_size: int | None = None,
    progress: OnEvaluations | None = None,
) -> Top:
    """Return the players with the k largest Shapley values; stop as soon as they are settled.

    The values are estimated with more and more evaluations, each estimate with all that are there.
    The k largest are settled when each of them is above each of the others by more than the error
    of the difference, and the estimate before had the same k on top. This holds for all these pairs
    of players and all looks together (Bonferroni), with the confidence asked for, as far as the
    standard errors are right: see `shapley` and what it says about them. Ctrl-C returns what the
    last look has found.

    Parameters
    ----------
    game
        Any game.
    k
        How many players, from 1 to all but one.
    confidence
        How likely the set is to be right, between 0 and 1.
    budget
        Most evaluations; as for `shapley` if there is none. If all 2^n coalitions fit, the last
        look is exact.
    seed, batch_size, progress
        As for `shapley`.

    Examples
    --------
    >>> from coalitions import FunctionGame
    >>> game = FunctionGame(lambda rows: rows @ np.arange(30.0), 30)
    >>> top = top_k(game, 3)
    >>> top.players, top.settled, top.evaluations < 500
    ((29, 28, 27), True, True)
    """
    game = as_game(game)
    n = players_of(game)
    k, number = whole_number(k, "k", 1), seed_of(seed)
    if k >= n:
        raise InvalidInputError(f"k is {k}, but there are {n} players; ask for fewer than all")
    if not 0 < confidence < 1:
        raise InvalidInputError(
            f"the confidence is {confidence}; it must lie between 0 and 1, such as 0.95"
        )
    if closed_form_of(game) is not None or table_of(game) is not None:
        return _top(shapley(game), k, confidence, 1)
    most = default_budget(game) if budget is None else checked_budget(budget, n)
    looks = _looks(n, most)
    chances = max(1, len(looks) - 1)  # the first look settles nothing, see `_confirmed`
    memory = cached(game)
    exact = n < 63 and 1 << n <= most
    sampler = best_sampler(n, most)  # one for all looks, so that nothing is asked for twice

    def report(look: Evaluations) -> None:
        del look  # its figures are of this look alone
        if progress is not None:
            progress(Evaluations(memory.evaluations, most))

    found: Top | None = None
    try:
        for look in looks:
            complete = exact and look == most
            estimate = shapley(
                memory,
                "auto" if complete else sampler.method,
                look,
                seed=number,
                batch_size=batch_size,
                progress=report,
                interruptible=False,
            )
            reason = estimate.reason if complete else sampler.reason
            estimate = replace(estimate, evaluations=memory.evaluations, reason=reason)
            before, found = found, _top(estimate, k, confidence, chances)
            if found.settled and not _confirmed(found, before):
                found = replace(found, settled=False, open=tuple(range(n)))
            if found.settled:
                break
    except KeyboardInterrupt:
        if found is None:
            raise
        return replace(found, estimate=replace(found.estimate, stopped="interrupted"))
    assert found is not None
    return found


def _confirmed(found: Top, before: Top | None) -> bool:
    """Tell whether the look before had the same players, if only by its estimates.

    Rarely a few coalitions make a game look simpler than it is, with errors that are far too small;
    hardly ever do they agree with twice as many.
    """
    if found.estimate.method == "exact":
        return True
    return before is not None and set(before.players) == set(found.players)


def _looks(n_players: int, budget: int) -> list[int]:
    """Return the evaluations at each look; the last has the whole budget."""
    looks = [budget]
    while looks[0] / GROWTH >= FIRST_LOOK * n_players:
        looks.insert(0, int(looks[0] / GROWTH))
    return looks


def _top(estimate: Estimate, k: int, confidence: float, looks: int) -> Top:
    """Return the k largest of an estimate, and whether they are settled."""
    order = np.argsort(-estimate.values, kind="stable")
    chosen, others = order[:k], order[k:]
    players = tuple(chosen.tolist())
    if estimate.method == "exact":
        return Top(players, True, 1.0, estimate)
    # One-sided, for each of the chosen and each of the others. Players' errors are hardly related,
    # but that they add up to 0: so those of two go apart a little.
    n = len(order)
    tail = (1 - confidence) / (k * (n - k) * looks)
    variance = estimate.stderr**2 * (n / (n - 1))
    spread = np.sqrt(variance[chosen][:, None] + variance[others])
    gap = estimate.values[chosen][:, None] - estimate.values[others]
    near = gap <= estimate.standard_errors(1 - 2 * tail) * spread
    unsure = [*chosen[near.any(axis=1)], *others[near.any(axis=0)]]
    return Top(players, not unsure, confidence, estimate, tuple(sorted(map(int, unsure))))
