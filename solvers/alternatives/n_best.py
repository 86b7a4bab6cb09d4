"""The best structures in order, by splitting what is left after each of them.

The scheme is Lawler's [Lawler1972]_: a part of all structures is described by pairs that are
together and pairs that are apart, and its best structure is one more call of `solve`. Taking a
structure out of its part leaves disjoint parts again: those that agree with it in the first t
pairs of a list and differ in the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from coalitions.errors import InfeasibleError, InvalidInputError, NoSolutionError
from coalitions.game import FloatMatrix, IntVector
from coalitions.graph import DENSE_LIMIT, SynergyGraph
from coalitions.runtime import clock
from coalitions.structure import CoalitionStructure, Position
from solvers.demands import Contraction, Demands, Links
from solvers.optimality import OPTIMALITY_TOLERANCE, at_stake, is_optimal, losses
from solvers.solution import Solution

MOST_OPTIMAL = 1000
"""So many optimal structures are listed unless `n_best` says otherwise: zeros make millions."""

FIRST_SHARE, SHARE = 0.5, 0.2
"""Shares of the time that is left for the best structure, and for each part after it: one hard
part is not to take all."""


class Search(Protocol):
    """One search of `solve` on a graph, with everything given but demands and time."""

    def __call__(
        self,
        demands: Demands,
        *,
        time_limit: float | None = ...,
        **more: Any,  # noqa: ANN401 (further arguments of the first search)
    ) -> Solution:
        """Return the best structure that meets the demands."""
        ...


def ranked(
    graph: SynergyGraph,
    demands: Demands,
    search: Search,
    *,
    n_best: int | None,
    all_optimal: bool,
    time_limit: float | None,
    first: Mapping[str, Any],
) -> Solution:
    """Return the best structure, and in its `others` those that follow it.

    Parameters
    ----------
    graph, demands
        The players, and what all structures must meet.
    search
        Returns the best structure under demands.
    n_best
        How many structures there are to be, the best one included.
    all_optimal
        Whether to end with the last structure that is optimal.
    time_limit
        Seconds for all of it.
    first
        Further arguments of the first search.
    """
    most = _checked_number(n_best, all_optimal, graph)
    started = clock()
    deadline = math.inf if time_limit is None else started + time_limit
    best = search(
        demands,
        time_limit=None if time_limit is None else time_limit * (FIRST_SHARE if most > 1 else 1.0),
        **first,
    )
    stake = at_stake(best.positive_weight, best.losses)
    rest = _Rest(graph, demands, search, best, deadline)
    taken: list[_Part] = []
    while len(taken) < most and (part := rest.best()) is not None:
        if all_optimal and taken and not is_optimal(part.value, taken[0].value, stake):
            break
        taken.append(part)
        least = taken[0].value - 2 * OPTIMALITY_TOLERANCE * stake if all_optimal else -math.inf
        rest.take(part, most - len(taken), least)

    taken.sort(key=lambda part: part.order)
    bound = rest.bound
    listed = [
        replace(
            best,
            structure=part.structure,
            value=part.value,
            losses=part.losses,
            bound=max(part.value, best.bound if place == 0 else min(bound, best.bound)),
            seconds=clock() - started,
            stats={},
            prove=None,
        )
        for place, part in enumerate(taken)
    ]
    stats = dict(best.stats)
    if rest.interrupted:
        stats["interrupted"] = True
    unproven = sum(not solution.optimal for solution in listed)
    if unproven or (rest.stopped and len(taken) < most and bound > -math.inf):
        stats["others"] = (
            f"{len(taken)} structures were found, and for {unproven} of them it is not proven that"
            " no better one is missing"
        )
    elif all_optimal and len(taken) == most:
        stats["others"] = f"the list ends after {most} optimal structures; there may be more"
    return replace(listed[0], stats=stats, prove=best.prove, others=tuple(listed[1:]))


@dataclass(frozen=True)
class _Part:
    """Some structures, described by links, with the best one that is known and a bound."""

    together: Links
    apart: Links
    bound: float
    structure: CoalitionStructure
    value: float
    losses: float = 0.0

    @property
    def order(self) -> tuple[float, tuple[tuple[int, ...], ...]]:
        """What comes first: the larger value; of equal ones the smaller lists of players."""
        return -self.value, self.structure.coalitions


@dataclass
class _Rest:
    """All structures that were not taken yet, in disjoint parts."""

    graph: SynergyGraph
    demands: Demands
    search: Search
    solution: Solution
    deadline: float
    nodes: Contraction = field(init=False)
    parts: list[_Part] = field(init=False)
    unsearched: float = -math.inf
    """A bound on what is in no part: left for want of time, or since better ones fill the list."""
    stopped: bool = False
    interrupted: bool = False

    def __post_init__(self) -> None:
        best = self.solution
        self.nodes = Contraction.apply(self.graph, self.demands)
        self.parts = [_Part((), (), best.bound, best.structure, best.value, best.losses)]
        self._note(best)

    @property
    def bound(self) -> float:
        """A bound on all structures that are left."""
        return max([self.unsearched, *(part.bound for part in self.parts)])

    def is_over(self) -> bool:
        """Whether no more is looked for."""
        return self.interrupted or clock() >= self.deadline

    def best(self) -> _Part | None:
        """Return the part with the best structure: they are in order."""
        return self.parts[0] if self.parts else None

    def take(self, part: _Part, room: int, least: float) -> None:
        """Take the best structure out of a part; at most `room` more will be asked for."""
        self.parts.remove(part)
        if not room or self.is_over():  # the list is full, or there is no time
            self.stopped |= self.is_over()
            self.unsearched = max(self.unsearched, part.bound)
            return
        try:
            for child in self._without_best(part, room, least):
                self.parts.append(child)
                if self.is_over():
                    break
        except KeyboardInterrupt:  # between two searches; a search handles it itself
            self.interrupted = True
        if self.is_over():
            self.stopped = True
            self.unsearched = max(self.unsearched, part.bound)
        self.parts.sort(key=lambda part: part.order)
        self.unsearched = max([self.unsearched, *(part.bound for part in self.parts[room:])])
        del self.parts[room:]

    def _without_best(self, part: _Part, room: int, least: float) -> Iterator[_Part]:
        """Yield the parts of a part that remain when its best structure is gone.

        First come pairs of a coalition that are parted, all pairs before them being together; then
        whole coalitions that are joined. Early ones shrink the graph for those that follow.
        """
        nodes = Contraction.apply(self.graph, self.demands.with_links(part.together, part.apart))
        labels = nodes.contract(part.structure.labels)
        first = np.unique(nodes.group, return_index=True)[1]
        heads: dict[int, Position] = {}
        together = part.together
        for node, label in enumerate(labels.tolist()):
            player = Position(first[node])
            if label not in heads:
                heads[label] = player
                continue
            pair = (heads[label], player)
            child = self._searched(part, together, (*part.apart, pair))
            if child is not None:
                yield child
            together = (*together, pair)
        apart = part.apart
        between = _between(nodes, labels)
        gain = float(np.maximum(np.triu(between, 1), 0.0).sum())
        for number, (a, b) in enumerate(_joinable(between)):
            pair = (heads[a], heads[b])
            if self.demands.sizes:
                child = self._searched(part, (*together, pair), apart)
                if child is not None:
                    yield child
            else:
                yield self._joined(part, (*together, pair), apart, (a, b), gain)
                if number == room or part.value + between[a, b] < least:
                    return  # they come in order: those that follow are not needed
            apart = (*apart, pair)

    def _joined(
        self, part: _Part, together: Links, apart: Links, blocks: tuple[int, int], gain: float
    ) -> _Part:
        """Return the part in which two coalitions of the best structure are one.

        Their players are held together, so what remains is a graph of coalitions. All of its
        weights are at most 0, or the structure was not the best: no other join gains anything.
        """
        labels = part.structure.labels.copy()
        labels[labels == blocks[1]] = blocks[0]
        structure = CoalitionStructure.from_labels(labels)
        value = self.graph.value(structure)
        return _Part(together, apart, min(part.bound, value + gain), structure, value)

    def _searched(self, part: _Part, together: Links, apart: Links) -> _Part | None:
        """Return a part with its best structure, None if there is none or no time for it."""
        left = self.deadline - clock()
        if self.is_over():
            return None
        try:
            found = self.search(
                self.demands.with_links(together, apart),
                time_limit=None if math.isinf(left) else SHARE * left,
            )
        except InfeasibleError:
            return None
        except NoSolutionError:
            if math.isinf(left):
                raise
            self.stopped = True
            self.unsearched = max(self.unsearched, part.bound)
            return None
        self._note(found)
        bound = min(part.bound, found.bound)
        # The links of a part are not demanded: what they make one lose counts.
        labels = self.nodes.contract(found.structure.labels)
        lost = losses(self.nodes.graph, labels) if self.demands.sizes else 0.0
        return _Part(together, apart, bound, found.structure, found.value, lost)

    def _note(self, found: Solution) -> None:
        self.interrupted |= bool(found.stats.get("interrupted"))
        self.stopped |= self.interrupted or not found.optimal


def _between(nodes: Contraction, labels: IntVector) -> FloatMatrix:
    """Return the synergies between the coalitions of a structure; −∞ where a pair is forbidden."""
    n_blocks = int(labels.max()) + 1
    i, j, weight = nodes.graph.edges
    between = np.zeros((n_blocks, n_blocks))
    with np.errstate(over="ignore"):  # forbidden pairs have the lowest weight there is
        np.add.at(between, (labels[i], labels[j]), weight)
        between += between.T
    for a, b in nodes.cannot_link:
        one, other = labels[nodes.group[a]], labels[nodes.group[b]]
        between[one, other] = between[other, one] = -math.inf
    return between


def _joinable(between: FloatMatrix) -> Iterator[tuple[int, int]]:
    """Yield the pairs of coalitions that may be joined, the best first."""
    a, b = np.triu_indices(len(between), 1)
    weight = between[a, b]
    for k in np.argsort(-weight, kind="stable"):
        if np.isfinite(weight[k]):
            yield int(a[k]), int(b[k])


def _checked_number(n_best: int | None, all_optimal: bool, graph: SynergyGraph) -> int:
    if n_best is None:
        n_best = MOST_OPTIMAL if all_optimal else 1
    if isinstance(n_best, bool) or not isinstance(n_best, int | np.integer) or n_best < 1:
        raise InvalidInputError(f"n_best is {n_best!r}; it must be a whole number from 1 on")
    if n_best > 1 and graph.n_players > DENSE_LIMIT:
        raise InvalidInputError(
            f"n_best and all_optimal take at most {DENSE_LIMIT} players; there are"
            f" {graph.n_players}"
        )
    return int(n_best)
