"""Small problems without a search for columns: all allowed coalitions in a list.

To load compiled kernels takes a second, to compile them several. Up to twenty nodes the coalitions
that are allowed can often be listed in milliseconds, and a look through the list is a few sums in
NumPy. Most coalitions pay their prices, so whatever takes longer is done for the others alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coalitions.game import BoolMatrix, BoolVector, IntMatrix, IntVector
from solvers.branch_and_price.pricing import Priced, Prices
from solvers.branch_and_price.problem import Case, Problem

MOST_NODES = 20
MOST_COALITIONS = 30_000
"""A longer list is not made."""


@dataclass(frozen=True, eq=False)
class Listing:
    """Coalitions, one in each row.

    Attributes
    ----------
    nodes
        Their nodes, then numbers that are no node's [places, c]: sums over the first axis are
        quick.
    masks
        The same as bits [c].
    worth
        Their values, in units of prices [c].
    """

    nodes: IntMatrix
    masks: IntVector
    worth: IntVector

    def __len__(self) -> int:
        return len(self.masks)

    def __getitem__(self, chosen: BoolVector | IntVector) -> Listing:
        """Return some of the coalitions."""
        return Listing(self.nodes[:, chosen], self.masks[chosen], self.worth[chosen])

    def members(self, n_nodes: int) -> BoolMatrix:
        """Return who is in which [c, n]."""
        return (self.masks[:, None] >> np.arange(n_nodes) & 1).astype(np.bool_)

    def of_case(self, case: Case) -> Listing:
        """Return the coalitions that belong to a case."""
        allowed = np.ones(len(self), np.bool_)
        for a, b in case.pairs_together:
            shared = self.masks & (1 << a | 1 << b)
            allowed &= (shared == 0) | (shared == 1 << a | 1 << b)
        for a, b in case.pairs_apart:
            allowed &= self.masks & (1 << a | 1 << b) != 1 << a | 1 << b
        return self if allowed.all() else self[allowed]


def all_coalitions(problem: Problem) -> Listing | None:
    """Return every coalition that meets the demands, or None if there may be too many."""
    n, sizes, places = problem.n, problem.sizes, problem.places
    sets = sum(math.comb(n, size) for size in range(1, places + 1))
    if n > MOST_NODES or sets > MOST_COALITIONS:
        return None
    # By size: a set is one that is a node smaller, and a node behind its last.
    nodes, worth = np.arange(n)[None], np.zeros(n, np.int64)
    known = [(nodes, worth)]
    for _ in range(places - 1):
        behind = n - 1 - nodes[-1]
        parent = np.repeat(np.arange(len(behind)), behind)
        start = np.repeat(np.cumsum(behind) - behind, behind)
        last = nodes[-1, parent] + 1 + np.arange(len(parent)) - start
        worth = worth[parent] + problem.units[nodes[:, parent], last].sum(axis=0)
        nodes = np.concatenate((nodes[:, parent], last[None]))
        known.append((nodes, worth))
    padded = [
        np.pad(some, ((0, places - len(some)), (0, 0)), constant_values=n) for some, _ in known
    ]
    everybody = np.concatenate(padded, axis=1)
    masks = _added(1 << np.arange(n), everybody)
    listed = Listing(everybody, masks, np.concatenate([worth for _, worth in known]))
    players = _added(sizes.players, everybody)
    allowed = (players >= sizes.min_size) & (players <= sizes.max_size)
    if len(sizes.loads):
        allowed &= _added(sizes.loads, everybody) <= sizes.max_load
    for role in sizes.roles:
        allowed &= masks & sum(1 << node for node in role) != 0
    for a, b in sizes.apart:
        allowed &= masks & (1 << a | 1 << b) != 1 << a | 1 << b
    return listed[allowed]


def _added(amounts: IntVector, nodes: IntMatrix) -> IntVector:
    """Return the sums of what the nodes of coalitions have."""
    added: IntVector = np.append(amounts, 0).take(nodes).sum(axis=0)
    return added


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

    def __init__(self, case: Case, triples: IntMatrix, listed: Listing) -> None:
        self.case = case
        self._listed = listed.of_case(case)
        self._triples: IntVector = (1 << triples).sum(axis=1)
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
        case, listed = self.case, self._listed
        order = np.arange(case.n_groups) if order is None else order
        excess = listed.worth - _added(prices.nodes, listed.nodes) - prices.count
        # Only these can exceed their prices: those of triples, and raised ones, come on top.
        over = listed[(excess > 0).nonzero()[0]]
        excess = excess[excess > 0]
        for triple in prices.triples.nonzero()[0].tolist():
            shared = over.masks & self._triples[triple]
            excess[shared & (shared - 1) != 0] -= prices.triples[triple]
        # Groups that are left out count as infinitely late: their coalitions are nobody's.
        place = np.full(case.n_groups, len(order))
        place[order] = np.arange(len(order))
        turn = np.append(place[case.group], -1).take(over.nodes).max(axis=0)
        raised, found = _raised(over, excess, turn, self._first[order], keep, case.problem.n)
        paid = Prices(prices.nodes + raised, prices.count, prices.triples)
        return Priced(paid, over[found].members(case.problem.n), True)


def _raised(
    over: Listing, excess: IntVector, turn: IntVector, payers: IntVector, keep: int, n_nodes: int
) -> tuple[IntVector, IntVector]:
    """Return what the prices of nodes must rise by, and the numbers of some coalitions.

    Parameters
    ----------
    over, excess
        Coalitions, and by how much each exceeds its prices.
    turn
        Who pays for each: a place among the payers, or behind them.
    payers
        Nodes, in whose order prices rise.
    keep
        Coalitions for each payer.
    n_nodes
        Number of all nodes.
    """
    raised = np.zeros(n_nodes, np.int64)
    by_turn = turn.argsort(kind="stable")
    starts = turn[by_turn].searchsorted(np.arange(len(payers) + 1)).tolist()
    found = [np.zeros(0, np.int64)]
    for payer, start, end in zip(payers.tolist(), starts, starts[1:], strict=False):
        if start == end:
            continue
        own = by_turn[start:end]
        left = excess[own] - _added(raised, over.nodes[:, own])
        best = (-left).argsort(kind="stable")[:keep]
        best = best[left[best] > 0]
        if len(best):
            raised[payer] = left[best[0]]
            found.append(own[best])
    return raised, np.concatenate(found)
