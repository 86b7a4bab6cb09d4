r"""ListedMaster: the linear program over all coalitions of a list, in NumPy.

All coalitions are its columns, and few of them are ever looked at. Prices near the best ones tell
which: those that fall least short of what they pay. At the beginning such prices come from an
ascent. Any prices that pay for all coalitions still do if each node takes back

.. math:: d_i = \min_{C \ni i} \frac{\pi(C) - v(C)}{|C|},

because the nodes of C take back no more than C pays in excess. From the half of the best weights
around each node, two such steps come within some percent of the linear program.
"""

from __future__ import annotations

import numpy as np

from coalitions.game import BoolMatrix, BoolVector, FloatMatrix, FloatVector, IntVector
from solvers.branch_and_price.master import TOLERANCE, Master, Relaxed
from solvers.branch_and_price.problem import Problem
from solvers.branch_and_price.small.listing import NEVER, Listing, held
from solvers.branch_and_price.small.simplex import NEARLY, plain_dual_pivots, plain_pivots

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

    def __init__(self, problem: Problem, listed: Listing) -> None:
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
