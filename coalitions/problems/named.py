"""What all games of this room share: players with names, and coalitions that are checked once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coalitions.errors import InvalidInputError, shown
from coalitions.game import BoolMatrix, FloatMatrix, FloatVector, as_coalitions


class NamedGame(ABC):
    """A game whose players have names; a subclass says what coalitions are worth.

    Attributes
    ----------
    labels
        Names of the players.
    """

    labels: tuple[str, ...]

    @property
    def n_players(self) -> int:
        """Number of players."""
        return len(self.labels)

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return the values of the coalitions, one for each row."""
        return self._values(as_coalitions(coalitions, self.n_players))

    @abstractmethod
    def _values(self, rows: BoolMatrix) -> FloatVector:
        """Return the values of the coalitions [m, n]."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_players} players)"


def names_of(names: Iterable[Hashable] | None, n_players: int, what: str) -> tuple[str, ...]:
    """Return one name for each player: the given ones, or numbers."""
    labels = tuple(map(str, range(n_players) if names is None else names))
    if len(labels) != n_players or len(set(labels)) != n_players:
        raise InvalidInputError(
            f"there are {len(labels)} names, {len(set(labels))} of them different, for"
            f" {n_players} {what}; each needs its own"
        )
    return labels


def number(value: Any, what: str) -> float:  # noqa: ANN401 (it comes from outside)
    """Return the value as a finite number."""
    try:
        finite = float(value)
    except (TypeError, ValueError, OverflowError):
        finite = nan
    if not isfinite(finite):
        raise InvalidInputError(f"{what} is {shown(value)}; it must be a finite number")
    return finite


def numbers(values: ArrayLike, what: str, dimensions: int) -> FloatMatrix:
    """Return a copy of finite numbers with so many dimensions, none of them empty."""
    try:
        array = np.array(values, np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{what} must be numbers") from None
    if array.ndim != dimensions or not array.size or not np.isfinite(array).all():
        shape = "a list" if dimensions == 1 else f"a table with {dimensions} dimensions"
        raise InvalidInputError(
            f"{what} must be {shape} of finite numbers; what came has shape {array.shape}"
        )
    array.flags.writeable = False
    return array
