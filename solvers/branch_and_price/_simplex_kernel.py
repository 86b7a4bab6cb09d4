"""Compiled steps of the simplex method, primal and dual, on columns of zeros and ones."""

from __future__ import annotations

from coalitions.compiling import njit
from coalitions.game import BoolVector, FloatMatrix, FloatVector, IntVector

SHORT = 40
"""Columns that are looked at again before all are."""

STEADY = 1e-9
"""Entries of a direction below this are taken for zero."""

STEADY_DUAL = 1e-7
"""The same where a column is chosen by one entry alone."""

FEASIBLE, GONE = 1e-8, 1e-5
"""Levels this near to zero are not negative, and not there: right-hand sides are off, and where two
nodes are in the same columns, each by another, something must make up for that."""


@njit(cache=True)
def pivots(
    starts: IntVector,
    rows: IntVector,
    costs: FloatVector,
    active: IntVector,
    senses: IntVector,
    basis: IntVector,
    inverse: FloatMatrix,
    levels: FloatVector,
    duals: FloatVector,
    short: IntVector,
    direction: FloatVector,
    tolerance: float,
    most: int,
) -> int:
    """Improve a feasible basis by at most so many exchanges; return how many there were.

    Column c has ones in ``rows[starts[c] : starts[c + 1]]``. In the basis, −1 − 2·r is what is
    missing in row r, and −2 − 2·r its slack.

    Parameters
    ----------
    costs
        What a column brings; the objective is maximised.
    active
        Columns that may enter.
    senses
        For each row 0 if it is an equation, 1 if it is an upper, −1 if it is a lower limit.
    basis, inverse, levels, duals
        The basis, its inverse transposed, the levels of its columns, the prices of the rows.
    short, direction
        Room: [SHORT] and [rows].
    """
    m = len(basis)
    n_short = 0
    for count in range(most):
        # Who enters: the column with the largest reduced cost c − Σ π of its rows. The promising
        # ones of the last look at all columns are asked first.
        best, entering = tolerance, 0
        found = False
        for s in range(n_short):
            c = short[s]
            reduced = costs[c]
            for t in range(starts[c], starts[c + 1]):
                reduced -= duals[rows[t]]
            if reduced > best:
                best, entering, found = reduced, c, True
        if not found:
            # None of them does: look at all, and keep a list of those near the best so far.
            n_short = 0
            for s in range(len(active)):
                c = active[s]
                reduced = costs[c]
                for t in range(starts[c], starts[c + 1]):
                    reduced -= duals[rows[t]]
                if reduced > tolerance and reduced > 0.5 * best:
                    if n_short < SHORT:
                        short[n_short] = c
                        n_short += 1
                    elif reduced > best:
                        short[s % SHORT] = c
                    if reduced > best:
                        best, entering, found = reduced, c, True
            # Slacks cost nothing: what they bring is the price of their row with the wrong sign.
            for r in range(m):
                if senses[r] != 0 and -senses[r] * duals[r] > best:
                    best, entering, found = -senses[r] * duals[r], -2 - 2 * r, True
            if not found:
                return count
        _direct(starts, rows, senses, inverse, entering, direction)
        # Who leaves: the column that is the first to reach zero. Of several, the one with the
        # largest entry, because the inverse is divided by that.
        step, leaving = 0.0, -1
        for r in range(m):
            if direction[r] > STEADY:
                ratio = levels[r] / direction[r]
                if (
                    leaving < 0
                    or ratio < step - 1e-12
                    or (ratio < step + 1e-12 and direction[r] > direction[leaving])
                ):
                    step, leaving = ratio, r
        if leaving < 0:
            return count  # no limit: cannot be, every column has a node
        _exchange(basis, inverse, levels, duals, direction, leaving, entering, max(step, 0.0), best)
        # What rounding has put below zero is zero: levels stay feasible.
        for r in range(m):
            if levels[r] < 0.0:
                levels[r] = 0.0
    return most


