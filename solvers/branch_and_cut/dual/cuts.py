"""Separation of 2-partition inequalities on a fractional point."""

from __future__ import annotations

import numpy as np

from coalitions.game import IntMatrix
from solvers.branch_and_cut.dual.multipliers import Singles, row_keys
from solvers.branch_and_cut.dual.tools import Tools
from solvers.seeds import RandomState


def violated_cuts(
    x: Singles,
    *,
    violation: float,
    starts: int,
    at_most: int,
    state: RandomState,
    tools: Tools,
) -> IntMatrix:
    """Return violated cuts [k, 1 + LONGEST] as in `Multipliers`, the most violated first.

    Parameters
    ----------
    x
        A symmetric matrix with entries in [0, 1].
    violation
        Smallest violation worth a cut.
    starts
        Greedy constructions for each centre.
    at_most
        How many cuts to return.
    state
        Source of randomness.
    tools
        Who looks for them.
    """
    rows, depths = tools.grow_cuts(x, violation, starts, state)
    rows = rows[np.argsort(-depths, kind="stable")]
    first = np.unique(row_keys(rows), return_index=True)[1]
    chosen: IntMatrix = rows[np.sort(first)[:at_most]]
    return chosen
