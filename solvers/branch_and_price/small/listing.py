"""Small problems without a search for columns: all allowed coalitions in a list.

To load compiled kernels takes a second, to compile them several. Up to twenty nodes the coalitions
that are allowed can often be listed in milliseconds, and a look through the list is a few sums in
NumPy: a coalition pays what it pays without its last node, and what that node pays. Most coalitions
pay their prices, so whatever takes longer is done for the others alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from coalitions.game import BoolMatrix, BoolVector, FloatVector, IntMatrix, IntVector
from solvers.branch_and_price.pricing import Priced, Prices
from solvers.branch_and_price.problem import Case, Problem

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

    def of_case(self, case: Case) -> Listing:
        """Return the coalitions that belong to a case."""
        if not case.pairs_together and not case.pairs_apart:
            return self
        return self.without(~case.allows(self.sets.members))


def all_coalitions(problem: Problem) -> Listing | None:
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

    def __init__(self, case: Case, triples: IntMatrix, listed: Listing) -> None:
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
