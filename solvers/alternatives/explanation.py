"""explain: why a player is in its coalition, its best alternative, and how firm the choice is."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np

from coalitions.checks import GraphLike, as_graph
from coalitions.errors import with_keywords
from coalitions.formatting import quoted
from coalitions.game import FloatVector, IntVector
from coalitions.graph import Edges, SynergyGraph, weight_sum
from coalitions.results import PublicResult, Row, finite
from coalitions.structure import CoalitionStructure, Structured, numbering
from solvers.alternatives.fragile_pairs import (
    FragilePair,
    FragilePairs,
    fragile_under,
    with_demands,
)
from solvers.demands import Contraction, SearchArguments, Sizes
from solvers.optimality import OPTIMALITY_TOLERANCE, advantage, at_stake, losses

SECONDS = 5.0
"""Time for the player's fragile pairs, unless told otherwise."""

MOST_NAMES = 8
"""So many players of a coalition are named in a sentence; the others are counted."""

MOST_EXCHANGES = 10_000
"""About so many groups are tried in exchange for players who must be together. With more, each
coalition offers those members who are the cheapest one by one."""

ROUNDING = 4e-12
"""More than a sum of thousands of floats can be off, relative to the sum of their sizes."""


@dataclass(frozen=True)
class Explanation(PublicResult):
    """Why a player is where it is.

    Attributes
    ----------
    player
        Its number.
    coalition
        Its coalition, itself included.
    inside
        What it gives: the sum of its synergies with its partners, which its coalition would lose
        without it.
    share
        What it gets: its Shapley value, half of each of these synergies.
    partners
        Its partners with their synergies, the best first.
    best_alternative
        The best other coalition for it, as it is now; empty if that is to be alone, None if the
        demands leave it no other place.
    loss
        What the structure would lose if it went there; infinite if it cannot. Below 0 it would
        gain: the structure is not the best.
    fragile
        Its pairs, the most fragile first, if they were asked for.
    text
        All of this in words.
    exchange
        Who leaves `best_alternative` to take its place; empty if it goes there and everybody else
        stays. Exchanges are considered where sizes, counts, weights or roles are demanded.
    labels
        Names of the players.
    """

    player: int
    coalition: tuple[int, ...]
    inside: float
    share: float
    partners: tuple[tuple[int, float], ...]
    best_alternative: tuple[int, ...] | None
    loss: float
    fragile: FragilePairs
    text: str
    exchange: tuple[int, ...] = ()
    labels: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def named(self) -> dict[str, float]:
        """The partners by name, with their synergies."""
        return {self._name(partner): synergy for partner, synergy in self.partners}

    def _name(self, player: int) -> str:
        return self.labels[player] if self.labels else str(player)

    def to_dict(self) -> dict[str, Any]:
        """Return all of this as plain values, players by name; None for an infinite loss."""
        place = self.best_alternative
        return {
            "player": self._name(self.player),
            "coalition": [self._name(player) for player in self.coalition],
            "inside": self.inside,
            "share": self.share,
            "partners": self.named,
            "best_alternative": None if place is None else [self._name(each) for each in place],
            "exchange": [self._name(player) for player in self.exchange],
            "loss": finite(self.loss),
            "text": self.text,
            "fragile": [pair.to_dict() for pair in self.fragile],
        }

    def _rows(self) -> list[Row]:
        return [{"partner": name, "synergy": synergy} for name, synergy in self.named.items()]

    def _below(self) -> str:
        return self.text

    def __str__(self) -> str:
        """Return the text."""
        return self.text


