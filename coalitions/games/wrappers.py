"""Games that wrap games: a cache, a normalised or a restricted game, a game that reports.

Each of them is a game again and keeps batching: one call to the wrapper is at most one call to
the game inside. They compose: ``cached(normalized(game), limit=500)``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from coalitions.checks import GameLike, as_game
from coalitions.errors import BudgetError, InvalidInputError, shown, with_keywords
from coalitions.game import (
    FloatVector,
    answers_checked,
    as_coalitions,
    evaluate,
    labels_of,
)
from coalitions.structure import numbering, roster


@with_keywords()
def cached(game: GameLike, *, limit: int | None = None) -> CachedGame:
    """Return the game with a memory: no coalition is evaluated twice.

    Parameters
    ----------
    game
        Any game.
    limit
        Most evaluations the game may see; a batch that would exceed it raises `BudgetError`
        before anything of it is evaluated.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> game = cached(TableGame([0, 1, 2, 4]))
    >>> game([[1, 0], [1, 1], [1, 0]])
    array([1., 4., 1.])
    >>> game.evaluations, game.requests
    (2, 3)
    """
    return CachedGame(game, limit)


@answers_checked
class CachedGame:
    """A game that remembers; see `cached`.

    Attributes
    ----------
    evaluations
        Number of distinct coalitions the game inside was asked for.
    requests
        Number of rows this game was asked for.
    calls
        Number of calls to the game inside.
    """

    def __init__(self, game: GameLike, limit: int | None = None) -> None:
        if limit is not None and limit < 0:
            raise InvalidInputError(f"the limit is {limit}; it must not be negative")
        self.game = as_game(game)
        self.limit = limit
        self.evaluations = 0
        self.requests = 0
        self.calls = 0
        self._values: dict[bytes, float] = {}

    @property
    def n_players(self) -> int:
        """Number of players."""
        return int(self.game.n_players)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the players: those of the game inside."""
        return labels_of(self.game)

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return the values of the coalitions; only unseen ones are evaluated."""
        rows = as_coalitions(coalitions, self.n_players)
        keys = _keys(rows)
        self.requests += len(keys)
        known = self._values
        fresh: dict[bytes, int] = {}
        for place, key in enumerate(keys):
            if key not in known and key not in fresh:
                fresh[key] = place
        if fresh:
            if self.limit is not None and self.evaluations + len(fresh) > self.limit:
                raise BudgetError(
                    f"{self.evaluations} evaluations are spent and {len(fresh)} more are asked"
                    f" for, but the limit is {self.limit}"
                )
            values = evaluate(self.game, rows[list(fresh.values())])
            self.evaluations += len(fresh)
            self.calls += 1
            known.update(zip(fresh, values.tolist(), strict=True))
        return np.fromiter((known[key] for key in keys), np.float64, len(keys))

    def remember(self, coalitions: ArrayLike, values: FloatVector) -> None:
        """Take over values that the game inside has returned to somebody else."""
        keys = _keys(as_coalitions(coalitions, self.n_players))
        before = len(self._values)
        self._values.update(zip(keys, values.tolist(), strict=True))
        self.evaluations += len(self._values) - before

    def unseen(self, coalitions: ArrayLike) -> int:
        """Return how many distinct coalitions among these have not been evaluated yet."""
        keys = _keys(as_coalitions(coalitions, self.n_players))
        return len({key for key in keys if key not in self._values})

    def __repr__(self) -> str:
        return f"cached({self.game!r}, evaluations={self.evaluations})"


@with_keywords()
def normalized(game: GameLike, *, scale: bool = False) -> NormalizedGame:
    """Return the game with v(∅) = 0 and, if `scale`, v(N) = 1.

    Shapley values do not change by the shift and are divided by v(N) − v(∅) by the scaling. Both
    values are asked for once, in the first call.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> normalized(TableGame([3, 4, 5, 8]), scale=True)([[0, 0], [1, 0], [1, 1]])
    array([0. , 0.2, 1. ])
    """
    return NormalizedGame(game, scale)


class NormalizedGame:
    """A game shifted to v(∅) = 0 and maybe scaled to v(N) = 1; see `normalized`."""

    def __init__(self, game: GameLike, scale: bool = False) -> None:
        self.game = as_game(game)
        self.scale = scale
        self._ends: tuple[float, float] | None = None

    @property
    def n_players(self) -> int:
        """Number of players."""
        return int(self.game.n_players)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the players: those of the game inside."""
        return labels_of(self.game)

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return the shifted values of the coalitions."""
        rows = as_coalitions(coalitions, self.n_players)
        if self._ends is None:
            # The two ends ride along in the first batch: one call to the game, not two.
            ends = np.repeat([[False], [True]], self.n_players, axis=1)
            values = evaluate(self.game, np.concatenate([ends, rows]))
            self._ends = float(values[0]), float(values[1])
            values = values[2:]
        else:
            values = evaluate(self.game, rows)
        empty, grand = self._ends
        if not self.scale:
            return values - empty
        if grand == empty:
            raise InvalidInputError(
                f"v(N) and v(∅) are both {grand:g}, so the game cannot be scaled to v(N) = 1"
            )
        return (values - empty) / (grand - empty)

    def __repr__(self) -> str:
        return f"normalized({self.game!r}{', scale=True' if self.scale else ''})"


def restricted(game: GameLike, players: Iterable[Hashable]) -> RestrictedGame:
    """Return the game of some players only; the others never take part.

    Player k of the new game is ``players[k]`` of the old one, by number or by name.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> game = restricted(TableGame([0, 1, 2, 4, 0, 9, 9, 9]), [1, 0])
    >>> game([[1, 0], [1, 1]])
    array([2., 4.])
    """
    return RestrictedGame(game, players)


class RestrictedGame:
    """The subgame of some players; see `restricted`."""

    def __init__(self, game: GameLike, players: Iterable[Hashable]) -> None:
        self.game = as_game(game)
        if isinstance(players, str) or not isinstance(players, Iterable):
            raise InvalidInputError(f"players are a list of players, not {shown(players)}")
        chosen = list(map(numbering(roster(self.game), "players"), players))
        if not chosen or len(set(chosen)) < len(chosen):
            raise InvalidInputError("players must be a list of different players, at least one")
        self.players = np.array(chosen, np.int64)

    @property
    def n_players(self) -> int:
        """Number of players that are left."""
        return len(self.players)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the players that are left."""
        names = labels_of(self.game)
        return tuple(names[player] for player in self.players)

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return the values of the coalitions of the players that are left."""
        rows = as_coalitions(coalitions, self.n_players)
        wide = np.zeros((len(rows), self.game.n_players), np.bool_)
        wide[:, self.players] = rows
        return evaluate(self.game, wide)

    def __repr__(self) -> str:
        return f"restricted({self.game!r}, {self.players.tolist()})"


def reported(game: GameLike, report: Callable[[int], None]) -> ReportedGame:
    """Return the game that tells `report`, after each batch, how many rows it has evaluated.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> counts = []
    >>> game = reported(TableGame([0, 1, 2, 4]), counts.append)
    >>> _ = game([[1, 0], [0, 1]]), game([1, 1])
    >>> counts
    [2, 3]
    """
    return ReportedGame(game, report)


class ReportedGame:
    """A game that reports its progress; see `reported`."""

    def __init__(self, game: GameLike, report: Callable[[int], None]) -> None:
        self.game = as_game(game)
        self.report = report
        self.rows = 0

    @property
    def n_players(self) -> int:
        """Number of players."""
        return int(self.game.n_players)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the players: those of the game inside."""
        return labels_of(self.game)

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return the values of the coalitions, and report."""
        values = evaluate(self.game, as_coalitions(coalitions, self.n_players))
        self.rows += len(values)
        self.report(self.rows)
        return values

    def __repr__(self) -> str:
        return f"reported({self.game!r})"


def _keys(rows: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> list[bytes]:
    """Return one hashable key for each row."""
    packed = np.ascontiguousarray(np.packbits(rows, axis=1))
    if not packed.size:
        return [b""] * len(rows)
    return packed.view(f"V{packed.shape[1]}").reshape(-1).tolist()
