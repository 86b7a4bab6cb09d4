"""Russian dolls on what the reductions left: most easy graphs are proven here, in milliseconds."""

from __future__ import annotations

import numpy as np

from solvers.branch_and_cut._doll_kernels import best_of_dolls
from solvers.branch_and_cut.incumbent import Incumbent
from solvers.branch_and_cut.problem import Problem

MOST_GROUPS = 250
"""Above, the search never came to its end before the dual did."""

STEPS = 400_000
"""Steps for each order of the players: two thousandths of a second."""


def closed_by_dolls(problem: Problem, incumbent: Incumbent) -> bool:
    """Look for the best structure with a small budget; tell whether it is found and proven.

    Those with much to gain come first, then those with much at stake: neither order is always the
    better one. The incumbent takes what is found.
    """
    weights = problem.weights
    if problem.n_groups > MOST_GROUPS:
        return False
    start = np.unique(incumbent.labels[problem.representatives], return_inverse=True)[1]
    for stake in (np.maximum(weights, 0), np.abs(weights)):
        order = np.argsort(-stake.sum(axis=1), kind="stable")
        done, labels = best_of_dolls(weights[order][:, order], start[order], STEPS)
        if done:
            place = np.empty(len(order), np.int64)
            place[order] = labels
            incumbent.offer(place[problem.groups])
            return True
    return False
