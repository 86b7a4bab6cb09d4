"""Any Python function as a game."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector, answers_checked, as_coalitions, evaluate, has_texts

TAKES = ("matrix", "row", "members")


@answers_checked
class FunctionGame:
    """The game of a Python function.

    Parameters
    ----------
    function
        Returns the value of a coalition, or of many.
    n_players
        Number of players.
    takes
        What the function is called with: ``"matrix"``, a boolean array [m, n], for which it
        returns m values; ``"row"``, a boolean array [n]; or ``"members"``, a tuple of players.

    Examples
    --------
    >>> game = FunctionGame(lambda members: len(members) ** 2, 3, takes="members")
    >>> game([[1, 0, 1], [1, 1, 1]])
    array([4., 9.])
    """

    def __init__(
        self, function: Callable[[Any], Any], n_players: int, *, takes: str = "matrix"
    ) -> None:
        if not callable(function):
            raise InvalidInputError("a function game needs something that can be called")
        if n_players < 1:
            raise InvalidInputError(f"there are {n_players} players; at least one is needed")
        if takes not in TAKES:
            raise InvalidInputError(f"takes is {takes!r}; it must be one of {', '.join(TAKES)}")
        self.function = function
        self.takes = takes
        self._n_players = int(n_players)

    @property
    def n_players(self) -> int:
        """Number of players."""
        return self._n_players

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return the values of the coalitions, one for each row."""
        return evaluate(_Answers(self), as_coalitions(coalitions, self.n_players))

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", repr(self.function))
        return f"FunctionGame({name}, {self.n_players} players)"


class _Answers:
    """What the function says, before anybody has checked it."""

    def __init__(self, game: FunctionGame) -> None:
        self._game = game
        self.n_players = game.n_players

    def __call__(self, rows: np.ndarray[Any, np.dtype[np.bool_]]) -> Any:  # noqa: ANN401
        function = self._game.function
        if self._game.takes == "matrix":
            return function(rows)
        if self._game.takes == "row":
            answers = [function(row) for row in rows]
        else:
            answers = [function(tuple(np.flatnonzero(row).tolist())) for row in rows]
        return answers if has_texts(answers) else list(map(float, answers))
