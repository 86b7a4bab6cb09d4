"""The simplex method in NumPy, for small problems: nothing has to be compiled."""

from __future__ import annotations

import numpy as np

from coalitions.game import BoolVector, FloatMatrix, IntVector

STEEP, SLANT = 1e-9, 1e-7
"""What is less does not count as a slope: in a column, and in a row."""

FEASIBLE, NEARLY = 1e-9, 1e-4
"""Levels may be wrong by so much, and by so much where nothing can be done about it: right-hand
sides are off by a millionth, which may leave no feasible levels at all."""


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


def plain_dual_pivots(
    table: FloatMatrix, basis: IntVector, numbers: IntVector, barred: BoolVector, most: int
) -> int:
    """Make levels feasible by at most so many exchanges of the dual simplex method.

    Parameters
    ----------
    table, basis, numbers, most
        As for `plain_pivots`; no column brings anything, but levels may be negative.
    barred
        Which columns of the basis must have no level at all [m]. It is changed.

    Returns
    -------
    int
        How many exchanges there were, −1 if no column is left that could enter.
    """
    levels, brings = table[:-1, -1], table[-1, :-1]
    ratios, change = np.empty(len(brings)), np.empty_like(table)
    for count in range(most):
        wrong = np.where(barred, np.abs(levels), -levels)
        leaving = int(wrong.argmax())
        if wrong[leaving] <= FEASIBLE:
            return count
        slopes = table[leaving, :-1] if levels[leaving] > 0.0 else -table[leaving, :-1]
        ratios.fill(np.inf)
        np.divide(-brings, slopes, out=ratios, where=slopes > SLANT)
        entering = int(ratios.argmin())
        if slopes[entering] <= SLANT:
            return count if wrong[leaving] <= NEARLY else -1
        row = table[leaving] / table[leaving, entering]
        column = table[:, entering].copy()
        column[leaving] -= 1.0
        np.multiply(column[:, None], row, out=change)
        table -= change
        basis[leaving] = numbers[entering]
        barred[leaving] = False
    return most
