"""Separation of 2-partition inequalities on a fractional point."""

from __future__ import annotations

import numpy as np

from coalitions.game import FloatVector, IntMatrix, IntVector
from solvers.branch_and_cut.dual.multipliers import Singles, cuts_of, row_keys
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
) -> tuple[IntMatrix, IntVector]:
    """Return violated cuts with one centre as in `Multipliers`, and their heads; the worst first.

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
    heads = np.ones(len(rows), np.int64)
    return _worst(rows, heads, depths, at_most)


def violated_partitions(
    x: Singles, *, violation: float, starts: int, at_most: int, state: RandomState
) -> tuple[IntMatrix, IntVector]:
    """Return violated cuts with any number of groups on both sides, and their heads.

    `starts` searches are made in all; the rest is as in `violated_cuts`.
    """
    from solvers.branch_and_cut.dual.partitions import grow_partitions

    row, group, is_head, depths = grow_partitions(x, violation, starts, state)
    cuts, heads, kept = cuts_of(row, group, is_head, len(depths))
    return _worst(cuts, heads, depths[kept], at_most)


def _worst(
    rows: IntMatrix, heads: IntVector, depths: FloatVector, at_most: int
) -> tuple[IntMatrix, IntVector]:
    """Return the deepest of the rows, each once, and their heads."""
    order = np.argsort(-depths, kind="stable")
    first = np.unique(row_keys(rows[order], heads[order]), return_index=True)[1]
    chosen = order[np.sort(first)[:at_most]]
    return rows[chosen], heads[chosen]
