r"""Proofs that need no dual: Russian dolls for what is easy, columns for what is full of conflicts.

**Russian dolls** [Verfaillie1996]_ are an exact search that solves nested subproblems, each with
the help of the smaller ones (`solvers.branch_and_cut._cut_kernels` has the bound). They close small
or well-separated problems in milliseconds, and are tried again beside the dual whenever a node of
the tree has shrunk.

**Columns.** If a pair has :math:`w_{ij} \le -\min(P_i, P_j)`, with :math:`P_i` all that i can gain
from others, one of the two may as well be alone: some best structure has them apart. Where such
*conflicts* are many, and pairs that were decided apart come on top, coalitions are small sets
without conflict. Then the linear program over all coalitions, one variable each, is within reach of
a search for columns; the dual over pairs is weak there, for its triangles say little about
conflicts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from coalitions.game import BoolMatrix, IntMatrix, IntVector
from solvers.branch_and_cut.partition_problem import (
    FEW_GROUPS,
    PartitionIncumbent,
    PartitionProblem,
    is_plain,
    spend,
)
from solvers.branch_and_cut.plain import plain_russian_dolls
from solvers.demands import Sizes
from solvers.proofs.teams import GroupPrices

# ----------------------------------------------------------------------------------------
# Russian dolls: orders, budgets, and the choice between plain Python and the kernel.

MOST_GROUPS_OF_DOLLS = 250
"""Above, the search never came to its end before the dual did."""

LEAST_STEPS, STEPS_PER_PAIR = 600_000, 200
"""How long to try before the dual starts. A step takes three to five nanoseconds; before its first
look at the bound, the dual takes longer than this."""

STEPS_FOR_FEW = 2_000_000
"""How long to try with few groups: of 300 random graphs of 20 players, all were closed in it, one
only in the second order (`python -m benchmarks.constants STEPS_FOR_FEW`)."""

STEPS_FOR_SYMMETRY = 60_000_000
"""How long the kernel goes on, 0.3 s, where few groups defy that: graphs that look the same from
everywhere, as circulant ones do (`python -m benchmarks.constants STEPS_FOR_SYMMETRY`). The dual
takes longer for them."""


def closed_by_russian_dolls(
    problem: PartitionProblem, incumbent: PartitionIncumbent, most_steps: int | None = None
) -> bool:
    """Look for the best structure with a small budget; tell whether it is found and proven.

    Those with much to gain come first, then those with much at stake: neither order is always the
    better one. The incumbent takes what is found. False says nothing.
    """
    m = problem.n_groups
    if m > MOST_GROUPS_OF_DOLLS:
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
        done, labels, steps = plain_russian_dolls(weights, floor, most_steps, expired)
        spend(steps)
        return done, labels
    from solvers.branch_and_cut._cut_kernels import russian_dolls

    done, labels = russian_dolls(weights, np.arange(len(weights)), floor, most_steps)
    return bool(done), labels


# ----------------------------------------------------------------------------------------
# When they are tried beside the dual, and for how long.

SHRUNK, SHARE_OF_DOLLS = 0.7, 0.01
"""Russian dolls are tried when only this part of the undecided pairs of the last trial is
left, for this many steps per unit of the dual's work. Guesses."""


class ShortCuts:
    """Russian dolls beside the dual: tried again whenever a node has shrunk.

    Parameters
    ----------
    incumbent
        The best structure so far; it takes what is found.
    tried
        Undecided pairs with which they were tried before.
    """

    def __init__(self, incumbent: PartitionIncumbent, tried: float) -> None:
        self._incumbent = incumbent
        self._tried = tried
        self.taken = 0

    def begin(self) -> None:
        """Forget the last trial: another node is at work."""
        self._tried = math.inf

    def close(self, problem: PartitionProblem, work: float) -> bool:
        """Try what is left of a node, if it shrank; tell whether it is closed.

        They take a fraction of the time that the dual took so far, whose work is given.
        """
        undecided = problem.n_undecided
        if undecided > SHRUNK * self._tried:
            return False
        self._tried = undecided
        budget = max(LEAST_STEPS, int(SHARE_OF_DOLLS * work))
        if not closed_by_russian_dolls(problem, self._incumbent, budget):
            return False
        self.taken += 1
        return True


# ----------------------------------------------------------------------------------------
# Columns: the bound over all coalitions without conflict.

# `python benchmarks/hard_graphs.py` has the graphs for which columns are there.

MANY_CONFLICTS = 0.15
"""Part of the pairs in conflict from which on columns are tried."""

MOST_GROUPS_OF_COLUMNS, WIDEST_COALITION = 80, 20
"""The search for columns takes too long with more groups, or where more fit in a coalition."""

STEPS_FOR_WIDTH = 20_000
"""Steps in the search for the largest set without conflict."""

PATIENCE = 400
"""Rounds and looks at the clock within which the bound of all columns must be there: a guess."""


class _TooSlow(Exception):  # noqa: N818 (a signal, not an error)
    """The bound of all columns takes too long."""


