"""Fragile pairs: how far a synergy may change before another structure is better."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Unpack

import numpy as np

from coalitions.checks import GraphLike, as_graph
from coalitions.errors import InfeasibleError, InvalidInputError, NoSolutionError, with_keywords
from coalitions.graph import DENSE_LIMIT, SynergyGraph
from coalitions.results import PublicResult, Row, finite
from coalitions.runtime import clock
from coalitions.structure import CoalitionStructure, Position, Structured, numbering
from solvers.demands import Demands, SearchArguments, split_off
from solvers.optimality import advantage
from solvers.search import solve_demands
from solvers.solution import Solution

SHARE = 0.25
"""Share of the time left that one pair may take."""


@dataclass(frozen=True)
class FragilePair(PublicResult):
    r"""How far the synergy of a pair may change before another structure is better.

    A pair that is together may fall, one that is apart may rise, by

    .. math:: m_{ij} = v(\mathcal{C}) - \max \{ v(\mathcal{D}) : \mathcal{D}
              \text{ has the pair the other way} \}

    since all structures that have the pair together change alike. In the other direction it may
    change without end.

    Attributes
    ----------
    pair
        The two players.
    together
        Whether the structure has them together.
    synergy
        Their synergy.
    margin
        It may change by so much for sure; infinite if no structure has the pair the other way.
    at_most
        Beyond this change another structure is better for sure. Equal to `margin` if `exact`.
    exact
        Whether both are the same.
    alternative
        The structure that is better beyond `at_most`, if one is known.
    labels
        Names of the players.
    """

    pair: tuple[int, int]
    together: bool
    synergy: float
    margin: float
    at_most: float
    exact: bool
    alternative: CoalitionStructure | None
    labels: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def named(self) -> tuple[str, ...]:
        """The two players by name."""
        return tuple(self.labels[player] if self.labels else str(player) for player in self.pair)

    def to_dict(self) -> dict[str, Any]:
        """Return the pair by name, and how far its synergy may change; None for without end."""
        return {
            "pair": list(self.named),
            "together": self.together,
            "synergy": self.synergy,
            "margin": finite(self.margin),
            "at_most": finite(self.at_most),
            "exact": self.exact,
        }

    def _rows(self) -> list[Row]:
        return [self.to_dict()]


class FragilePairs(tuple[FragilePair, ...], PublicResult):
    """Pairs of players, the most fragile first: a tuple of `FragilePair`."""

    __slots__ = ()

    @property
    def named(self) -> dict[tuple[str, ...], float]:
        """The margin of each pair, by name."""
        return {pair.named: pair.margin for pair in self}

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values of each pair, in order."""
        return {"fragile": [pair.to_dict() for pair in self]}

    def _rows(self) -> list[Row]:
        return [pair.to_dict() for pair in self]

    __str__ = PublicResult.__str__


@with_keywords(*SearchArguments.__annotations__)
def fragile(
    graph: GraphLike,
    solution: Structured,
    player: Hashable | None = None,
    *,
    time_limit: float | None = None,
    **demands: Unpack[SearchArguments],
) -> FragilePairs:
    """Return the pairs of players, the most fragile first.

    One search for each pair finds the best structure that has it the other way, so the margin is
    exact. Where the time is over first, it is a bound, and `FragilePair.exact` says so.

    Parameters
    ----------
    graph
        The players and their synergies.
    solution
        The best structure: what `solve` returned, a structure, or lists of players.
    player
        Only the pairs of this player, by number or name.
    time_limit
        Seconds for all pairs.
    **demands
        The demands that a structure met, as `solve` takes them. A `Solution` knows its own.

    Examples
    --------
    >>> from solvers import solve
    >>> graph = SynergyGraph([[0, 3, 2], [3, 0, -4], [2, -4, 0]])
    >>> [(each.pair, each.margin) for each in fragile(graph, solve(graph))]
    [((0, 1), 1.0), ((0, 2), 1.0), ((1, 2), 2.0)]
    """
    graph = as_graph(graph)
    structure, demanded, settings = with_demands(graph, solution, demands)
    return fragile_under(graph, structure, demanded, settings, player, time_limit)


