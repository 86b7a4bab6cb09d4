"""solve_overlapping: the best coalitions where a player may be in several."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from coalitions.checks import GraphLike, as_graph
from coalitions.errors import InvalidInputError, with_keywords
from coalitions.formatting import decimal, figure
from coalitions.game import BoolVector, IntVector
from coalitions.graph import SynergyGraph, matrix_of_pairs, weight_sum
from coalitions.results import PublicResult, Row
from coalitions.runtime import clock
from coalitions.structure import numbering
from solvers.optimality import is_optimal, rounded_up
from solvers.overlap.packing import (
    OverlapRules,
    PackingColumns,
    best_packing,
    good_packing,
    proven_bound,
    relaxed,
)
from solvers.overlap.profitable import MOST_PLAYERS, IntMatrix, Listed, listed
from solvers.reductions import ScaledWeights, conditioned_for_overlap, integer_weights
from solvers.solution import relative_gap
from solvers.solver import Limits, heeding_ctrl_c

GENERATION_SHARE = 0.6
"""Share of the time for generating coalitions; the rest is for choosing among them."""

COLUMNS_A_ROUND = 200
"""New coalitions that the linear program gets at a time."""

MOST_COLUMNS = 100_000
"""So many coalitions may be left to choose from; with more, the bound is all that is proven."""

TINY = 1e-9
"""What the linear program may round off, relative to the most valuable coalition."""


@dataclass(frozen=True)
class OverlappingSolution(PublicResult):
    """Coalitions that may overlap, with a proof.

    Attributes
    ----------
    coalitions
        The coalitions, of two or more players each, in lexicographic order. Whoever is in none is
        alone.
    value
        What they are worth together, less the cost of memberships.
    bound
        Nothing is worth more than this.
    positive_weight
        The scale on which value and bound are compared: the sum of the positive synergies, as often
        as they may count.
    seconds
        Wall time.
    stats
        Rounds, columns and nodes.
    graph
        The graph that was solved.
    """

    coalitions: tuple[tuple[int, ...], ...]
    value: float
    bound: float
    positive_weight: float
    seconds: float
    stats: Mapping[str, Any] = field(default_factory=dict)
    graph: SynergyGraph | None = field(default=None, repr=False, compare=False)

    @property
    def gap(self) -> float:
        """Relative distance of value and bound: 0 if they meet."""
        return relative_gap(self.value, self.bound)

    @property
    def optimal(self) -> bool:
        """Whether bound and value meet, so that nothing better exists."""
        return is_optimal(self.value, self.bound, self.positive_weight)

    @property
    def named(self) -> tuple[tuple[str, ...], ...]:
        """The coalitions as names of players, in the order of `coalitions`."""
        names = str if self.graph is None else self.graph.labels.__getitem__
        return tuple(tuple(map(names, coalition)) for coalition in self.coalitions)

    def to_dict(self) -> dict[str, Any]:
        """Return the coalitions by name, what they are worth and what is proven."""
        return {
            "coalitions": [list(coalition) for coalition in self.named],
            "value": decimal(self.value),
            "bound": decimal(self.bound),
            "gap": self.gap,
            "optimal": self.optimal,
            "seconds": self.seconds,
        }

    def _rows(self) -> list[Row]:
        worth = (None if self.graph is None else self._worth(block) for block in self.coalitions)
        return [
            {"coalition": number, "players": list(names), "synergy inside": inside}
            for number, (names, inside) in enumerate(zip(self.named, worth, strict=True), 1)
        ]

    def _worth(self, block: tuple[int, ...]) -> float:
        assert self.graph is not None
        return weight_sum(self.graph.subgraph(block).edges.weight)

    def _below(self) -> str:
        most = f"not proven: at most {figure(self.bound)} is possible"
        proven = "optimal" if self.optimal else most
        return f"value {figure(self.value)}, {proven}; {self.seconds:.3g} s"

    def of(self, player: Hashable) -> tuple[tuple[int, ...], ...]:
        """Return the coalitions that a player is in, who is given as `solve` takes players."""
        number = player if self.graph is None else numbering(self.graph)(player)
        return tuple(coalition for coalition in self.coalitions if number in coalition)

    def communities(self) -> list[set[Hashable]]:
        """Return the coalitions as sets of the graph's own nodes, in the order of `coalitions`."""
        return [
            {player if self.graph is None else self.graph.nodes[player] for player in coalition}
            for coalition in self.coalitions
        ]


