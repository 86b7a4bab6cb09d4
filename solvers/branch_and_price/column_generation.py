r"""The linear program over coalitions, and the search for coalitions that it lacks.

**The master** is the linear program over the coalitions known so far.

.. math:: \max \sum_C v(C)\, x_C \quad\text{subject to}\quad
   \sum_{C \ni i} x_C = 1 \;\forall i, \quad
   \text{fewest} \le \sum_C x_C \le \text{most}, \quad
   \sum_{C : |C \cap T| \ge 2} x_C \le 1 \;\forall T, \quad x \ge 0.

It is solved in floats by the primal simplex method, which goes on from a basis when columns
come in. In a new case it begins with the basis of the parent, and the dual simplex method takes out
the columns that are not allowed there; where it cannot, they cost so much that they leave. Nothing
rests on the precision of all this. It proposes prices; what they prove is for the pricer to find
out, in whole numbers. So the right-hand sides may be off by a millionth, each by another, which
keeps the method from standing still.

**The pricer** looks for coalitions that are worth more than they pay. For each node of an order,
coalitions of it and nodes before it are searched. If the best of them exceeds what it pays by
:math:`\delta > 0`, the node's price rises by that: afterwards, the prices pay for every allowed
coalition, so they prove a bound, whatever prices the search was asked for. Where a search is given
up, :math:`\delta` is the bound it began with.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from coalitions.game import BoolMatrix, BoolVector, FloatMatrix, FloatVector, IntMatrix, IntVector
from solvers.branch_and_price.branch_and_price import TeamCase, TeamProblem

if TYPE_CHECKING:
    from solvers.branch_and_price._pricing_kernel import PricingScratch

# ----------------------------------------------------------------------------------------
# The master

Exchange = Callable[[IntVector, FloatMatrix, FloatVector, FloatVector, int], int]
"""Improves basis, inverse, levels and prices by at most so many exchanges; tells how many."""

PIVOTS_AT_ONCE, PIVOTS_OF_INVERSE = 100, 400
"""After so many exchanges levels and prices, and the inverse, are computed anew."""

DUAL_PIVOTS = 200
"""Exchanges of the dual simplex method before it is given up."""

TOLERANCE = 1e-9
"""A column enters if it brings more than this; the largest weight is 1."""

SHIFT = 1e-6
"""By about so much right-hand sides are off."""


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A solution of the linear program.

    Attributes
    ----------
    value
        In units of prices.
    nodes, count, triples
        Prices, in the same units.
    columns, levels
        Numbers of the columns in use, and how much of each.
    missing
        How much of the rows could not be had.
    basis
        To go on from.
    """

    value: float
    nodes: FloatVector
    count: float
    triples: FloatVector
    columns: IntVector
    levels: FloatVector
    missing: float
    basis: IntVector


