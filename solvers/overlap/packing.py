r"""Packings of coalitions: the linear program, its bound in whole numbers, and branch and bound.

.. math:: \max \sum_C v(C) z_C, \quad \sum_{C \ni i} z_C \le m, \quad
          \sum_{C \ni i, j} z_C \le k, \quad z_C \in \{0, 1\}

Whatever prices :math:`\pi_i, \sigma_{ij} \ge 0` the program gives, in whole numbers they prove that
no packing is worth more than :math:`m \sum \pi_i + k \sum \sigma_{ij} + \sum_C \max(0, r_C)`, where
:math:`r_C = v(C) - \sum_{i \in C} \pi_i - \sum_{i<j \in C} \sigma_{ij}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_matrix, hstack

from coalitions.game import BoolVector, FloatVector, IntVector
from solvers.overlap.profitable import members_of
from solvers.solver import Limits

WHOLE_BITS = 58
"""Sums of scaled values stay below 2^58."""

INTEGRAL = 1e-6
"""A variable so near to 0 or 1 counts as whole."""

MILP_SHARE = 0.5
"""Share of the time that is left for SciPy's search for a good packing."""


@dataclass(frozen=True)
class OverlapRules:
    """What a packing keeps to.

    Attributes
    ----------
    n_players
        Number of players.
    memberships
        Most coalitions of a player.
    meetings
        Most coalitions that two players share; `memberships` if there is no such rule.
    fine
        Prices are whole numbers of 1/fine.
    """

    n_players: int
    memberships: int
    meetings: int
    fine: int

    @classmethod
    def of(cls, n_players: int, memberships: int, meetings: int, total: int) -> OverlapRules:
        """Return the rules with prices as fine as 64 bits allow; `total` is all there is to add."""
        fine = 1 << max(0, WHOLE_BITS - (2 * memberships * total + 1).bit_length())
        return cls(n_players, memberships, meetings, fine)

    @property
    def pairs(self) -> tuple[IntVector, IntVector]:
        """The pairs that have a row: none if only memberships are limited."""
        if self.meetings >= self.memberships:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return np.triu_indices(self.n_players, 1)

    @property
    def limits(self) -> IntVector:
        """The right-hand side: players first, then pairs."""
        rows = len(self.pairs[0])
        return np.repeat([self.memberships, self.meetings], [self.n_players, rows])


@dataclass(frozen=True)
class PackingColumns:
    """Coalitions with their values and their rows."""

    masks: IntVector
    values: IntVector
    rows: csr_matrix

    @classmethod
    def of(cls, masks: IntVector, values: IntVector, rules: OverlapRules) -> PackingColumns:
        """Return the columns of some coalitions."""
        members = members_of(masks, rules.n_players)
        a, b = rules.pairs
        rows = np.concatenate((members, members[:, a] & members[:, b]), axis=1)
        return cls(masks, values, csr_matrix(rows).astype(np.float64).T.tocsr())

    def __len__(self) -> int:
        return len(self.masks)

    def only(self, kept: BoolVector) -> PackingColumns:
        """Return some of the columns."""
        return PackingColumns(
            self.masks[kept], self.values[kept], self.rows[:, np.flatnonzero(kept)]
        )

    def with_more(self, more: PackingColumns) -> PackingColumns:
        """Return these columns and others."""
        return PackingColumns(
            np.concatenate((self.masks, more.masks)),
            np.concatenate((self.values, more.values)),
            csr_matrix(hstack((self.rows, more.rows))),
        )

    def reduced(self, prices: IntVector, fine: int) -> IntVector:
        """Return r for each column, in units of 1/fine."""
        # Sums stay below 2^58 and rows are 0 or 1, so int64 holds what floats would round.
        return np.asarray(self.values * fine - self.rows.T.astype(np.int64) @ prices)


@dataclass(frozen=True)
class Relaxation:
    """A point of the linear program, and prices in whole numbers of 1/fine."""

    point: FloatVector
    prices: IntVector


def relaxed(
    columns: PackingColumns, room: IntVector, rules: OverlapRules, limits: Limits
) -> Relaxation:
    """Return the optimum of the linear program over some columns; nothing if time is up first."""
    if not len(columns):
        return Relaxation(np.zeros(0), np.zeros(len(room), np.int64))
    options: Any = {"dual_feasibility_tolerance": 1e-9}
    if limits.deadline is not None:
        options["time_limit"] = max(0.01, limits.seconds_left)
    scale = float(columns.values.max())
    rows: Any = columns.rows  # SciPy takes sparse rows, its types do not say so
    answer = linprog(
        -columns.values / scale,
        A_ub=rows,
        b_ub=room,
        bounds=(0, 1),
        method="highs-ds",
        options=options,
    )
    # It is feasible (nobody in anything) and bounded: otherwise HiGHS gave up, or the time is over.
    if answer.x is None:
        return Relaxation(np.zeros(len(columns)), np.zeros(len(room), np.int64))
    prices = np.maximum(-answer.ineqlin.marginals, 0.0) * scale
    whole = [math.ceil(price * rules.fine) for price in prices.tolist()]
    return Relaxation(np.asarray(answer.x), np.array(whole, np.int64))