@njit(cache=True)
def dual_pivots(
    starts: IntVector,
    rows: IntVector,
    costs: FloatVector,
    active: IntVector,
    senses: IntVector,
    basis: IntVector,
    inverse: FloatMatrix,
    levels: FloatVector,
    duals: FloatVector,
    barred: BoolVector,
    direction: FloatVector,
    row: FloatVector,
    most: int,
) -> int:
    """Make a basis whose prices pay feasible by at most so many exchanges; return how many.

    The levels of what is barred must become zero, all others must not be negative. If that cannot
    be, −1 comes back. Columns that exceed their prices all the same count as if they did not.

    Parameters
    ----------
    barred
        Places of the basis; whatever enters is not barred.
    direction, row
        Room: [rows] each.

    The others are those of `pivots`.
    """
    m = len(basis)
    for count in range(most):
        # Who leaves: what is furthest from where it must be.
        worst, leaving = 0.0, -1
        for r in range(m):
            off = abs(levels[r]) - GONE if barred[r] else -levels[r] - FEASIBLE
            if off > worst:
                worst, leaving = off, r
        if leaving < 0:
            return count
        # The prices will move along this row of the inverse until a column pays what it brings.
        sign = 1.0 if levels[leaving] > 0.0 else -1.0
        for r in range(m):
            row[r] = sign * inverse[r, leaving]
        # Who enters: the one whose price is the first to be too low, at excess / pull. Ratios are
        # compared without a division; of equal ones the steeper is safer.
        least, steepest, loss, entering, found = 0.0, 0.0, 0.0, 0, False
        for s in range(len(active)):
            c = active[s]
            pull = 0.0
            for t in range(starts[c], starts[c + 1]):
                pull += row[rows[t]]
            if pull > STEADY_DUAL:
                excess = -costs[c]
                for t in range(starts[c], starts[c + 1]):
                    excess += duals[rows[t]]
                excess = max(excess, 0.0)
                if (
                    not found
                    or excess < (least - 1e-12) * pull
                    or (excess < (least + 1e-12) * pull and pull > steepest)
                ):
                    least, steepest, loss = excess / pull, pull, excess
                    entering, found = c, True
        # The same for slacks, whose excess is the price of their row.
        for r in range(m):
            pull = senses[r] * row[r]
            if senses[r] != 0 and pull > STEADY_DUAL:
                excess = max(senses[r] * duals[r], 0.0)
                if not found or excess < least * pull:
                    least, steepest, loss = excess / pull, pull, excess
                    entering, found = -2 - 2 * r, True
        if not found:
            return -1  # prices can move for ever: the levels cannot be what they must be
        _direct(starts, rows, senses, inverse, entering, direction)
        step = levels[leaving] / direction[leaving]
        _exchange(basis, inverse, levels, duals, direction, leaving, entering, step, -loss)
        barred[leaving] = False
    return most


@njit(cache=True)
def _direct(
    starts: IntVector,
    rows: IntVector,
    senses: IntVector,
    inverse: FloatMatrix,
    entering: int,
    direction: FloatVector,
) -> None:
    """Write down how the levels of a basis fall as a column enters."""
    m = len(direction)
    for r in range(m):
        direction[r] = 0.0
    if entering < 0:
        row = (-2 - entering) // 2
        for r in range(m):
            direction[r] = senses[row] * inverse[row, r]
    else:
        for t in range(starts[entering], starts[entering + 1]):
            row = rows[t]
            for r in range(m):
                direction[r] += inverse[row, r]


@njit(cache=True)
def _exchange(
    basis: IntVector,
    inverse: FloatMatrix,
    levels: FloatVector,
    duals: FloatVector,
    direction: FloatVector,
    leaving: int,
    entering: int,
    step: float,
    gain: float,
) -> None:
    """Put a column that brings `gain` in the place of another, at the level `step`."""
    m = len(basis)
    for r in range(m):
        levels[r] -= step * direction[r]
    levels[leaving] = step
    basis[leaving] = entering
    # The new inverse is E⁻¹B⁻¹, with E the identity but for the column that enters; transposed
    # here, so that each row is changed by itself. Prices change by gain times the row of what left.
    pivot = direction[leaving]
    for row in range(m):
        factor = inverse[row, leaving] / pivot
        if factor == 0.0:
            continue
        for r in range(m):
            inverse[row, r] -= factor * direction[r]
        inverse[row, leaving] = factor
        duals[row] += gain * factor
