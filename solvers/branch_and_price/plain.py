"""The simplex method in NumPy, for small problems: nothing has to be compiled."""

from __future__ import annotations

import numpy as np

from coalitions.game import FloatMatrix, IntVector

STEEP = 1e-9
"""What is less does not count as a slope."""


def plain_pivots(
    table: FloatMatrix, basis: IntVector, numbers: IntVector, tolerance: float, most: int
) -> int:
    """Improve a basis by at most so many exchanges of the primal simplex method; tell how many.

    Parameters
    ----------
    table
        What a unit of each column takes from the columns of the basis, and in the last column their
        levels [m, k + 1]; in the last row what a unit brings, and minus the value. It is changed.
    basis
        The numbers of its columns [m]. It is changed.
    numbers
        The numbers of the columns of the table [k].
    tolerance
        A column enters if it brings more.
    most
        Exchanges at most.
    """
    levels, brings = table[:-1, -1], table[-1, :-1]
    ratios, change = np.empty(len(levels)), np.empty_like(table)
    for count in range(most):
        entering = int(brings.argmax())
        if brings[entering] <= tolerance:
            return count
        column = table[:, entering].copy()
        slopes = column[:-1]
        ratios.fill(np.inf)
        np.divide(levels, slopes, out=ratios, where=slopes > STEEP)
        leaving = int(ratios.argmin())
        if slopes[leaving] <= STEEP:
            return count
        row = table[leaving] / column[leaving]
        # So that the row itself becomes what it is divided by its pivot.
        column[leaving] -= 1.0
        np.multiply(column[:, None], row, out=change)
        table -= change
        basis[leaving] = numbers[entering]
    return most
