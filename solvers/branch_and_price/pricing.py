r"""Pricer: the coalitions that are worth more than they pay, and prices that pay for all.

For each node of an order, coalitions of it and nodes before it are searched. If the best of them
exceeds what it pays by :math:`\delta > 0`, the node's price rises by that: afterwards, the prices
pay for every allowed coalition, so they prove a bound, whatever prices the search was asked for.
Where a search is given up, :math:`\delta` is the bound it began with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coalitions.game import BoolMatrix, IntMatrix, IntVector
from solvers.branch_and_price.problem import Case

STEPS_AT_ONCE = 20_000_000
"""Steps between two looks at the clock: 0.05 s, and 0.25 s where many nodes fit in a coalition."""


MANY_CONFLICTS = 0.05
"""Part of the pairs that must be apart from which on the search for coalitions looks at them."""


@dataclass(frozen=True, eq=False)
class Prices:
    """What coalitions pay, in units of 2^−bits of a weight; see `solvers.branch_and_price.record`.

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

    def __init__(self, case: Case, triples: IntMatrix) -> None:
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
        smallest, largest = int(self._players.min()), int(self._players.max())
        conflicts = np.count_nonzero(case.apart) > MANY_CONFLICTS * n_groups**2
        self._demands = np.array(
            [sizes.min_size, sizes.max_size, sizes.max_load, smallest, largest, conflicts], np.int64
        )
        places = max(1, min(n_groups, sizes.max_size // smallest))
        gains = np.where(case.apart, 0, np.maximum(by_group, 0))
        gains = -np.sort(-gains, axis=1)[:, :places]
        self._halves = np.zeros((n_groups, places + 1), np.int64)
        self._halves[:, 1 : 1 + gains.shape[1]] = (np.cumsum(gains, axis=1) + 1) // 2
        self._room = tuple(
            np.zeros((places + 1, width), np.int64) for width in (7, *4 * (n_groups,))
        )
        # Two nodes of a triple in one group: whoever has the group pays.
        self._triples = group[triples]
        a, b, c = self._triples.T
        self._split = (a != b) & (b != c) & (a != c)
        self._double = np.where((a == b) | (a == c), a, b)

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
        case, n_groups = self.case, self.case.n_groups
        order = np.arange(n_groups) if order is None else order
        base = self._alone.copy()
        np.subtract.at(base, case.group, prices.nodes)
        whole = ~self._split
        np.subtract.at(base, self._double[whole], prices.triples[whole])
        from solvers.branch_and_price._pricing import COMPLETE, DEPTH, FOUND, STATE, price

        used = self._split & (prices.triples > 0)
        triples = self._triples[used]
        members = triples.ravel()
        by_member = np.argsort(members, kind="stable")
        starts = np.searchsorted(members[by_member], np.arange(n_groups + 1))
        state = np.zeros(STATE, np.int64)
        state[DEPTH], state[COMPLETE] = -1, 1
        raised = np.zeros(n_groups, np.int64)
        columns = np.zeros((keep * len(order) + 1, n_groups), np.bool_)
        excess = np.zeros(keep * len(order) + 1, np.int64)
        while not price(
            self._weights,
            base,
            prices.count,
            case.apart,
            self._players,
            self._loads,
            self._holds,
            self._halves,
            order,
            self._demands,
            triples,
            prices.triples[used],
            starts,
            by_member // 3,
            keep,
            root_steps,
            STEPS_AT_ONCE,
            state,
            raised,
            columns,
            excess,
            *self._room,
        ):
            check()
        paid = prices.nodes.copy()
        paid[self._first] += raised
        found = columns[: state[FOUND]][:, case.group]
        return Priced(Prices(paid, prices.count, prices.triples), found, bool(state[COMPLETE]))