class ConflictColumns:
    """The bound of columns on one problem.

    Parameters
    ----------
    problem
        What is left to decide.
    incumbent
        The best structure so far; it takes what is found.

    Attributes
    ----------
    bound
        No structure of the problem that is better than the incumbent is worth more; None if
        nothing is known.
    proof
        Prices that prove it.
    found
        Number of columns that were looked at.
    """

    def __init__(self, problem: PartitionProblem, incumbent: PartitionIncumbent) -> None:
        self._problem, self._incumbent = problem, incumbent
        self._conflicts = conflicts(problem)
        self.bound: int | None = None
        self.proof: GroupPrices | None = None
        self.found = 0

    @property
    def promising(self) -> bool:
        """Whether conflicts are so many that coalitions are small."""
        m = self._problem.n_groups
        return bool(
            m <= MOST_GROUPS_OF_COLUMNS
            and np.count_nonzero(self._conflicts) >= MANY_CONFLICTS * m * (m - 1)
            and self._widest <= WIDEST_COALITION
        )

    @functools.cached_property
    def _widest(self) -> int:
        return widest(self._conflicts)

    def search(
        self, *, allowed: Callable[[int], int], check: Callable[[], None], seed: int
    ) -> None:
        """Lower the bound until it is closed, or the search is too slow.

        Parameters
        ----------
        allowed
            Maps the incumbent's value to the highest bound that counts as closed.
        check
            Called often; raises an exception to end the search. The bound stays valid then.
        seed
            Source of randomness.
        """
        from coalitions.runtime import one_blas_thread
        from solvers.branch_and_price.branch_and_price import TeamIncumbent, TeamProblem
        from solvers.branch_and_price.team_search import TeamSearch

        problem, incumbent = self._problem, self._incumbent
        m = problem.n_groups
        pairs = np.argwhere(np.triu(self._conflicts, 1)).tolist()
        sizes = Sizes(
            np.ones(m, np.int64),
            1,
            self._widest,
            1,
            m,
            apart=tuple((first, second) for first, second in pairs),
        )
        priced = TeamProblem.of(np.where(self._conflicts, 0, problem.weights), sizes)
        best = TeamIncumbent(priced, seed=seed, expired=incumbent.expired)
        groups = tuple(
            tuple(np.flatnonzero(problem.groups == group).tolist()) for group in range(m)
        )
        looks = 0

        def enough(value: int) -> int:
            return allowed(max(value + problem.inside, incumbent.value)) - problem.inside

        def look() -> None:
            nonlocal looks
            looks += 1
            check()
            if looks > PATIENCE and len(tree) == 1:
                raise _TooSlow

        tree = TeamSearch(priced, best, allowed=enough, check=look, glance=check, seed=seed)
        try:
            with one_blas_thread():
                best.offer(np.arange(m))
                best.offer(_without(self._conflicts, incumbent.labels[problem.representatives]))
                tree.run()
        except _TooSlow:
            pass
        finally:
            if best.labels is not None:
                incumbent.offer(best.labels[problem.groups])
            self.bound, self.found = problem.inside + tree.bound, len(tree.master)
            self.proof = GroupPrices(groups, priced.bits, tree.record().tree)


def conflicts(problem: PartitionProblem) -> BoolMatrix:
    """Return which pairs of groups some best structure has apart, whatever else it has."""
    apart = problem.apart.copy()
    np.fill_diagonal(apart, True)
    while True:
        gains = np.where(apart, 0, np.maximum(problem.weights, 0)).sum(axis=1)
        # Whoever gains least is the one to leave; then it gains from nobody, and so on.
        more = (problem.weights <= -np.minimum(gains[:, None], gains)) & ~apart
        if not more.any():
            np.fill_diagonal(apart, False)
            return apart
        apart |= more


def widest(apart: BoolMatrix) -> int:
    """Return the size of the largest set without a conflict, or more if it is hard to find.

    Sets grow by one group after the other; those that remain are sorted into kinds all of which
    are in conflict, for a set has at most one of each.
    """
    m = len(apart)
    rows = np.where(np.eye(m, dtype=np.bool_), False, ~apart)
    friends = [sum(1 << j for j in np.flatnonzero(row).tolist()) for row in rows]
    largest, steps = 0, 0
    # A set's size, who may join, and an upper bound of what it can grow to.
    left = [(0, (1 << m) - 1, m)]
    while left:
        size, open_, most = left.pop()
        if most <= largest:
            continue
        steps += 1
        if steps > STEPS_FOR_WIDTH:
            return max(largest, most, *(bound for _, _, bound in left))
        largest = max(largest, size)
        before = 0
        for kinds, group in _kinds(open_, friends):
            # Sets of this group and some before it: at most one of each kind so far.
            left.append((size + 1, before & friends[group], size + kinds))
            before |= 1 << group
    return largest


def _kinds(open_: int, friends: list[int]) -> list[tuple[int, int]]:
    """Return groups with the number of their kind, from 1 on; those of a kind are in conflict."""
    found, kind = [], 0
    while open_:
        kind += 1
        free = open_
        while free:
            group = (free & -free).bit_length() - 1
            free &= ~(friends[group] | 1 << group)
            open_ &= ~(1 << group)
            found.append((kind, group))
    return found


def _without(apart: BoolMatrix, labels: IntVector) -> IntVector:
    """Return a structure in which whoever is in conflict with its coalition is alone."""
    labels = labels.copy()
    m = len(labels)
    for group in range(m):
        if (apart[group] & (labels == labels[group])).any():
            labels[group] = labels.max() + 1
    return labels