@with_keywords(
    solver="it has one method, an exact one",
    seed="it draws nothing, and the same graph always has the same answer",
    threads="it works on one",
)
def solve_overlapping(
    graph: GraphLike,
    memberships: int = 2,
    membership_cost: float = 0.0,
    *,
    max_size: int | None = None,
    meetings: int | None = 1,
    time_limit: float | None = None,
) -> OverlappingSolution:
    r"""Return the best coalitions where a player may be in several.

    .. math:: \max \sum_{C} \Bigl( \sum_{i<j \in C} s_{ij} - c \, |C| \Bigr)

    over sets of coalitions in which everybody is in at most m of them.

    A synergy is what two players gain from being together, and they gain it once: two players are
    together in at most one coalition. Otherwise the best structure would just be repeated with
    small changes, and every synergy be counted m times. With ``meetings=None`` each common
    coalition counts, as in projects that run side by side; the same coalition never counts twice.

    Parameters
    ----------
    graph
        A synergy graph of up to 62 players, or a matrix that makes one.
    memberships
        Most coalitions of a player, m. With 1 and no cost it is the problem of `solve`.
    membership_cost
        What each membership costs, c. To be alone costs nothing.
    max_size
        Most players of a coalition.
    meetings
        How many coalitions two players may share; None for as many as `memberships` allows.
    time_limit
        Wall time in seconds; the answer is then the best so far, with a valid bound.

    Raises
    ------
    InvalidInputError
        An argument is wrong, or there are more than 62 players.

    Notes
    -----
    Column generation: a linear program over some coalitions gives prices of players and pairs,
    and a search over all coalitions says which others pay at these prices. When none does, the
    prices prove a bound. Only coalitions whose reduced value is within the gap can be in a better
    solution; they are listed, and branch and bound chooses among them. Bounds are worked out in
    whole numbers.

    Examples
    --------
    >>> friends = [[0, 3, 2], [3, 0, -4], [2, -4, 0]]
    >>> solution = solve_overlapping(friends)
    >>> solution.coalitions, solution.value, solution.optimal
    (((0, 1), (0, 2)), 5.0, True)
    """
    started = clock()
    graph = as_graph(graph)
    _check(graph, memberships, membership_cost, max_size, meetings, time_limit)
    limits = Limits(deadline=None if time_limit is None else started + time_limit)
    n = graph.n_players
    shared = memberships if meetings is None else min(meetings, memberships)
    i, j, _ = graph.edges
    weight, price = conditioned_for_overlap(graph, float(membership_cost))
    scaled = integer_weights(np.append(weight, -price))
    pairs = matrix_of_pairs(n, i, j, scaled.integers[:-1])
    cost = -int(scaled.integers[-1])
    total = int(np.abs(scaled.integers[:-1]).sum()) + n * cost
    rules = OverlapRules.of(n, memberships, shared, total)
    problem = _Problem(pairs, np.full(n, cost), min(max_size or n, n), rules)
    with heeding_ctrl_c(limits):
        masks, bound, stats = _solved(problem, limits)
    coalitions = tuple(
        sorted(tuple(player for player in range(n) if mask >> player & 1) for mask in masks)
    )
    value = _worth(graph, coalitions, membership_cost)
    most = min(float(graph.positive_weight) * shared, sys.float_info.max)
    return OverlappingSolution(
        coalitions=coalitions,
        value=value,
        bound=max(value, min(most, _as_float(bound, scaled, n * memberships))),
        positive_weight=most,
        seconds=clock() - started,
        stats={**stats, **({"interrupted": True} if limits.interrupted.is_set() else {})},
        graph=graph,
    )


@dataclass(frozen=True)
class _Problem:
    """Values of pairs, prices of memberships and the rules, in whole numbers."""

    pairs: IntMatrix
    prices: IntVector
    most_members: int
    rules: OverlapRules

    def paying(
        self, prices: IntVector, least: int, most: int, limits: Limits, *, only_best: bool = False
    ) -> Listed:
        """Return coalitions whose reduced value is at least `least`, in units of 1/fine."""
        rules = self.rules
        n, fine = rules.n_players, rules.fine
        pairs = self.pairs * fine
        a, b = rules.pairs
        pairs[a, b] -= prices[n:]
        pairs[b, a] -= prices[n:]
        alone = self.prices * fine + prices[:n]
        return listed(
            pairs,
            alone,
            least=least,
            most_members=self.most_members,
            most=most,
            expired=lambda: limits.expired,
            only_best=only_best,
        )

    def columns(self, masks: IntVector) -> PackingColumns:
        """Return coalitions as columns."""
        n = self.rules.n_players
        inside = (masks[:, None] >> np.arange(n)) & 1
        values = ((inside @ self.pairs) * inside).sum(axis=1) // 2 - inside @ self.prices
        return PackingColumns.of(masks, values, self.rules)


