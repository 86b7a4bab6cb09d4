"""Problem and Case: what is asked in whole numbers, and the part of it with some pairs decided."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coalitions.game import BoolMatrix, BoolVector, IntMatrix, IntVector
from solvers.sizes import Sizes

SUM_BITS = 50
"""Weights, in units of prices, stay below 2^50 in sum."""

PRICE_BITS = 20
"""Prices are at most so many bits finer than weights."""

ROOM_BITS = 60
"""Sums of prices stay below 2^60."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Whole weights between nodes, and the demands on coalitions.

    Attributes
    ----------
    weights
        Synergies [n, n], symmetric with a zero diagonal; whole numbers.
    sizes
        The demands.
    bits
        Prices count in units of 2^−bits of a weight; negative if weights are too large.
    units
        The weights in units of prices, rounded up [n, n].
    loads
        The load of each node, zeros if there is no such demand.
    holds
        Which roles a node holds [n, r].
    apart
        Pairs that must not be together [n, n].
    """

    weights: IntMatrix
    sizes: Sizes
    bits: int
    units: IntMatrix
    loads: IntVector
    holds: BoolMatrix
    apart: BoolMatrix

    @classmethod
    def of(cls, weights: IntMatrix, sizes: Sizes) -> Problem:
        """Return the problem for a matrix of whole weights."""
        n = len(weights)
        total = sum(np.abs(np.triu(weights)).sum(axis=1).tolist())
        bits = min(PRICE_BITS, SUM_BITS - total.bit_length())
        holds = np.zeros((n, len(sizes.roles)), np.bool_)
        for role, members in enumerate(sizes.roles):
            holds[list(members), role] = True
        apart = np.zeros((n, n), np.bool_)
        for a, b in sizes.apart:
            apart[a, b] = apart[b, a] = True
        return cls(
            weights=weights,
            sizes=sizes,
            bits=bits,
            units=weights << bits if bits >= 0 else -(-weights >> -bits),
            loads=sizes.loads if len(sizes.loads) else np.zeros(n, np.int64),
            holds=holds,
            apart=apart,
        )

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.weights)

    @property
    def highest_price(self) -> int:
        """No price is above this, nor below minus this; sums of a coalition's prices have room."""
        return (1 << ROOM_BITS) // (self.places + 2)

    @property
    def places(self) -> int:
        """No coalition has more nodes."""
        return min(self.n, self.sizes.max_size // int(self.sizes.players.min()))

    def floor(self, total: int) -> int:
        """Return the whole weight that a sum of prices is, rounded down."""
        return total >> self.bits if self.bits >= 0 else total << -self.bits

    def ceiling(self, weight: int) -> int:
        """Return a whole weight in units of prices, rounded up."""
        return weight << self.bits if self.bits >= 0 else -(-weight >> -self.bits)

    @property
    def losses(self) -> int:
        """Sum of all negative weights, without the sign: no structure loses more."""
        lost: int = sum(np.minimum(np.triu(self.weights), 0).sum(axis=1).tolist())
        return -lost

    def worth(self, columns: BoolMatrix) -> IntVector:
        """Return the values of coalitions, given as rows of members."""
        members = columns.astype(np.int64)
        worth: IntVector = np.einsum("ij,ij->i", members @ self.weights, members) // 2
        return worth

    def value(self, labels: IntVector) -> int:
        """Return the value of a structure."""
        return int(self.weights[labels[:, None] == labels].sum()) // 2


@dataclass(frozen=True, eq=False)
class Case:
    """The structures that have some pairs together and some apart.

    Attributes
    ----------
    problem
        What is asked.
    group
        Nodes that must be together have the same number, from 0 without gaps [n].
    apart
        Groups that must not be together [g, g].
    pairs_together, pairs_apart
        The pairs of nodes that were decided.
    """

    problem: Problem
    group: IntVector
    apart: BoolMatrix
    pairs_together: tuple[tuple[int, int], ...] = ()
    pairs_apart: tuple[tuple[int, int], ...] = ()

    @classmethod
    def whole(cls, problem: Problem) -> Case:
        """Return the case of all structures."""
        return cls(problem, np.arange(problem.n), problem.apart)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.apart)

    @property
    def decided(self) -> bool:
        """Whether every pair is together or apart."""
        return bool(self.apart[~np.eye(self.n_groups, dtype=np.bool_)].all())

    @property
    def players(self) -> IntVector:
        """Number of players of each group."""
        return _added(self.problem.sizes.players, self.group, self.n_groups)

    @property
    def loads(self) -> IntVector:
        """Load of each group."""
        return _added(self.problem.loads, self.group, self.n_groups)

    def with_apart(self, a: int, b: int) -> Case:
        """Return the case in which two nodes are apart."""
        apart = self.apart.copy()
        i, j = self.group[a], self.group[b]
        apart[i, j] = apart[j, i] = True
        return Case(
            self.problem, self.group, apart, self.pairs_together, (*self.pairs_apart, (a, b))
        )

    def with_together(self, a: int, b: int) -> Case:
        """Return the case in which two nodes are together."""
        i, j = sorted((int(self.group[a]), int(self.group[b])))
        group = np.where(self.group == j, i, self.group)
        group = np.where(group > j, group - 1, group)
        apart = self.apart.copy()
        apart[i] |= apart[j]
        apart[:, i] |= apart[:, j]
        apart = np.delete(np.delete(apart, j, axis=0), j, axis=1)
        return Case(self.problem, group, apart, (*self.pairs_together, (a, b)), self.pairs_apart)

    def misfit(self) -> int | None:
        """Return a node of a group that no coalition can hold, or None if there is none."""
        sizes = self.problem.sizes
        bad = (
            (self.players > sizes.max_size) | (self.loads > sizes.max_load) | self.apart.diagonal()
        )
        return int(np.flatnonzero(bad[self.group])[0]) if bad.any() else None

    def allows(self, columns: BoolMatrix) -> BoolVector:
        """Tell which of some coalitions, all of them allowed by the demands, belong to the case."""
        allowed = np.ones(len(columns), np.bool_)
        for a, b in self.pairs_together:
            allowed &= columns[:, a] == columns[:, b]
        for a, b in self.pairs_apart:
            allowed &= ~(columns[:, a] & columns[:, b])
        return allowed


def _added(amounts: IntVector, group: IntVector, n_groups: int) -> IntVector:
    added = np.zeros(n_groups, np.int64)
    np.add.at(added, group, amounts)
    return added
