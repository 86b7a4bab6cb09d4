"""The assignment game: two sides of a market, and what each pair of them gains."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from coalitions.game import BoolMatrix, FloatMatrix, FloatVector
from coalitions.problems.named import NamedGame, names_of, numbers


def assignment_game(gains: ArrayLike, names: Iterable[Hashable] | None = None) -> AssignmentGame:
    r"""Return the game in which a coalition gains what its best pairs gain together.

    .. math:: v(S) = \max \sum_{(i, j)} a_{ij}

    over all ways to pair rows with columns that are both in S, each at most once [Shapley1971]_.
    Nobody has to trade: a negative gain counts as 0.

    Parameters
    ----------
    gains
        What the pair of a row (a seller, a left glove) and a column (a buyer, a right glove) gains.
    names
        Names of the players: the rows first, then the columns.

    Examples
    --------
    One left glove, two right ones:

    >>> from coalitions import shapley
    >>> shapley(assignment_game([[1, 1]])).values.round(3)
    array([0.667, 0.167, 0.167])
    """
    matrix = numbers(gains, "gains", 2)
    return AssignmentGame(matrix, names_of(names, sum(matrix.shape), "rows and columns"))


class AssignmentGame(NamedGame):
    """The game of the best pairs; see `assignment_game`."""

    def __init__(self, gains: FloatMatrix, labels: tuple[str, ...]) -> None:
        self.gains = np.maximum(gains, 0.0)
        self.labels = labels

    def _values(self, rows: BoolMatrix) -> FloatVector:
        return np.array([self._best(row) for row in rows], np.float64)

    def _best(self, row: BoolMatrix) -> float:
        from scipy.optimize import linear_sum_assignment

        sellers = len(self.gains)
        part = self.gains[np.ix_(row[:sellers], row[sellers:])]
        return float(part[linear_sum_assignment(part, maximize=True)].sum())
