"""The bankruptcy game: an estate that is smaller than the claims on it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from coalitions.checks import number_in
from coalitions.errors import InvalidInputError
from coalitions.game import BoolMatrix, FloatVector
from coalitions.problems.named import NamedGame, names_of, numbers


def bankruptcy_game(
    claims: ArrayLike, estate: float, names: Iterable[Hashable] | None = None
) -> BankruptcyGame:
    r"""Return the game in which a coalition gets what is left once all others are paid.

    .. math:: v(S) = \max\Bigl(0,\; E - \sum_{i \notin S} d_i\Bigr)

    Its Shapley value pays in random order of arrival [ONeill1982]_, and its nucleolus is the
    division of the Talmud [Aumann1985]_.

    Parameters
    ----------
    claims
        What each player is owed, not negative.
    estate
        What there is to share, at most the sum of the claims.
    names
        Names of the players.

    Examples
    --------
    >>> from coalitions import nucleolus
    >>> nucleolus(bankruptcy_game([100, 200, 300], estate=200)).payoff.round(6)
    array([50., 75., 75.])
    """
    owed = numbers(claims, "claims", 1)
    if (owed < 0).any():
        raise InvalidInputError(f"a claim is {owed.min():g}; claims must not be negative")
    total = float(owed.sum())
    left = number_in(estate, "the estate", 0.0, total)
    return BankruptcyGame(owed, left, names_of(names, len(owed), "claims"))


class BankruptcyGame(NamedGame):
    """The game of claims on an estate; see `bankruptcy_game`."""

    def __init__(self, claims: FloatVector, estate: float, labels: tuple[str, ...]) -> None:
        self.claims = claims
        self.estate = estate
        self.labels = labels

    def _values(self, rows: BoolMatrix) -> FloatVector:
        others = np.where(rows, 0.0, self.claims).sum(axis=1)
        return np.asarray(np.maximum(0.0, self.estate - others))