class Master:
    """Columns, rows and the simplex method.

    Parameters
    ----------
    problem
        What is asked.
    glance
        Called after every `PIVOTS_AT_ONCE` exchanges; it may raise, and the master stays valid.

    Attributes
    ----------
    members
        Nodes of each column [c, n].
    worth
        Values of the columns, in whole weights [c].
    triples
        Triples of nodes that have a row [t, 3].
    """

    complete: ClassVar[bool] = False
    """Whether it has all coalitions as columns from the beginning."""

    def __init__(self, problem: TeamProblem, glance: Callable[[], None] = lambda: None) -> None:
        n, sizes = problem.n, problem.sizes
        self.problem = problem
        self._glance = glance
        self.members: BoolMatrix = np.zeros((0, n), np.bool_)
        self.worth: IntVector = np.zeros(0, np.int64)
        self.triples: IntMatrix = np.zeros((0, 3), np.int64)
        self._known: dict[bytes, int] = {}
        self._unit = float(max(1, np.abs(problem.units).max()))
        # Limits on the number of coalitions that follow from their sizes are no rows.
        players = int(sizes.players.sum())
        senses, limits = [0] * n, [1.0] * n
        self._counts = []
        for sense, limit, implied in (
            (1, sizes.most, sizes.most * sizes.min_size >= players or sizes.most >= n),
            (-1, sizes.fewest, sizes.fewest * sizes.max_size <= players),
        ):
            if not implied:
                self._counts.append(len(senses))
                senses.append(sense)
                limits.append(float(limit))
        self._n_fixed = len(senses)
        self._senses = np.array(senses, np.int64)
        self._limits = np.array(limits)
        shift = _shifts(0, n)
        self._shifted = self._limits.copy()
        self._shifted[:n] += shift
        self._shifted[n:] += shift.sum() * self._senses[n:]
        self._starts: IntVector = np.zeros(1, np.int64)
        self._rows: IntVector = np.zeros(0, np.int64)
        self._kept = self._pinned = np.zeros(0, np.int64), np.zeros((0, 0)), 0

    def __len__(self) -> int:
        return len(self.members)

    def add(self, columns: BoolMatrix) -> int:
        """Take in coalitions that are not known yet; return how many."""
        new: list[int] = []
        for place, key in enumerate(np.packbits(columns, axis=1)):
            if self._known.setdefault(key.tobytes(), len(self) + len(new)) == len(self) + len(new):
                new.append(place)
        if new:
            columns = columns[new]
            self.members = np.concatenate((self.members, columns))
            self.worth = np.concatenate((self.worth, self.problem.worth(columns)))
            starts, rows = self._entries(columns)
            self._starts = np.concatenate((self._starts, self._starts[-1] + starts[1:]))
            self._rows = np.concatenate((self._rows, rows))
        return len(new)

    def add_triples(self, triples: IntMatrix) -> None:
        """Take in rows."""
        self.triples = np.concatenate((self.triples, triples))
        more = len(triples)
        shift = _shifts(len(self.triples), more)
        self._senses = np.concatenate((self._senses, np.ones(more, np.int64)))
        self._limits = np.concatenate((self._limits, np.ones(more)))
        self._shifted = np.concatenate((self._shifted, 1.0 + shift))
        self._renew_entries()

    def start(self) -> IntVector:
        """Return the basis that has nothing."""
        return -1 - 2 * np.arange(len(self._senses)) - (self._senses > 0)

    def pinned(self, basis: IntVector) -> IntVector:
        """Keep the inverse of a basis that several solutions will start from; return the basis."""
        try:
            basis = self._completed(basis)
            inverse = self._inverse(basis)
        except np.linalg.LinAlgError:
            basis = self.start()
            inverse = self._inverse(basis)
        self._pinned = basis, inverse, 0
        return basis

    def solve(self, active: BoolVector, basis: IntVector, dear: float) -> Relaxed:
        """Solve with some of the columns, from a basis; what is not there costs `dear`.

        The basis may hold other columns, and may lack the rows that were added last.
        """
        try:
            return self._solved(active, basis, dear)
        except np.linalg.LinAlgError:
            # Roundings led to columns that are no basis: from nothing, there is another way.
            return self._solved(active, self.start(), dear)

    def _solved(self, active: BoolVector, basis: IntVector, dear: float) -> Relaxed:
        basis = self._repaired(active, self._completed(basis), dear)
        costs = self._costs()
        costs[~active] = -dear
        allowed = np.flatnonzero(active)
        exchange = self._exchanges(allowed, costs)
        while True:
            inverse, age = self._known_inverse(basis)
            levels, duals = self._solution(basis, inverse, costs, dear)
            done = exchange(basis, inverse, levels, duals, PIVOTS_AT_ONCE)
            self._kept = basis.copy(), inverse, age + done
            if done < PIVOTS_AT_ONCE:
                break
            self._glance()
        return self._relaxed(active, basis, inverse, duals)

    def _relaxed(
        self, active: BoolVector, basis: IntVector, inverse: FloatMatrix, duals: FloatVector
    ) -> Relaxed:
        """Return the solution of a basis."""
        exact = self._limits @ inverse
        n = self.problem.n
        chosen = basis >= 0
        columns = basis[chosen]
        missing = np.maximum(exact[(basis < 0) & (basis % 2 == 1)], 0.0).sum()
        missing += np.maximum(exact[chosen][~active[columns]], 0.0).sum()
        prices = duals * self._unit
        return Relaxed(
            value=float(prices @ self._limits),
            nodes=prices[:n],
            count=float(prices[self._counts].sum()),
            triples=np.maximum(prices[self._n_fixed :], 0.0),
            columns=columns,
            levels=exact[chosen],
            missing=float(missing),
            basis=basis,
        )

    def estimate(self, active: BoolVector, basis: IntVector, dear: float, most: int) -> float:
        """Return about what the linear program is worth with fewer columns, in units of prices.

        The basis is best for more of them; so many exchanges of the dual method must do.
        """
        prices = self._dual(active, basis, dear, most)[3]
        return float(prices @ self._limits) * self._unit

    def nearest(self, active: BoolVector, basis: IntVector, dear: float, most: int) -> BoolVector:
        """Tell which of some columns fall least short of the prices of a basis, up to so many."""
        numbers = np.flatnonzero(active)
        if len(numbers) <= most:
            return active
        costs = self._costs()
        prices = self._solution(basis, self._known_inverse(basis)[0], costs, dear)[1]
        paid = np.add.reduceat(prices[self._rows], self._starts[:-1])
        near = np.zeros(len(self), np.bool_)
        near[numbers[np.argpartition((paid - costs)[numbers], most)[:most]]] = True
        return near

    def _costs(self) -> FloatVector:
        costs: FloatVector = np.ldexp(self.worth, self.problem.bits) / self._unit
        return costs

    def _known_inverse(self, basis: IntVector) -> tuple[FloatMatrix, int]:
        """Return the inverse of a basis, to be changed, and the exchanges since it was computed."""
        # The inverse of the last solution serves again, if it has not grown too old.
        known, inverse, age = self._kept
        if age <= PIVOTS_OF_INVERSE and np.array_equal(known, basis):
            return inverse, age
        known, inverse, age = self._pinned
        return inverse.copy() if np.array_equal(known, basis) else self._inverse(basis), 0

    def _repaired(self, active: BoolVector, basis: IntVector, dear: float) -> IntVector:
        """Return a basis without columns that are not active, if the dual method leads to one."""
        gone = basis >= 0
        gone[gone] = ~active[basis[gone]]
        if not gone.any():
            return basis
        done, repaired, inverse, _, age = self._dual(active, basis, dear, DUAL_PIVOTS)
        if not 0 <= done < DUAL_PIVOTS:
            return basis
        self._kept = repaired.copy(), inverse, age + done
        return repaired

    def _dual(
        self, active: BoolVector, basis: IntVector, dear: float, most: int
    ) -> tuple[int, IntVector, FloatMatrix, FloatVector, int]:
        """Return exchanges (−1: in vain), basis, inverse, prices of rows, the inverse's age."""
        from solvers.branch_and_price._simplex_kernel import dual_pivots

        inverse, age = self._known_inverse(basis)
        basis, inverse, costs = basis.copy(), inverse.copy(), self._costs()
        chosen = basis >= 0
        barred = basis % 2 == 1
        barred[chosen] = ~active[basis[chosen]]
        prices = self._solution(basis, inverse, costs, dear)[1]
        columns = self._starts, self._rows, costs, np.flatnonzero(active), self._senses
        state = basis, inverse, self._shifted @ inverse, prices, barred
        room = np.zeros(len(basis)), np.zeros(len(basis))
        done: int = dual_pivots(*columns, *state, *room, most)
        return done, basis, inverse, prices, age

    def _exchanges(self, active: IntVector, costs: FloatVector) -> Exchange:
        """Return the simplex method on some columns."""
        from solvers.branch_and_price._simplex_kernel import SHORT, pivots

        short, direction = np.zeros(SHORT, np.int64), np.zeros(len(self._senses))

        def exchange(
            basis: IntVector,
            inverse: FloatMatrix,
            levels: FloatVector,
            duals: FloatVector,
            most: int,
        ) -> int:
            columns = self._starts, self._rows, costs, active, self._senses
            room = short, direction
            done: int = pivots(*columns, basis, inverse, levels, duals, *room, TOLERANCE, most)
            return done

        return exchange

    def _dense(self, columns: BoolMatrix) -> BoolMatrix:
        """Return which rows columns have [c, m]."""
        ones = np.ones((len(columns), len(self._counts)), np.bool_)
        if not len(self.triples):
            return np.concatenate((columns, ones), axis=1)
        held = columns[:, self.triples].sum(axis=2) >= 2
        return np.concatenate((columns, ones, held), axis=1)

    def _renew_entries(self) -> None:
        """Note which rows all columns have."""
        self._starts, self._rows = self._entries(self.members)

    def _entries(self, columns: BoolMatrix) -> tuple[IntVector, IntVector]:
        """Return the rows of columns, one after the other, and where each column starts."""
        column, row = np.nonzero(self._dense(columns))
        starts = np.searchsorted(column, np.arange(len(columns) + 1))
        return starts.astype(np.int64), row

    def _completed(self, basis: IntVector) -> IntVector:
        """Return a basis that has the new rows, too, and is feasible."""
        m = len(self._senses)
        if len(basis) == m:
            return basis.copy()
        rows = np.arange(len(basis), m)
        slack = np.concatenate((basis, -2 - 2 * rows))
        levels = self._shifted @ self._inverse(slack)
        short = levels[len(basis) :] < 0.0
        return np.concatenate((basis, np.where(short, -1 - 2 * rows, -2 - 2 * rows)))

    def _inverse(self, basis: IntVector) -> FloatMatrix:
        """Return the inverse of a basis, transposed."""
        m = len(basis)
        matrix = np.zeros((m, m))
        for place, c in enumerate(basis.tolist()):
            if c >= 0:
                matrix[place, self._rows[self._starts[c] : self._starts[c + 1]]] = 1.0
            else:
                row = (-1 - c) // 2
                sense = self._senses[row]
                # For an upper limit, what is missing is negative: the limit is exceeded.
                missing = c % 2 == 1
                matrix[place, row] = (-1.0 if sense > 0 else 1.0) if missing else sense
        return np.ascontiguousarray(np.linalg.inv(matrix))

    def _solution(
        self, basis: IntVector, inverse: FloatMatrix, costs: FloatVector, dear: float
    ) -> tuple[FloatVector, FloatVector]:
        """Return the levels of the columns of a basis and the prices of the rows."""
        chosen = basis >= 0
        earned = np.where(basis % 2, -dear, 0.0)
        earned[chosen] = costs[basis[chosen]]
        return np.maximum(self._shifted @ inverse, 0.0), inverse @ earned


