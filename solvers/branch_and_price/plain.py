"""The simplex method in NumPy, for small problems: nothing has to be compiled."""

from __future__ import annotations

import numpy as np

from coalitions.game import FloatMatrix, FloatVector, IntVector


def plain_pivots(
    matrix: FloatMatrix,
    costs: FloatVector,
    senses: IntVector,
    basis: IntVector,
    numbers: IntVector,
    inverse: FloatMatrix,
    levels: FloatVector,
    duals: FloatVector,
    tolerance: float,
    most: int,
) -> int:
    """Do what `solvers.branch_and_price._simplex.pivots` does, on a dense matrix [columns, rows].

    `numbers` are the numbers of the columns that may enter.
    """
    limits = senses.nonzero()[0]
    signs = senses[limits]
    for count in range(most):
        best, entering = tolerance, None
        if len(numbers):
            reduced = costs - matrix @ duals
            place = int(reduced.argmax())
            if reduced[place] > best:
                best, entering = float(reduced[place]), int(numbers[place])
                direction = matrix[place] @ inverse
        if len(limits):
            slack = -signs * duals[limits]
            place = int(slack.argmax())
            if slack[place] > best:
                row = int(limits[place])
                best, entering = float(slack[place]), -2 - 2 * row
                direction = senses[row] * inverse[row]
        if entering is None:
            return count
        steep = (direction > 1e-9).nonzero()[0]
        if not len(steep):
            return count
        slope = direction[steep]
        ratios = levels[steep] / slope
        # Of those that are first to reach zero, the steepest.
        near = (ratios <= ratios.min() + 1e-12).nonzero()[0]
        leaving = int(steep[near[0] if len(near) == 1 else near[slope[near].argmax()]])
        step = max(0.0, float(levels[leaving] / direction[leaving]))
        np.maximum(levels - step * direction, 0.0, out=levels)
        levels[leaving] = step
        basis[leaving] = entering
        factor = inverse[:, leaving] / direction[leaving]
        inverse -= factor[:, None] * direction
        inverse[:, leaving] = factor
        duals += best * factor
    return most
