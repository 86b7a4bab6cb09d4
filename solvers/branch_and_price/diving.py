"""Diving: fix the coalitions a linear program is surest of, solve again, down to a structure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coalitions.game import IntVector
from solvers.branch_and_price.master import Master, Relaxed
from solvers.branch_and_price.pricing import Pricer, Prices
from solvers.branch_and_price.small.listing import ListedPricer

ROUNDS = 2
"""Searches for columns after each fixing."""

SURE = 0.9
"""Coalitions with a level above this are fixed together."""

NOTHING = 1e-4
"""What is missing in a solution counts from here on."""


def dive(
    master: Master,
    pricer: Pricer | ListedPricer,
    relaxed: Relaxed,
    *,
    dear: float,
    root_steps: int,
    proposal: Callable[[Relaxed], Prices],
    check: Callable[[], None],
) -> IntVector | None:
    """Return labels of a structure of a case, or None if the dive led to none.

    Parameters
    ----------
    master, pricer
        The linear program, which gains columns, and the search for columns of the case.
    relaxed
        The solution of the linear program of the case.
    dear, root_steps, proposal, check
        The cost of what is missing, how long to search for columns of a node, prices for a
        solution, and who looks at the clock.
    """
    case = pricer.case
    first = np.unique(case.group, return_index=True)[1]
    chosen: list[int] = []
    fixed = np.zeros(master.problem.n, np.bool_)
    while True:
        members = master.members[relaxed.columns]
        free = case.allows(members) & ~(members & fixed).any(axis=1)
        levels = np.where(free, relaxed.levels, 0.0)
        if levels.max(initial=0.0) <= NOTHING:
            return None
        sure = levels >= min(SURE, levels.max())
        for column in relaxed.columns[sure].tolist():
            if not (master.members[column] & fixed).any():
                chosen.append(column)
                fixed |= master.members[column]
        if fixed.all():
            labels: IntVector = np.argmax(master.members[chosen], axis=0)
            return labels
        order = np.flatnonzero(~fixed[first])
        for _ in range(ROUNDS):
            check()
            left = case.allows(master.members) & ~(master.members & fixed).any(axis=1)
            left[chosen] = True
            relaxed = master.solve(left, relaxed.basis, dear)
            if master.complete:
                break
            priced = pricer.price(
                proposal(relaxed), keep=1, root_steps=root_steps, check=check, order=order
            )
            if not master.add(priced.columns):
                break