@functools.lru_cache(maxsize=16)
def _shifts(seed: int, count: int) -> FloatVector:
    """Return by how much right-hand sides are off."""
    shifts = np.random.default_rng(seed).uniform(0.5 * SHIFT, SHIFT, count)
    shifts.flags.writeable = False
    return shifts


# ----------------------------------------------------------------------------------------
# The pricer

STEPS_AT_ONCE = 20_000_000
"""Steps between two looks at the clock: 0.05 s, and 0.3 s where many nodes fit in a coalition
(`python -m benchmarks.constants STEPS_AT_ONCE`)."""

MANY_CONFLICTS = 0.05
"""Part of the pairs that must be apart from which on the search for coalitions looks at them."""


@dataclass(frozen=True, eq=False)
class Prices:
    """What coalitions pay, in units of 2^−bits of a weight; see `TeamRecord`.

    Attributes
    ----------
    nodes
        For each node [n].
    count
        For each coalition.
    triples
        For two or three nodes of each triple [t]; not negative.
    """

    nodes: IntVector
    count: int
    triples: IntVector

    def total(self, fewest: int, most: int) -> int:
        """Return what a structure of so many coalitions pays at most."""
        counts = max(most * self.count, fewest * self.count)
        paid: int = sum(self.nodes.tolist()) + sum(self.triples.tolist())
        return paid + counts