@with_keywords(*SearchArguments.__annotations__)
def explain(
    graph: GraphLike,
    solution: Structured,
    player: Hashable,
    *,
    fragile_pairs: bool = True,
    time_limit: float | None = SECONDS,
    **demands: Unpack[SearchArguments],
) -> Explanation:
    """Return what a player gives and gets, the best other place for it, and what keeps it here.

    Parameters
    ----------
    graph
        The players and their synergies.
    solution
        What `solve` returned, a structure, or lists of players.
    player
        The player, by number or name.
    fragile_pairs
        Whether to look at the player's fragile pairs, which takes a search for each other player.
    time_limit
        Seconds for that.
    **demands
        The demands that a structure met, as `solve` takes them. A `Solution` knows its own.

    Notes
    -----
    Players that must be together move together, so `loss` is then that of all of them. They may
    change places with one player, with others who must be together, or with as many players of one
    coalition.

    Examples
    --------
    >>> from solvers import solve
    >>> graph = SynergyGraph([[0, 3, 2], [3, 0, -4], [2, -4, 0]], labels=["ann", "bob", "cleo"])
    >>> why = explain(graph, solve(graph), "ann")
    >>> why.inside, why.best_alternative, why.loss
    (3.0, (2,), 1.0)
    """
    graph = as_graph(graph)
    structure, demanded, settings = with_demands(graph, solution, demands)
    number = numbering(graph, "explain")(player)
    nodes = Contraction.apply(graph, demanded)
    sizes = demanded.on_nodes(nodes)
    coalition = next(block for block in structure if number in block)
    partners = sorted(
        ((other, _synergy(graph, number, other)) for other in coalition if other != number),
        key=lambda partner: (-partner[1], partner[0]),
    )
    inside = weight_sum(np.array([synergy for _, synergy in partners]))
    unit = tuple(np.flatnonzero(nodes.group == nodes.group[number]).tolist())
    best = _best_change(graph, nodes, sizes, structure, unit)
    pairs = FragilePairs()
    if fragile_pairs:
        pairs = fragile_under(graph, structure, demanded, settings, number, time_limit)
    worth = float(graph.inside(structure)[structure.coalitions.index(coalition)])
    names = [*map(quoted, graph.labels)]
    nothing = OPTIMALITY_TOLERANCE * at_stake(
        graph.positive_weight, losses(graph, structure.labels)
    )
    sentences = [
        *_place_in_words(names, number, coalition, partners, worth, inside),
        *_alternative_in_words(names, number, unit, best, nothing, sized=sizes is not None),
        *(_fragility_in_words(graph, names, structure, pairs[0], nothing) if pairs else ()),
    ]
    return Explanation(
        player=number,
        coalition=coalition,
        inside=inside,
        share=inside / 2,
        partners=tuple(partners),
        best_alternative=best.place,
        loss=best.loss,
        fragile=pairs,
        text=" ".join(sentences),
        exchange=best.exchange,
        labels=graph.labels,
    )


def _synergy(graph: SynergyGraph, a: int, b: int) -> float:
    i, j, weight = graph.edges
    low, high = min(a, b), max(a, b)
    return float(weight[(i == low) & (j == high)].sum())


@dataclass(frozen=True)
class _Change:
    """Where players who move together go, who takes their place, and what the structure loses."""

    place: tuple[int, ...] | None = None
    exchange: tuple[int, ...] = ()
    loss: float = math.inf


def _best_change(
    graph: SynergyGraph,
    nodes: Contraction,
    sizes: Sizes | None,
    structure: CoalitionStructure,
    unit: tuple[int, ...],
) -> _Change:
    """Return the move, or where sizes are demanded the exchange, by which least is lost."""
    labels, home = structure.labels, int(structure.labels[unit[0]])
    i, j, weight = graph.edges
    # What is lost depends on pairs inside coalitions and on those of the players' coalition only.
    counted = (labels[i] == labels[j]) | (labels[i] == home) | (labels[j] == home)
    pairs = i[counted], j[counted], weight[counted]
    changes = [*_moves(structure, unit, *pairs)]
    if sizes is not None:
        changes += _exchanges(nodes, structure, unit, *pairs)
    best, first = _Change(), len(changes)
    for number in sorted(range(len(changes)), key=lambda number: changes[number][0]):
        least, block, exchange = changes[number]
        if least > best.loss:
            break
        moved = labels.copy()
        moved[list(exchange)] = home
        moved[list(unit)] = block
        if not _allowed(nodes, sizes, moved):
            continue
        loss = advantage(Edges(*pairs), labels, moved)
        if (loss, number) < (best.loss, first):
            place = structure.coalitions[block] if block < len(structure) else ()
            best, first = _Change(place, exchange, loss), number
    return best


