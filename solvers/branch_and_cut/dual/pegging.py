"""Pegging: pairs that the reduced weights decide, because the other way is not worth it."""

from __future__ import annotations

import numpy as np

from coalitions.game import IntVector
from solvers.branch_and_cut.dual.exact import ExactBound
from solvers.branch_and_cut.problem import Problem
from solvers.preparation.components import components


def pegged(
    problem: Problem, proof: ExactBound, value: int
) -> tuple[Problem | None, IntVector | None]:
    """Return the problem after pegging, and how its groups were merged.

    A structure in which pair e is decided against the sign of r_e is worth at most U − |r_e|. If
    that is not above `value`, only structures with the sign of r_e can be better. Decisions carry
    over: whoever is apart from one member of a group is apart from all.

    Returns
    -------
    problem
        None if no structure can be better than `value`.
    merge
        New number of each group; None if no groups were put together.
    """
    enough = proof.scaled - ((value + 1) << proof.bits)
    first, second = np.nonzero(np.abs(proof.reduced) > enough)
    undecided = ~problem.apart[first, second] & (first < second)
    first, second = first[undecided], second[undecided]
    positive = proof.reduced[first, second] > 0
    if not positive.all():
        problem = problem.separated(first[~positive], second[~positive])
    if not positive.any():
        return problem, None
    merge = components(problem.n_groups, first[positive], second[positive])
    return problem.merged(merge), merge