def fragile_under(
    graph: SynergyGraph,
    structure: CoalitionStructure,
    demands: Demands,
    settings: Mapping[str, Any],
    player: Hashable | None,
    time_limit: float | None,
) -> FragilePairs:
    """Return what `fragile` returns, for demands that are checked already.

    `settings` are the other arguments of `solve`.
    """
    n = graph.n_players
    if n > DENSE_LIMIT:
        raise InvalidInputError(f"fragile takes at most {DENSE_LIMIT} players; there are {n}")
    ends = list(itertools.combinations(map(Position, range(n)), 2))
    if player is not None:
        number = numbering(graph, "fragile")(player)
        ends = [pair for pair in ends if number in pair]
    deadline = math.inf if time_limit is None else clock() + time_limit
    value, labels = graph.value(structure), structure.labels
    a, b = np.array(ends, np.int64).reshape(-1, 2).T
    together, synergies = (labels[a] == labels[b]).tolist(), graph.matrix[a, b].tolist()
    pairs = [
        _Pair(*players, same, synergy)
        for players, same, synergy in zip(ends, together, synergies, strict=True)
    ]
    # Where time is short: first those that are together in spite of themselves, or so apart.
    pairs.sort(key=lambda pair: pair.synergy if pair.together else -pair.synergy)
    search = partial(solve_demands, graph, **settings)
    found: list[Solution | InfeasibleError | None] = []
    for pair in pairs:
        found.append(_best_without(search, pair, deadline, demands))
        if isinstance(found[-1], Solution) and found[-1].stats.get("interrupted"):
            deadline = clock()  # Ctrl-C: what is known is the answer
    known = {
        each.structure: advantage(graph.edges, labels, each.structure.labels)
        for each in found
        if isinstance(each, Solution)
    }
    others = _best_other_ways(pairs, known)
    judged = [
        _judged(pair, value, each, known, other)
        for pair, each, other in zip(pairs, found, others, strict=True)
    ]
    judged.sort(key=lambda each: (each.at_most, each.margin, each.pair))
    return FragilePairs(replace(each, labels=graph.labels) for each in judged)


class _Pair(NamedTuple):
    """Two players of a structure."""

    a: int
    b: int
    together: bool
    synergy: float


def with_demands(
    graph: SynergyGraph, solution: Structured, arguments: Mapping[str, Any]
) -> tuple[CoalitionStructure, Demands, dict[str, Any]]:
    """Return the structure of a solution, its demands, and the other arguments of `solve`.

    Demands among the arguments replace those of the solution, one by one.
    """
    structure = graph.structure(solution)
    given, settings = split_off(arguments)
    if isinstance(solution, Solution):
        links = {name: tuple(given.pop(name, ())) for name in ("must_link", "cannot_link")}
        links = {name: links[name] or getattr(solution, name) for name in links}
        given = {**solution.sizes, **given, **links}
    return structure, Demands.of(graph, **given), settings


def _best_without(
    search: Callable[..., Solution], pair: _Pair, deadline: float, demands: Demands
) -> Solution | InfeasibleError | None:
    """Return the best structure that has a pair the other way; None if there was no time."""
    seconds = deadline - clock()
    if seconds <= 0:
        return None
    link = ((pair.a, pair.b),)
    wish = demands.with_links(apart=link) if pair.together else demands.with_links(together=link)
    try:
        return search(wish, time_limit=None if math.isinf(seconds) else SHARE * seconds)
    except InfeasibleError as error:
        return error
    except NoSolutionError:
        if math.isinf(seconds):
            raise
        return None


def _best_other_ways(
    pairs: Sequence[_Pair], known: Mapping[CoalitionStructure, float]
) -> list[CoalitionStructure | None]:
    """Return for each pair the best known structure that has it the other way, if there is one."""
    a, b = np.array([(pair.a, pair.b) for pair in pairs], np.int64).reshape(-1, 2).T
    together = np.array([pair.together for pair in pairs], np.bool_)
    best = np.full(len(pairs), -1)
    ranked = sorted(known, key=known.__getitem__)  # of equal ones the first comes first
    for number, structure in enumerate(ranked):
        labels = structure.labels
        best[(best < 0) & ((labels[a] == labels[b]) != together)] = number
    return [None if number < 0 else ranked[number] for number in best.tolist()]


def _judged(
    pair: _Pair,
    value: float,
    found: Solution | InfeasibleError | None,
    known: Mapping[CoalitionStructure, float],
    best: CoalitionStructure | None,
) -> FragilePair:
    """Return what a search says about a pair, and the best structure that others found beside.

    `known` has what each structure that was found is worth less.
    """
    margin, at_most, exact, other = 0.0, math.inf, False, None
    if isinstance(found, InfeasibleError):
        margin, exact = math.inf, True
    elif found is not None and found.optimal:
        margin = at_most = max(0.0, known[found.structure])
        exact, other = True, found.structure
    else:
        if best is not None:
            at_most, other = max(0.0, known[best]), best
        if found is not None:
            margin = min(at_most, max(0.0, value - found.bound))
    return FragilePair((pair.a, pair.b), pair.together, pair.synergy, margin, at_most, exact, other)
