r"""Small problems: all allowed coalitions in a list, so that nothing has to be compiled.

To load compiled kernels takes a second, to compile them several. Up to twenty nodes the coalitions
that are allowed can often be listed in milliseconds, and a look through the list is a few sums in
NumPy: a coalition pays what it pays without its last node, and what that node pays. Most coalitions
pay their prices, so whatever takes longer is done for the others alone.

**The linear program** has all coalitions as columns, and few of them are ever looked at. Prices
near the best ones tell which: those that fall least short of what they pay. At the beginning such
prices come from an ascent. Any prices that pay for all coalitions still do if each node takes back

.. math:: d_i = \min_{C \ni i} \frac{\pi(C) - v(C)}{|C|},

because the nodes of C take back no more than C pays in excess. From the half of the best weights
around each node, two such steps come within some percent of the linear program.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from coalitions.game import BoolMatrix, BoolVector, FloatMatrix, FloatVector, IntMatrix, IntVector
from solvers.branch_and_price.branch_and_price import TeamCase, TeamProblem
from solvers.branch_and_price.column_generation import TOLERANCE, Master, Priced, Prices, Relaxed

# ----------------------------------------------------------------------------------------
# The list, and the pricer that looks through it.

Amounts = TypeVar("Amounts", IntVector, FloatVector)

MOST_NODES = 20
MOST_COALITIONS = 30_000
"""A longer list is not made."""

NEVER = -(1 << 61)
"""What a coalition is worth that is not allowed: less than any prices make up for."""

REMEMBERED = 4
"""Lists of sets that are kept for the next problem; each takes a few megabytes at most."""


@dataclass(frozen=True, eq=False)
class Sets:
    """All sets of up to so many of n nodes, one in each row, the small ones first.

    Attributes
    ----------
    members
        Who is in which [c, n].
    parent
        The number of the set without its last node [c].
    last
        The last node [c].
    swapped
        The number of the set without its last node but one [c].
    pair
        The last two nodes, as a place in a matrix with one row after the other [c].
    sizes
        Where the sets of two nodes start, those of three, …, and the end.
    children
        For those of each size but the largest: the numbers of the sets that are the parent of some,
        and where these start among those of the next size.
    by_last, ends
        The numbers of all sets in the order of their last nodes, and where those of a node start.
    n_members
        How many nodes they have, as floats [c].
    """

    members: BoolMatrix
    parent: IntVector
    last: IntVector
    swapped: IntVector
    pair: IntVector
    sizes: tuple[int, ...]
    children: tuple[tuple[IntVector, IntVector], ...]
    by_last: IntVector
    ends: IntVector
    n_members: FloatVector

    def __len__(self) -> int:
        return len(self.last)

    def added(self, amounts: Amounts) -> Amounts:
        """Return the sums of what the nodes of each set have."""
        sums = np.empty(len(self), amounts.dtype)
        sums[: len(amounts)] = amounts
        for start, end in zip(self.sizes, self.sizes[1:], strict=False):
            own = slice(start, end)
            np.add(sums.take(self.parent[own]), amounts.take(self.last[own]), out=sums[own])
        return sums

    def least(self, amounts: FloatVector) -> FloatVector:
        """Return for each node the least amount of a set that holds it."""
        # A set that holds a node is one in which it is the last, and nodes behind it.
        least = amounts.copy()
        levels = zip(self.sizes, self.sizes[1:], self.children, strict=False)
        for start, end, (parents, starts) in reversed(list(levels)):
            further = np.minimum.reduceat(least[start:end], starts)
            least[parents] = np.minimum(least.take(parents), further)
        of_nodes: FloatVector = np.minimum.reduceat(least.take(self.by_last), self.ends)
        return of_nodes

    def worth(self, weights: IntMatrix) -> IntVector:
        """Return the sums of the weights inside each set."""
        # What the last node brings: the same without the one before it, and that one's weight.
        brought, worth = np.zeros(len(self), np.int64), np.zeros(len(self), np.int64)
        for start, end in zip(self.sizes, self.sizes[1:], strict=False):
            own = slice(start, end)
            beside = weights.take(self.pair[own])
            np.add(brought.take(self.swapped[own]), beside, out=brought[own])
            np.add(worth.take(self.parent[own]), brought[own], out=worth[own])
        return worth


@functools.lru_cache(maxsize=REMEMBERED)
def sets_of(n_nodes: int, places: int) -> Sets:
    """Return all sets of one to so many nodes."""
    nodes = np.arange(n_nodes)
    parent, last, before, members = [nodes], [nodes], [nodes], [np.eye(n_nodes, dtype=np.bool_)]
    sizes, children, first = [n_nodes], [], 0
    for _ in range(places - 1):
        # A set is one that is a node smaller, and a node behind its last.
        behind = n_nodes - 1 - last[-1]
        smaller = np.repeat(np.arange(len(behind)), behind)
        starts = np.cumsum(behind) - behind
        start = np.repeat(starts, behind)
        some = behind.nonzero()[0]
        children.append((first + some, starts[some]))
        before.append(last[-1][smaller])
        last.append(before[-1] + 1 + np.arange(len(smaller)) - start)
        parent.append(first + smaller)
        inside = members[-1][smaller]
        inside[np.arange(len(smaller)), last[-1]] = True
        members.append(inside)
        first = sizes[-1]
        sizes.append(first + len(smaller))
    numbers, ends, seconds = (np.concatenate(some) for some in (parent, last, before))
    inside, by_last = np.concatenate(members), ends.argsort(kind="stable")
    return Sets(
        members=inside,
        parent=numbers,
        last=ends,
        # Those that differ in the last node alone are neighbours.
        swapped=numbers + ends - seconds,
        pair=seconds * n_nodes + ends,
        sizes=tuple(sizes),
        children=tuple(children),
        by_last=by_last,
        ends=ends[by_last].searchsorted(nodes),
        n_members=inside.sum(axis=1, dtype=np.float64),
    )


@dataclass(frozen=True, eq=False)
class Listing:
    """Coalitions and what they are worth.

    Attributes
    ----------
    sets
        The coalitions, and sets of nodes that are none.
    worth
        Their values, in units of prices; `NEVER` for those that are not allowed [c].
    """

    sets: Sets
    worth: IntVector

    def __len__(self) -> int:
        return int(np.count_nonzero(self.worth != NEVER))

    def without(self, barred: BoolVector) -> Listing:
        """Return the list in which some coalitions are not allowed."""
        if not barred.any():
            return self
        return Listing(self.sets, np.where(barred, NEVER, self.worth))

    def of_case(self, case: TeamCase) -> Listing:
        """Return the coalitions that belong to a case."""
        if not case.pairs_together and not case.pairs_apart:
            return self
        return self.without(~case.allows(self.sets.members))


def all_coalitions(problem: TeamProblem) -> Listing | None:
    """Return every coalition that meets the demands, or None if there may be too many."""
    n, sizes, places = problem.n, problem.sizes, problem.places
    n_sets = sum(math.comb(n, size) for size in range(1, places + 1))
    if n > MOST_NODES or n_sets > MOST_COALITIONS:
        return None
    sets = sets_of(n, places)
    players = sets.added(sizes.players)
    barred = (players < sizes.min_size) | (players > sizes.max_size)
    if len(sizes.loads):
        barred |= sets.added(sizes.loads) > sizes.max_load
    for role in sizes.roles:
        barred |= ~sets.members[:, list(role)].any(axis=1)
    for a, b in sizes.apart:
        barred |= sets.members[:, a] & sets.members[:, b]
    return Listing(sets, sets.worth(problem.units)).without(barred)


class ListedPricer:
    """Looks through the list of coalitions of one case; does what `Pricer` does.

    Parameters
    ----------
    case
        Which pairs are decided.
    triples
        Triples of nodes that may have prices [t, 3].
    listed
        All coalitions that meet the demands.
    """

    def __init__(self, case: TeamCase, triples: IntMatrix, listed: Listing) -> None:
        self.case = case
        self._listed = listed.of_case(case)
        self._triples = triples
        self._first = np.unique(case.group, return_index=True)[1]

    def price(
        self,
        prices: Prices,
        *,
        keep: int,
        root_steps: int,
        check: Callable[[], None],
        order: IntVector | None = None,
    ) -> Priced:
        """Return what exceeds some prices among all coalitions, or those of some groups."""
        del root_steps, check  # it never takes long
        case, sets = self.case, self._listed.sets
        order = np.arange(case.n_groups) if order is None else order
        excess = self._listed.worth - sets.added(prices.nodes)
        # Only these can exceed their prices: those of triples, and raised ones, come on top.
        over = (excess > prices.count).nonzero()[0]
        members = sets.members[over]
        excess = excess[over] - prices.count - held(members, self._triples) @ prices.triples
        # Groups that are left out count as infinitely late: their coalitions are nobody's.
        place = np.full(case.n_groups, len(order))
        place[order] = np.arange(len(order))
        turn = np.where(members, place[case.group], -1).max(axis=1)
        raised, found = _raised(members, excess, turn, self._first[order], keep)
        paid = Prices(prices.nodes + raised, prices.count, prices.triples)
        return Priced(paid, members[found], True)


def held(members: BoolMatrix, triples: IntMatrix) -> BoolMatrix:
    """Tell which coalitions have two nodes or more of which triples [c, t]."""
    inside = np.zeros((members.shape[1], len(triples)))
    inside[triples, np.arange(len(triples))[:, None]] = 1.0
    two: BoolMatrix = members.astype(np.float64) @ inside > 1.5
    return two


def _raised(
    members: BoolMatrix, excess: IntVector, turn: IntVector, payers: IntVector, keep: int
) -> tuple[IntVector, IntVector]:
    """Return what the prices of nodes must rise by, and the numbers of some coalitions.

    Parameters
    ----------
    members, excess
        Coalitions [c, n], and by how much each exceeds its prices.
    turn
        Who pays for each: a place among the payers, or behind them.
    payers
        Nodes, in whose order prices rise.
    keep
        Coalitions for each payer.
    """
    raised = np.zeros(members.shape[1], np.int64)
    by_turn = turn.argsort(kind="stable")
    starts = turn[by_turn].searchsorted(np.arange(len(payers) + 1)).tolist()
    found = [np.zeros(0, np.int64)]
    for payer, start, end in zip(payers.tolist(), starts, starts[1:], strict=False):
        if start == end:
            continue
        own = by_turn[start:end]
        left = excess[own] - members[own] @ raised
        best = (-left).argsort(kind="stable")[:keep]
        best = best[left[best] > 0]
        if len(best):
            raised[payer] = left[best[0]]
            found.append(own[best])
    return raised, np.concatenate(found)


# ----------------------------------------------------------------------------------------
# The linear program over the list.

# For first calls without kernels: `python -m benchmarks.first_minute` shows what they take.

ASCENT = 2
"""Steps of the ascent."""

FIRST, MORE = 200, 40
"""Columns to begin with, and in each round after that."""

SAMPLE = 8
"""One of so many columns is looked at for what the best ones are like."""

PIVOTS, ROUNDS = 200, 100
"""Exchanges after which all is computed anew, and how often that is done at most."""


class ListedMaster(Master):
    """Columns that are all known, and the simplex method.

    Parameters
    ----------
    problem
        What is asked.
    listed
        All coalitions that meet the demands.
    """

    complete = True

    def __init__(self, problem: TeamProblem, listed: Listing) -> None:
        super().__init__(problem)
        self.members = listed.sets.members
        self._sets = listed.sets
        self._worth = np.where(listed.worth == NEVER, -np.inf, listed.worth / self._unit)

    def add(self, columns: BoolMatrix) -> int:
        """Return 0: no coalition is new."""
        del columns
        return 0

    def estimate(self, active: BoolVector, basis: IntVector, dear: float, most: int) -> float:
        """Return about what the linear program is worth with fewer columns, in units of prices."""
        basis, pool = basis.copy(), self._pool(np.flatnonzero(active))
        table = self._table(self._inverse(basis), self._earned(basis, None, dear), pool)
        plain_dual_pivots(table, basis, pool, self._barred(basis, active), most)
        return float(-table[-1, -1]) * self._unit

    def nearest(self, active: BoolVector, basis: IntVector, dear: float, most: int) -> BoolVector:
        """Tell which of some columns fall least short of the prices of a basis, up to so many."""
        paid = self._paid(self._inverse(basis) @ self._earned(basis, None, dear))
        near = np.zeros(len(self), np.bool_)
        near[_largest(np.where(active, self._worth - paid, -np.inf), most)] = True
        return near

    def _renew_entries(self) -> None:
        """Rows are looked up when a column is needed."""

    def _solved(self, active: BoolVector, basis: IntVector, dear: float) -> Relaxed:
        worth = self._worth if active.all() else np.where(active, self._worth, -np.inf)
        if (basis < 0).all():
            basis, repaired = self._completed(basis), False
            numbers = _largest(worth - self._sets.added(self._ascent()), FIRST)
            pool = self._pool(numbers)
        else:
            slack = -2 - 2 * np.arange(len(basis), len(self._senses))
            basis, before = np.concatenate((basis, slack)), basis
            inverse, earned = self._inverse(basis), self._earned(basis, None, dear)
            numbers = _largest(worth - self._paid(inverse @ earned), FIRST)
            pool = self._pool(numbers)
            table = self._table(inverse, earned, pool)
            done = plain_dual_pivots(table, basis, pool, self._barred(basis, active), PIVOTS)
            repaired = 0 <= done < PIVOTS
            if not repaired:
                basis = self._completed(before)
        # What the dual method has left without a level needs no penalty, unless it gets one again.
        inverse = self._inverse(basis)
        earned = self._earned(basis, None if repaired else active, dear)
        for _ in range(ROUNDS):
            # After the dual method, no column of the pool brings anything.
            if repaired and len(pool) == table.shape[1] - 1:
                done = 0
            else:
                table = self._table(inverse, earned, pool)
                np.maximum(table[:-1, -1], 0.0, out=table[:-1, -1])
                done = plain_pivots(table, basis, pool, TOLERANCE, PIVOTS)
            if done:
                inverse = self._inverse(basis)
                earned = self._earned(basis, None if repaired else active, dear)
            if done == PIVOTS:
                continue
            duals = inverse @ earned
            excess = worth - self._paid(duals)
            excess[numbers] = -np.inf
            over = (excess > TOLERANCE).nonzero()[0]
            excess = excess[over]
            if len(self.triples) and len(over):
                excess -= held(self.members[over], self.triples) @ duals[self._n_fixed :]
                over, excess = over[excess > TOLERANCE], excess[excess > TOLERANCE]
            if not len(over):
                if not repaired or table[:-1, -1] @ self._barred(basis, active) <= NEARLY:
                    break
                repaired, earned = False, self._earned(basis, active, dear)
                continue
            fresh = over[_largest(excess, MORE)]
            numbers, pool = np.concatenate((numbers, fresh)), np.concatenate((pool, fresh))
        return self._relaxed(active, basis, inverse, inverse @ earned)

    def _ascent(self) -> FloatVector:
        """Return prices of nodes that pay for all coalitions."""
        n, places = self.problem.n, self.problem.places
        gains = np.maximum(self.problem.units, 0) / self._unit
        prices: FloatVector = np.sort(gains, axis=1)[:, n - places + 1 :].sum(axis=1) / 2
        for _ in range(ASCENT):
            spare = (self._sets.added(prices) - self._worth) / self._sets.n_members
            back = self._sets.least(spare)
            prices = prices - np.where(np.isfinite(back), back, 0.0)
        return prices

    def _paid(self, duals: FloatVector) -> FloatVector:
        """Return what columns pay by the prices of rows, without those of triples."""
        paid = self._sets.added(duals[: self.problem.n])
        return paid + duals[self._counts].sum() if self._counts else paid

    def _pool(self, numbers: IntVector) -> IntVector:
        """Return the numbers of slacks, and of some columns."""
        return np.concatenate((-2 - 2 * self._senses.nonzero()[0], numbers))

    def _columns(self, pool: IntVector) -> tuple[FloatMatrix, FloatVector]:
        """Return the rows of columns [k, m], and what they are worth."""
        numbers = np.maximum(pool, 0)
        members = self.members[numbers]
        matrix, costs = np.ones((len(pool), len(self._senses))), self._worth[numbers]
        matrix[:, : self.problem.n] = members
        if len(self.triples):
            matrix[:, self._n_fixed :] = held(members, self.triples)
        units = (pool < 0).nonzero()[0]
        if len(units):
            rows, missing = (-1 - pool[units]) // 2, pool[units] % 2 == 1
            senses = self._senses[rows]
            matrix[units] = costs[units] = 0.0
            # What is missing under an upper limit is what is too much.
            matrix[units, rows] = np.where(missing, np.where(senses > 0, -1, 1), senses)
        return matrix, costs

    def _inverse(self, basis: IntVector) -> FloatMatrix:
        """Return the inverse of a basis, transposed."""
        if np.array_equal(basis, self._pinned[0]):
            return self._pinned[1]
        return np.ascontiguousarray(np.linalg.inv(self._columns(basis)[0]))

    def _earned(self, basis: IntVector, active: BoolVector | None, dear: float) -> FloatVector:
        """Return what a unit of each column of a basis brings; what is not active costs."""
        numbers = np.maximum(basis, 0)
        known = self._worth[numbers]
        if active is not None:
            known = np.where(active[numbers], known, -dear)
        return np.where(basis >= 0, known, np.where(basis % 2 == 1, -dear, 0.0))

    def _barred(self, basis: IntVector, active: BoolVector) -> BoolVector:
        """Tell which columns of a basis must not have a level."""
        barred: BoolVector = np.where(basis >= 0, ~active[np.maximum(basis, 0)], basis % 2 == 1)
        return barred

    def _table(self, inverse: FloatMatrix, earned: FloatVector, pool: IntVector) -> FloatMatrix:
        """Return the table of `plain_pivots` for a basis and some columns."""
        m = len(inverse)
        matrix, costs = self._columns(pool)
        table = np.empty((m + 1, len(matrix) + 1))
        np.matmul(inverse.T, matrix.T, out=table[:m, :-1])
        table[:m, -1] = self._shifted @ inverse
        table[m, :-1] = costs - matrix @ (inverse @ earned)
        table[m, -1] = -earned @ table[:m, -1]
        return table


def _largest(numbers: FloatVector, most: int) -> IntVector:
    """Return the places of the largest numbers, up to so many, none of which is minus infinity."""
    places = (numbers > -np.inf).nonzero()[0]
    if len(places) > SAMPLE * most:
        # What some of them tell about the others leaves few to be sorted.
        sample = numbers[places[::SAMPLE]]
        least = np.partition(sample, -2 * most // SAMPLE)[-2 * most // SAMPLE]
        places = places[numbers[places] >= least]
    if len(places) > most:
        places = places[np.argpartition(numbers[places], -most)[-most:]]
    return places


# ----------------------------------------------------------------------------------------
# The simplex method in NumPy.

STEEP, SLANT = 1e-9, 1e-7
"""What is less does not count as a slope: in a column, and in a row."""

FEASIBLE, NEARLY = 1e-9, 1e-4
"""Levels may be wrong by so much, and by so much where nothing can be done about it: right-hand
sides are off by a millionth, which may leave no feasible levels at all."""


def plain_pivots(
    table: FloatMatrix, basis: IntVector, numbers: IntVector, tolerance: float, most: int
) -> int:
    """Improve a basis by at most so many exchanges of the primal simplex method; tell how many.

    Parameters
    ----------
    table
        What a unit of each column takes from the columns of the basis, and in the last column their
        levels [m, k + 1]; in the last row what a unit brings, and minus the value. It is changed.
    basis
        The numbers of its columns [m]. It is changed.
    numbers
        The numbers of the columns of the table [k].
    tolerance
        A column enters if it brings more.
    most
        Exchanges at most.
    """
    levels, brings = table[:-1, -1], table[-1, :-1]
    ratios, change = np.empty(len(levels)), np.empty_like(table)
    for count in range(most):
        entering = int(brings.argmax())
        if brings[entering] <= tolerance:
            return count
        column = table[:, entering].copy()
        slopes = column[:-1]
        ratios.fill(np.inf)
        np.divide(levels, slopes, out=ratios, where=slopes > STEEP)
        leaving = int(ratios.argmin())
        if slopes[leaving] <= STEEP:
            return count
        row = table[leaving] / column[leaving]
        # So that the row itself becomes what it is divided by its pivot.
        column[leaving] -= 1.0
        np.multiply(column[:, None], row, out=change)
        table -= change
        basis[leaving] = numbers[entering]
    return most


def plain_dual_pivots(
    table: FloatMatrix, basis: IntVector, numbers: IntVector, barred: BoolVector, most: int
) -> int:
    """Make levels feasible by at most so many exchanges of the dual simplex method.

    Parameters
    ----------
    table, basis, numbers, most
        As for `plain_pivots`; no column brings anything, but levels may be negative.
    barred
        Which columns of the basis must have no level at all [m]. It is changed.

    Returns
    -------
    int
        How many exchanges there were, −1 if no column is left that could enter.
    """
    levels, brings = table[:-1, -1], table[-1, :-1]
    ratios, change = np.empty(len(brings)), np.empty_like(table)
    for count in range(most):
        wrong = np.where(barred, np.abs(levels), -levels)
        leaving = int(wrong.argmax())
        if wrong[leaving] <= FEASIBLE:
            return count
        slopes = table[leaving, :-1] if levels[leaving] > 0.0 else -table[leaving, :-1]
        ratios.fill(np.inf)
        np.divide(-brings, slopes, out=ratios, where=slopes > SLANT)
        entering = int(ratios.argmin())
        if slopes[entering] <= SLANT:
            return count if wrong[leaving] <= NEARLY else -1
        row = table[leaving] / table[leaving, entering]
        column = table[:, entering].copy()
        column[leaving] -= 1.0
        np.multiply(column[:, None], row, out=change)
        table -= change
        basis[leaving] = numbers[entering]
        barred[leaving] = False
    return most