@dataclass(frozen=True, eq=False)
class Priced:
    """What a search for coalitions found.

    Attributes
    ----------
    prices
        Prices that pay for every allowed coalition.
    columns
        Coalitions that exceeded the prices that were asked for [k, n].
    complete
        Whether the search came to its end.
    """

    prices: Prices
    columns: BoolMatrix
    complete: bool


class Pricer:
    """Searches the coalitions of one case.

    Parameters
    ----------
    case
        Which pairs are decided.
    triples
        Triples of nodes that may have prices [t, 3].
    """

    def __init__(self, case: TeamCase, triples: IntMatrix) -> None:
        problem, sizes = case.problem, case.problem.sizes
        n_groups, group = case.n_groups, case.group
        self.case = case
        self._first = np.unique(group, return_index=True)[1]
        by_group = np.zeros((n_groups, n_groups), np.int64)
        np.add.at(by_group, (group[:, None], group), problem.units)
        self._alone = by_group.diagonal() // 2
        np.fill_diagonal(by_group, 0)
        self._weights = by_group
        self._players, self._loads = case.players, case.loads
        self._holds = np.zeros((n_groups, problem.holds.shape[1]), np.bool_)
        np.logical_or.at(self._holds, group, problem.holds)
        self._smallest, self._largest = int(self._players.min()), int(self._players.max())
        self._by_kind = np.count_nonzero(case.apart) > MANY_CONFLICTS * n_groups**2
        self._places = max(1, min(n_groups, sizes.max_size // self._smallest))
        gains = np.where(case.apart, 0, np.maximum(by_group, 0))
        gains = -np.sort(-gains, axis=1)[:, : self._places]
        self._halves = np.zeros((n_groups, self._places + 1), np.int64)
        self._halves[:, 1 : 1 + gains.shape[1]] = (np.cumsum(gains, axis=1) + 1) // 2
        # Two nodes of a triple in one group: whoever has the group pays.
        self._triples = group[triples]
        a, b, c = self._triples.T
        self._split = (a != b) & (b != c) & (a != c)
        self._double = np.where((a == b) | (a == c), a, b)

    @functools.cached_property
    def _scratch(self) -> PricingScratch:
        from solvers.branch_and_price._pricing_kernel import PricingScratch

        return PricingScratch.of_size(self.case.n_groups, self._places, self._holds.shape[1])

    def price(
        self,
        prices: Prices,
        *,
        keep: int,
        root_steps: int,
        check: Callable[[], None],
        order: IntVector | None = None,
    ) -> Priced:
        """Search all coalitions, or those of some groups, for what exceeds some prices.

        `check` is called every now and then, and may raise.
        """
        from solvers.branch_and_price import _pricing_kernel as kernel

        case, n_groups = self.case, self.case.n_groups
        order = np.arange(n_groups) if order is None else order
        base = self._alone.copy()
        np.subtract.at(base, case.group, prices.nodes)
        whole = ~self._split
        np.subtract.at(base, self._double[whole], prices.triples[whole])
        used = self._split & (prices.triples > 0)
        members = self._triples[used].ravel()
        by_member = np.argsort(members, kind="stable")
        starts = np.searchsorted(members[by_member], np.arange(n_groups + 1))
        nodes = kernel.PricingNodes(
            self._weights,
            base,
            case.apart,
            self._players,
            self._loads,
            self._holds,
            self._halves,
        )
        triples = kernel.PricingTriples(
            self._triples[used], prices.triples[used], starts, by_member // 3
        )
        sizes = case.problem.sizes
        rules = kernel.PricingRules(
            min_size=sizes.min_size,
            max_size=sizes.max_size,
            max_load=sizes.max_load,
            smallest=self._smallest,
            largest=self._largest,
            count_price=prices.count,
            by_kind=int(self._by_kind),
            keep=keep,
            root_steps=root_steps,
        )
        state = kernel.PricingState.start(n_groups, keep * len(order) + 1)
        search = nodes, triples, rules, order, STEPS_AT_ONCE, state, self._scratch
        while not kernel.price(*search):
            check()
        n_found, complete = state.progress[[kernel.FOUND, kernel.COMPLETE]].tolist()
        paid = prices.nodes.copy()
        paid[self._first] += state.raised
        found = state.columns[:n_found][:, case.group]
        return Priced(Prices(paid, prices.count, prices.triples), found, bool(complete))