def proven_bound(
    prices: IntVector, limits: IntVector, reduced: IntVector, rules: OverlapRules, tiny: int
) -> int:
    """Return what no packing of the columns is worth more than, in units of 1/fine.

    Many columns may be above 0 by what the program rounds off. Raising every player's price by half
    of the most of these takes all of them to 0, which costs less than their sum.
    """
    total = int(limits @ prices)
    rest = reduced[(reduced > 0) & (reduced <= tiny)]
    lift = -(-int(rest.max(initial=0)) // 2) * int(limits[: rules.n_players].sum())
    large = int(reduced[reduced > tiny].sum())
    return total + large + min(lift, int(rest.sum()))


def good_packing(columns: PackingColumns, rules: OverlapRules, limits: Limits) -> BoolVector:
    """Return the packing that SciPy finds, or the greedy one if that is better."""
    greedy = _greedy(columns, rules)
    if not len(columns) or limits.expired:
        return greedy
    options: Any = {"mip_rel_gap": 0.0}
    if limits.deadline is not None:
        options["time_limit"] = max(0.01, MILP_SHARE * limits.seconds_left)
    answer = milp(
        -columns.values / float(columns.values.max()),
        integrality=np.ones(len(columns), np.int64),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(columns.rows, ub=rules.limits),
        options=options,
    )
    if answer.x is None:
        return greedy
    chosen: BoolVector = answer.x > 0.5
    fits = (columns.rows @ chosen <= rules.limits + 0.5).all()
    return (
        chosen if fits and columns.values[chosen].sum() >= columns.values[greedy].sum() else greedy
    )


def _greedy(columns: PackingColumns, rules: OverlapRules) -> BoolVector:
    """Return the packing that takes the most valuable column that fits, again and again."""
    chosen = np.zeros(len(columns), bool)
    room = rules.limits.astype(np.float64)
    by_column = columns.rows.tocsc()
    for column in np.argsort(-columns.values, kind="stable"):
        rows = by_column.indices[by_column.indptr[column] : by_column.indptr[column + 1]]
        if (room[rows] > 0).all():
            room[rows] -= 1
            chosen[column] = True
    return chosen


@dataclass(frozen=True)
class _Node:
    """Columns that are in, columns that are still open, and a bound in units of 1/fine."""

    inside: tuple[int, ...]
    open: BoolVector
    bound: int


@dataclass(frozen=True)
class Packing:
    """The best packing found: which columns, what no packing is worth more than, and the nodes."""

    chosen: BoolVector
    value: int
    bound: int
    nodes: int


def best_packing(
    columns: PackingColumns,
    rules: OverlapRules,
    start: BoolVector,
    bound: int,
    limits: Limits,
    tiny: int,
) -> Packing:
    """Return the best packing of the columns, by branch and bound on single columns.

    Parameters
    ----------
    columns, rules
        What there is to choose from.
    start
        A packing to begin with.
    bound
        A bound on all packings that are better than `start`, in units of 1/fine.
    limits
        When to stop.
    tiny
        What the linear program may round off.
    """
    best = Packing(start, int(columns.values[start].sum()), 0, 0)
    stack = [_Node((), np.ones(len(columns), bool), bound)]
    nodes = 0
    left = []
    while stack:
        node = stack.pop()
        if node.bound // rules.fine <= best.value:
            continue
        if limits.expired:
            left.append(node.bound)
            continue
        nodes += 1
        chosen = np.zeros(len(columns), bool)
        chosen[list(node.inside)] = True
        room = rules.limits - (columns.rows @ chosen).astype(np.int64)
        fits = node.open & ~np.asarray((columns.rows.T @ (room <= 0)) > 0)
        part = columns.only(fits)
        base = int(columns.values[chosen].sum())
        if not len(part):
            if base > best.value:
                best = replace(best, chosen=chosen, value=base)
            continue
        relaxation = relaxed(part, room, rules, limits)
        reduced = part.reduced(relaxation.prices, rules.fine)
        here = base * rules.fine + proven_bound(relaxation.prices, room, reduced, rules, tiny)
        here = min(here, node.bound)
        whole = relaxation.point > 1 - INTEGRAL
        if (part.rows @ whole <= room + 0.5).all():
            worth = base + int(part.values[whole].sum())
            if worth > best.value:
                taken = chosen.copy()
                taken[np.flatnonzero(fits)[whole]] = True
                best = replace(best, chosen=taken, value=worth)
        if here // rules.fine <= best.value:
            continue
        # In the most undecided column; if all are whole, in the first that could be left out.
        doubt = np.abs(relaxation.point - 0.5)
        column = int(np.flatnonzero(fits)[np.lexsort((-part.values, doubt.round(6)))[0]])
        rest = fits.copy()
        rest[column] = False
        stack.append(_Node(node.inside, rest, here))
        stack.append(_Node((*node.inside, column), rest, here))
    bound = max([best.value, *(each // rules.fine for each in left)])
    return replace(best, bound=bound, nodes=nodes)
