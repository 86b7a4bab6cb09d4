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
from solvers.branch_and_price.listing import NEVER, Listing, held
from solvers.branch_and_price.master import TOLERANCE, Master, Relaxed
from solvers.branch_and_price.plain import plain_pivots
from solvers.branch_and_price.problem import Problem

ASCENT = 2
"""Steps of the ascent."""

FIRST, MORE = 200, 40
"""Columns to begin with, and in each round after that."""

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
        inverse = self._inverse(basis)
        earned = self._earned(basis, active, dear)
        table = self._table(inverse, earned, *self._columns(pool))
        plain_pivots(table, basis, pool, TOLERANCE, most)
        return float(-table[-1, -1]) * self._unit

    def nearest(self, active: BoolVector, basis: IntVector, dear: float, most: int) -> BoolVector:
        """Tell which of some columns fall least short of the prices of a basis, up to so many."""
        everything = np.ones(len(self), np.bool_)
        duals = self._inverse(basis) @ self._earned(basis, everything, dear)
        near = np.zeros(len(self), np.bool_)
        near[_largest(np.where(active, self._excess(duals), -np.inf), most)] = True
        return near

    def _renew_entries(self) -> None:
        """Rows are looked up when a column is needed."""

    def _solved(self, active: BoolVector, basis: IntVector, dear: float) -> Relaxed:
        basis = self._completed(basis)
        inverse = self._inverse(basis)
        if (basis < 0).all():
            excess = self._worth - self._sets.added(self._ascent())
        else:
            excess = self._excess(inverse @ self._earned(basis, np.ones_like(active), dear))
        numbers = _largest(np.where(active, excess, -np.inf), FIRST)
        pool = self._pool(numbers)
        matrix, costs = self._columns(pool)
        for _ in range(ROUNDS):
            earned = self._earned(basis, active, dear)
            table = self._table(inverse, earned, matrix, costs)
            done = plain_pivots(table, basis, pool, TOLERANCE, PIVOTS)
            inverse = self._inverse(basis)
            if done == PIVOTS:
                continue
            duals = inverse @ self._earned(basis, active, dear)
            excess = np.where(active, self._excess(duals), -np.inf)
            excess[numbers] = -np.inf
            over = (excess > TOLERANCE).nonzero()[0]
            triples = duals[self._n_fixed :]
            if len(triples):
                left = excess[over] - held(self.members[over], self.triples) @ triples
                excess[over] = left
                over = over[left > TOLERANCE]
            if not len(over):
                break
            fresh = over[_largest(excess[over], MORE)]
            numbers = np.concatenate((numbers, fresh))
            pool = np.concatenate((pool, fresh))
            more = self._columns(fresh)
            matrix, costs = np.concatenate((matrix, more[0])), np.concatenate((costs, more[1]))
        return self._relaxed(active, basis, inverse, inverse @ self._earned(basis, active, dear))

    def _ascent(self) -> FloatVector:
        """Return prices of nodes that pay for all coalitions."""
        n, places = self.problem.n, self.problem.places
        gains = np.maximum(self.problem.units, 0) / self._unit
        prices: FloatVector = np.sort(gains, axis=1)[:, n - places + 1 :].sum(axis=1) / 2
        size = self._sets.added(np.ones(n))
        for _ in range(ASCENT):
            spare = (self._sets.added(prices) - self._worth) / size
            back = spare.take(self._sets.holding).min(axis=1)
            prices = prices - np.where(np.isfinite(back), back, 0.0)
        return prices

    def _excess(self, duals: FloatVector) -> FloatVector:
        """Return by how much columns exceed the prices of rows, without those of triples."""
        n = self.problem.n
        excess: FloatVector = self._worth - self._sets.added(duals[:n])
        return excess - duals[self._counts].sum() if self._counts else excess

    def _pool(self, numbers: IntVector) -> IntVector:
        """Return the numbers of slacks, and of some columns."""
        return np.concatenate((-2 - 2 * self._senses.nonzero()[0], numbers))

    def _columns(self, pool: IntVector) -> tuple[FloatMatrix, FloatVector]:
        """Return the rows of columns [k, m], and what they are worth."""
        chosen = pool >= 0
        numbers, rows = pool[chosen], (-1 - pool[~chosen]) // 2
        matrix = np.zeros((len(pool), len(self._senses)))
        matrix[chosen] = self._dense(self.members[numbers])
        # What is missing under an upper limit is what is too much.
        missing = pool[~chosen] % 2 == 1
        senses = self._senses[rows]
        matrix[(~chosen).nonzero()[0], rows] = np.where(missing, np.where(senses > 0, -1, 1), senses)
        costs = np.zeros(len(pool))
        costs[chosen] = self._worth[numbers]
        return matrix, costs

    def _inverse(self, basis: IntVector) -> FloatMatrix:
        """Return the inverse of a basis, transposed."""
        return np.linalg.inv(self._columns(basis)[0])

    def _earned(self, basis: IntVector, active: BoolVector, dear: float) -> FloatVector:
        """Return what a unit of each column of a basis brings."""
        numbers = np.maximum(basis, 0)
        known = np.where(active[numbers], self._worth[numbers], -dear)
        return np.where(basis >= 0, known, np.where(basis % 2 == 1, -dear, 0.0))

    def _table(
        self, inverse: FloatMatrix, earned: FloatVector, matrix: FloatMatrix, costs: FloatVector
    ) -> FloatMatrix:
        """Return the table of `plain_pivots` for a basis and some columns."""
        m = len(inverse)
        table = np.empty((m + 1, len(matrix) + 1))
        np.matmul(inverse.T, matrix.T, out=table[:m, :-1])
        table[:m, -1] = np.maximum(self._shifted @ inverse, 0.0)
        table[m, :-1] = costs - matrix @ (inverse @ earned)
        table[m, -1] = -earned @ table[:m, -1]
        return table


def _largest(numbers: FloatVector, most: int) -> IntVector:
    """Return the places of the largest numbers, up to so many, none of which is minus infinity."""
    if len(numbers) > most:
        places = np.argpartition(numbers, -most)[-most:]
    else:
        places = np.arange(len(numbers))
    return places[numbers[places] > -np.inf]