def _solved(problem: _Problem, limits: Limits) -> tuple[list[int], int, dict[str, int]]:
    """Return the best coalitions found as bit sets, a bound, and what was counted."""
    rules = problem.rules
    trivial = rules.meetings * int(np.triu(np.maximum(problem.pairs, 0)).sum())
    a, b = np.triu_indices(rules.n_players, 1)
    columns = problem.columns((1 << a) | (1 << b))
    columns = columns.only((columns.values > 0) & (problem.most_members >= 2))
    rounds, bound = 0, trivial * rules.fine
    prices, tiny = None, 1
    generating = limits.part(GENERATION_SHARE)
    while not generating.expired:
        rounds += 1
        relaxation = relaxed(columns, rules.limits, rules, limits)
        tiny = max(1, int(TINY * float(columns.values.max(initial=1)) * rules.fine))
        full = int((relaxation.point > 0.5).sum())  # these may pay, and are there already
        found = problem.paying(
            relaxation.prices, 1, COLUMNS_A_ROUND + full, generating, only_best=True
        )
        if found.complete:
            proven = proven_bound(relaxation.prices, rules.limits, found.worths, rules, tiny)
            if proven < bound:
                bound, prices = proven, relaxation.prices
        fresh = (found.worths > tiny) & ~np.isin(found.masks, columns.masks)
        if not fresh.any():
            break
        columns = columns.with_more(problem.columns(found.masks[fresh]))
    start = good_packing(columns, rules, limits)
    chosen, value = columns.masks[start].tolist(), int(columns.values[start].sum())
    stats = {"rounds": rounds, "columns": len(columns), "nodes": 0}
    if bound // rules.fine <= value or prices is None or limits.expired:
        return chosen, max(value, bound // rules.fine), stats
    # A better packing holds only columns that the prices do not rule out.
    least = (value + 1) * rules.fine - bound
    found = problem.paying(prices, least, MOST_COLUMNS, limits)
    if not found.complete:
        return chosen, bound // rules.fine, stats
    kept = problem.columns(np.union1d(found.masks, np.array(chosen, np.int64)))
    kept = kept.only(kept.values > 0)
    again = good_packing(kept, rules, limits)
    if int(kept.values[again].sum()) < value:
        again = np.isin(kept.masks, chosen)
    best = best_packing(kept, rules, again, bound, limits, tiny)
    stats |= {"columns": len(kept), "nodes": best.nodes}
    return kept.masks[best.chosen].tolist(), best.bound, stats


def _worth(graph: SynergyGraph, coalitions: tuple[tuple[int, ...], ...], cost: float) -> float:
    """Return what coalitions are worth less the cost, correctly rounded."""
    i, j, weight = graph.edges
    terms: list[float] = []
    for coalition in coalitions:
        inside: BoolVector = np.zeros(graph.n_players, bool)
        inside[list(coalition)] = True
        terms += weight[inside[i] & inside[j]].tolist()
        terms += [-cost] * len(coalition)
    return weight_sum(np.array(terms)) + 0.0


def _as_float(bound: int, scaled: ScaledWeights, most_terms: int) -> float:
    """Return the bound on the weights; a rounding may count once for each membership."""
    return rounded_up(scaled.unit * bound + Fraction(scaled.slack) * most_terms)


def _check(
    graph: SynergyGraph,
    memberships: int,
    cost: float,
    max_size: int | None,
    meetings: int | None,
    time_limit: float | None,
) -> None:
    if graph.n_players > MOST_PLAYERS:
        raise InvalidInputError(
            f"solve_overlapping takes at most {MOST_PLAYERS} players; there are {graph.n_players}"
        )
    numbers = {"memberships": memberships, "max_size": max_size, "meetings": meetings}
    for name, number in numbers.items():
        if number is None and name != "memberships":
            continue
        whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
        if not whole or number < 1:  # type: ignore[operator]
            raise InvalidInputError(f"{name} is {number!r}; it must be a whole number from 1 on")
    if not 0 <= cost < math.inf:
        raise InvalidInputError(
            f"membership_cost is {cost}; it must be a number that is not negative"
        )
    if time_limit is not None and not time_limit > 0:
        raise InvalidInputError(f"time_limit is {time_limit}; it must be a positive number")
