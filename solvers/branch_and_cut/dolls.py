"""Russian dolls on what is left to decide: what is easy is proven here, in milliseconds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coalitions.game import IntMatrix, IntVector
from solvers.branch_and_cut.incumbent import Incumbent
from solvers.branch_and_cut.plain import FEW_GROUPS, is_plain, plain_dolls
from solvers.branch_and_cut.problem import Problem

MOST_GROUPS = 250
"""Above, the search never came to its end before the dual did."""

LEAST_STEPS, STEPS_PER_PAIR = 600_000, 200
"""How long to try before the dual starts. A step takes five nanoseconds; before its first look at
the bound, the dual takes longer than this."""

STEPS_FOR_FEW = 2_000_000
"""How long to try with few groups: of 300 random graphs of 20 players, all were closed in it, one
only in the second order."""

STEPS_FOR_SYMMETRY = 60_000_000
"""How long the kernel goes on, 0.3 s, where few groups defy that: graphs that look the same from
everywhere, as circulant ones do. The dual takes longer for them."""


def closed_by_dolls(problem: Problem, incumbent: Incumbent, most_steps: int | None = None) -> bool:
    """Look for the best structure with a small budget; tell whether it is found and proven.

    Those with much to gain come first, then those with much at stake: neither order is always the
    better one. The incumbent takes what is found. False says nothing.
    """
    m = problem.n_groups
    if m > MOST_GROUPS:
        return False
    if most_steps is not None:
        budgets = [most_steps]
    else:
        budgets = [STEPS_FOR_FEW, STEPS_FOR_SYMMETRY] if m <= FEW_GROUPS else [_budget(m)]
    weights = problem.weights
    gains = np.maximum(weights, 0)
    # Worse than all gains together can make up for. They are counted twice here, as the bound does;
    # more of it, 250 times in a sum, might not fit int64.
    weights = np.where(problem.apart, -int(gains.sum()) - 1, weights)
    floor = incumbent.value - problem.inside
    for budget in budgets:
        for stake in (gains, np.abs(problem.weights)):
            order = np.argsort(-stake.sum(axis=1), kind="stable")
            done, labels = _best(weights[order][:, order], floor, budget, incumbent.expired)
            if done or incumbent.expired():
                place = np.empty(m, np.int64)
                place[order] = labels
                incumbent.offer(place[problem.groups])
                return done
    return False


def _budget(n_groups: int) -> int:
    return max(LEAST_STEPS, STEPS_PER_PAIR * n_groups * (n_groups - 1) // 2)


def _best(
    weights: IntMatrix, floor: int, most_steps: int, expired: Callable[[], bool]
) -> tuple[bool, IntVector]:
    """Search in plain Python or by the kernel: both take the same steps."""
    if is_plain(len(weights)) and most_steps < STEPS_FOR_SYMMETRY:
        return plain_dolls(weights, floor, most_steps, expired)
    from solvers.branch_and_cut._doll_kernels import best_of_dolls

    done, labels = best_of_dolls(weights, np.arange(len(weights)), floor, most_steps)
    return bool(done), labels