def _moves(
    structure: CoalitionStructure,
    unit: tuple[int, ...],
    i: IntVector,
    j: IntVector,
    weight: FloatVector,
) -> Iterator[tuple[float, int, tuple[int, ...]]]:
    """Yield for each move the least that it can lose, and the number of the coalition."""
    labels, alone = structure.labels, len(structure)
    home = int(labels[unit[0]])
    mover = np.isin(np.arange(len(labels)), unit)
    leaving = mover[i] != mover[j]
    block = labels[np.where(mover[i], j, i)[leaving]]
    with np.errstate(over="ignore", invalid="ignore"):
        gain, size = (
            np.bincount(block, each, alone + 1) for each in (weight[leaving], abs(weight[leaving]))
        )
        least = np.nan_to_num(gain[home] - gain - ROUNDING * (size[home] + size), nan=-math.inf)
    nobody_left = len(structure.coalitions[home]) == len(unit)
    for number in range(alone + 1):
        if number != home and not (number == alone and nobody_left):
            yield float(least[number]), number, ()


def _exchanges(
    nodes: Contraction,
    structure: CoalitionStructure,
    unit: tuple[int, ...],
    i: IntVector,
    j: IntVector,
    weight: FloatVector,
) -> Iterator[tuple[float, int, tuple[int, ...]]]:
    r"""Yield for each exchange the least that it can lose, the coalition, and who leaves it.

    If U of coalition H and B of coalition O change places, the structure loses

    .. math:: w(U, H \setminus U) - w(U, O) + \sum_{x \in B}
              [w(x, O \setminus x) + 2 w(U, x) - w(x, H)] - 2 \sum_{x < y \in B} w(x, y).
    """
    group, size = nodes.group, nodes.sizes
    n, (_, first) = len(size), np.unique(group, return_index=True)
    block, own = structure.labels[first], int(group[unit[0]])
    home = int(block[own])
    behind: list[list[int]] = [[] for _ in range(n)]
    for player, node in enumerate(group.tolist()):
        behind[node].append(player)
    a, b = group[i], group[j]
    i, j, weight = a[a != b], b[a != b], weight[a != b]

    def sums(weight: FloatVector, sign: int) -> tuple[FloatVector, FloatVector]:
        """Return what the mover loses to each coalition, and what each other node adds."""
        to_block, added = np.zeros(len(structure)), np.zeros(n)
        for one, other in ((i, j), (j, i)):
            inside, homewards = block[one] == block[other], block[other] == home
            moving = other == own
            added += np.bincount(one[inside], weight[inside], n)
            added += sign * np.bincount(one[homewards], weight[homewards], n)
            added += 2 * np.bincount(one[moving], weight[moving], n)
            to_block += np.bincount(block[one[moving]], weight[moving], len(structure))
        return to_block[home] + sign * to_block, added

    with np.errstate(over="ignore", invalid="ignore"):
        base, added = sums(weight, -1)
        doubt, more = sums(np.abs(weight), 1)
    members: list[list[int]] = [[] for _ in range(len(structure))]
    for node, number in enumerate(block.tolist()):
        members[number].append(node)
    between: dict[tuple[int, int], float] = defaultdict(float)
    if len(unit) > 1:  # else nobody asks
        inside = block[i] == block[j]
        ends = np.sort(np.column_stack((i[inside], j[inside])), axis=1).tolist()
        for (x, y), w in zip(ends, weight[inside].tolist(), strict=True):
            between[x, y] += w

    def change(number: int, chosen: tuple[int, ...]) -> tuple[float, int, tuple[int, ...]]:
        joint = [between.get(pair, 0.0) for pair in itertools.combinations(chosen, 2)]
        lost = base[number] + sum(added[node] for node in chosen) - 2 * sum(joint)
        off = doubt[number] + sum(more[node] for node in chosen) + 2 * sum(map(abs, joint))
        least = float(lost - ROUNDING * off)
        who = tuple(sorted(player for node in chosen for player in behind[node]))
        return -math.inf if math.isnan(least) else least, number, who

    for number, others in enumerate(members):
        if number != home and (len(members[home]) > 1 or len(others) > 1):
            yield from (change(number, (node,)) for node in others)
    together = len(unit)
    offered = together
    while offered < n and len(members) * math.comb(offered + 1, together) <= MOST_EXCHANGES:
        offered += 1
    for number, others in enumerate(members):
        offers = sorted(others, key=lambda node: (added[node], node))[:offered]
        fewest = max(2, -(-together // int(size[offers].max())))
        groups = (
            chosen
            for several in range(fewest, together + 1)
            if number != home and len(members[home]) + len(others) > 1 + several
            for chosen in itertools.combinations(sorted(offers), several)
        )
        for chosen in itertools.islice(groups, MOST_EXCHANGES):
            if size[list(chosen)].sum() == together:
                yield change(number, chosen)


def _allowed(nodes: Contraction, sizes: Sizes | None, labels: IntVector) -> bool:
    if any(labels[a] == labels[b] for a, b in nodes.cannot_link):
        return False
    return sizes is None or sizes.met_by(nodes.contract(labels))


def _place_in_words(
    labels: Sequence[str],
    player: int,
    coalition: tuple[int, ...],
    partners: Sequence[tuple[int, float]],
    worth: float,
    inside: float,
) -> list[str]:
    name = labels[player]
    if not partners:
        return [f"{name} is alone."]
    each = _listed([f"{labels[other]} {synergy:.6g}" for other, synergy in partners])
    together = _listed([labels[other] for other in coalition if other != player])
    return [
        f"{name} is with {together}; together they are worth {worth:.6g}.",
        f"{name} gives {inside:.6g} of it: {each}.",
        f"It gets {inside / 2:.6g}, its Shapley value: half of each of its synergies.",
    ]


def _alternative_in_words(
    labels: Sequence[str],
    player: int,
    unit: tuple[int, ...],
    best: _Change,
    nothing: float,
    *,
    sized: bool,
) -> list[str]:
    """Say what else there is; a loss of at most `nothing` is none."""
    name = labels[player]
    if best.place is None:
        end = ", not even in exchange for another player" if sized else ""
        return [f"The demands leave no other place for {name}{end}."]
    loss = 0.0 if abs(best.loss) <= nothing else best.loss
    partners = [labels[other] for other in best.place if other not in best.exchange]
    where = f"with {_listed(partners)}" if partners else "alone"
    if best.exchange:
        where += f", in exchange for {_listed([labels[other] for other in best.exchange])}"
    others = [labels[other] for other in unit if other != player]
    beside = f" (and {_listed(others)}, who must be with it)" if others else ""
    if loss < 0:
        end = f"the structure would gain {-loss:.6g}, so it is not the best"
    elif loss == 0:
        end = "the structure would lose nothing"
    else:
        end = f"the structure would lose {loss:.6g}"
    sentence = f"The best other place for {name}{beside} is {where}: {end}."
    return [sentence, "This assumes that no other player moves."]


def _fragility_in_words(
    graph: SynergyGraph,
    labels: Sequence[str],
    structure: CoalitionStructure,
    weakest: FragilePair,
    nothing: float,
) -> list[str]:
    """Say how firm the player's place is; a change of at most `nothing` is none."""
    a, b = (labels[player] for player in weakest.pair)
    how, verb, sign = ("together", "fell", -1) if weakest.together else ("apart", "rose", 1)
    pair = f"{a} and {b}, who are {how}"
    if math.isinf(weakest.at_most):
        if weakest.exact:
            return ["No synergy of its alone can change where it is."]
        return ["There was no time to find out which of its synergies matters most."]
    if weakest.at_most <= nothing and weakest.alternative is not None:
        other_way = (
            f"A structure that has {a} and {b} {'apart' if weakest.together else 'together'}"
        )
        if graph.value(weakest.alternative) - graph.value(structure) > nothing:
            return [f"{other_way} is better, so this one is not the best."]
        return [f"{other_way} is exactly as good: `solve` with all_optimal lists all that are."]
    if weakest.exact:
        limit = weakest.synergy + sign * weakest.margin
        change = f"{verb} by more than {weakest.margin:.6g}, from {weakest.synergy:.6g} past"
        return [
            f"Its most fragile pair is {pair}: if their synergy {change} {limit:.6g}, another"
            " structure would be better."
        ]
    return [
        f"Its most fragile pair, as far as the time allowed to look, is {pair}: their synergy"
        f" ({weakest.synergy:.6g}) may change by {weakest.margin:.6g} for sure, and if it {verb} by"
        f" more than {weakest.at_most:.6g}, another structure would be better."
    ]


def _listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them.

    Examples
    --------
    >>> _listed(["ann"]), _listed(["ann", "bob"]), _listed(["ann", "bob", "cleo"])
    ('ann', 'ann and bob', 'ann, bob and cleo')
    """
    if len(names) > MOST_NAMES:
        names = [*names[:MOST_NAMES], f"{len(names) - MOST_NAMES} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
