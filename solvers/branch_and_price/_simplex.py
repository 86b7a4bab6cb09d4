"""Compiled steps of the primal simplex method on columns of zeros and ones."""

from __future__ import annotations

from coalitions.compiling.kernel import njit
from coalitions.game import FloatMatrix, FloatVector, IntVector

SHORT = 40
"""Columns that are looked at again before all are."""

STEADY = 1e-9
"""Entries of a direction below this are taken for zero."""


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
            for r in range(m):
                if senses[r] != 0 and -senses[r] * duals[r] > best:
                    best, entering, found = -senses[r] * duals[r], -2 - 2 * r, True
            if not found:
                return count
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
        step = max(step, 0.0)
        for r in range(m):
            levels[r] -= step * direction[r]
            if levels[r] < 0.0:
                levels[r] = 0.0
        levels[leaving] = step
        basis[leaving] = entering
        pivot = direction[leaving]
        for row in range(m):
            factor = inverse[row, leaving] / pivot
            if factor == 0.0:
                continue
            for r in range(m):
                inverse[row, r] -= factor * direction[r]
            inverse[row, leaving] = factor
            duals[row] += best * factor
    return most
