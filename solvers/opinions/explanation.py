"""explain: why a player is where it is, what else there is for it, and how firm that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coalitions.characters import quoted
from coalitions.game import IntVector
from coalitions.graph import SynergyGraph, weight_sum
from coalitions.structure import CoalitionStructure
from solvers.opinions.fragility import FragilePair, fragile, with_demands
from solvers.optimality import OPTIMALITY_TOLERANCE, at_stake, losses
from solvers.preparation.demands import Contraction, contract
from solvers.preparation.sizes import checked_sizes, players_of
from solvers.sizes import Sizes
from solvers.solution import Solution

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SECONDS = 5.0
"""Time for the player's fragile pairs, unless told otherwise."""

MOST_NAMES = 8
"""So many players of a coalition are named in a sentence; the others are counted."""

SIZES = ("n_groups", "min_size", "max_size", "weights", "max_weight", "at_least_one_of")


@dataclass(frozen=True)
class Explanation:
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
        What the structure would lose if it went there, everybody else staying; infinite if it
        cannot. Below 0 it would gain: the structure is not the best.
    fragile
        Its pairs, the most fragile first, if they were asked for.
    text
        All of this in words.
    """

    player: int
    coalition: tuple[int, ...]
    inside: float
    share: float
    partners: tuple[tuple[int, float], ...]
    best_alternative: tuple[int, ...] | None
    loss: float
    fragile: tuple[FragilePair, ...]
    text: str


def explain(
    graph: SynergyGraph | ArrayLike,
    solution: Solution | CoalitionStructure,
    player: int | str,
    *,
    fragile_pairs: bool = True,
    time_limit: float | None = SECONDS,
    **demands: Any,  # noqa: ANN401 (whatever `solve` takes)
) -> Explanation:
    """Return what a player gives and gets, the best other place for it, and what keeps it here.

    Parameters
    ----------
    graph
        The players and their synergies.
    solution
        What `solve` returned, or a structure.
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
    Players that must be together move together, so `loss` is then that of all of them.

    Examples
    --------
    >>> from solvers import solve
    >>> graph = SynergyGraph([[0, 3, 2], [3, 0, -4], [2, -4, 0]], labels=["ann", "bob", "cleo"])
    >>> why = explain(graph, solve(graph), "ann")
    >>> why.inside, why.best_alternative, why.loss
    (3.0, (2,), 1.0)
    """
    if not isinstance(graph, SynergyGraph):
        graph = SynergyGraph(graph)
    structure, demands = with_demands(graph, solution, demands)
    number = players_of("explain", graph.labels)(player)
    nodes = contract(graph, demands["must_link"], demands["cannot_link"])
    asked = {name: demands[name] for name in SIZES if name in demands}
    sizes = checked_sizes(nodes, graph.labels, **asked)
    coalition = next(block for block in structure if number in block)
    partners = sorted(
        ((other, _synergy(graph, number, other)) for other in coalition if other != number),
        key=lambda partner: (-partner[1], partner[0]),
    )
    inside = weight_sum(np.array([synergy for _, synergy in partners]))
    unit = tuple(np.flatnonzero(nodes.group == nodes.group[number]).tolist())
    place, loss = _best_other_place(graph, nodes, sizes, structure, unit)
    pairs: tuple[FragilePair, ...] = ()
    if fragile_pairs:
        pairs = fragile(graph, structure, number, time_limit=time_limit, **demands)
    worth = float(graph.inside(structure)[structure.coalitions.index(coalition)])
    names = [*map(quoted, graph.labels)]
    nothing = OPTIMALITY_TOLERANCE * at_stake(
        graph.positive_weight, losses(graph, structure.labels)
    )
    sentences = [
        *_here(names, number, coalition, partners, worth, inside),
        *_elsewhere(names, number, unit, place, 0.0 if abs(loss) <= nothing else loss),
        *(_firmness(graph, names, structure, pairs[0], nothing) if pairs else ()),
    ]
    return Explanation(
        player=number,
        coalition=coalition,
        inside=inside,
        share=inside / 2,
        partners=tuple(partners),
        best_alternative=place,
        loss=loss,
        fragile=pairs,
        text=" ".join(sentences),
    )


def _synergy(graph: SynergyGraph, a: int, b: int) -> float:
    i, j, weight = graph.edges
    low, high = min(a, b), max(a, b)
    return float(weight[(i == low) & (j == high)].sum())


def _best_other_place(
    graph: SynergyGraph,
    nodes: Contraction,
    sizes: Sizes | None,
    structure: CoalitionStructure,
    unit: tuple[int, ...],
) -> tuple[tuple[int, ...] | None, float]:
    """Return the coalition to which players who move together lose least, and the loss."""
    labels, (i, j, weight) = structure.labels, graph.edges
    mover = np.zeros(graph.n_players, bool)
    mover[list(unit)] = True
    crossing = mover[i] != mover[j]
    weight, other = weight[crossing], labels[np.where(mover[i], j, i)[crossing]]
    home, alone = int(labels[unit[0]]), len(structure)
    gain = np.bincount(other, weight, alone + 1)
    for block in np.argsort(-gain, kind="stable").tolist():
        if block == home or (block == alone and len(structure.coalitions[home]) == len(unit)):
            continue
        moved = labels.copy()
        moved[mover] = block
        if _allowed(nodes, sizes, moved):
            loss = weight_sum(np.append(weight[other == home], -weight[other == block]))
            return (() if block == alone else structure.coalitions[block]), loss
    return None, math.inf


def _allowed(nodes: Contraction, sizes: Sizes | None, labels: IntVector) -> bool:
    if any(labels[a] == labels[b] for a, b in nodes.cannot_link):
        return False
    return sizes is None or sizes.met_by(nodes.contract(labels))


def _here(
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


def _elsewhere(
    labels: Sequence[str],
    player: int,
    unit: tuple[int, ...],
    place: tuple[int, ...] | None,
    loss: float,
) -> list[str]:
    name = labels[player]
    if place is None:
        return [f"The demands leave no other place for {name}."]
    where = f"with {_listed([labels[other] for other in place])}" if place else "alone"
    others = [labels[other] for other in unit if other != player]
    beside = f" (and {_listed(others)}, who must be with it)" if others else ""
    if loss < 0:
        end = f"the structure would gain {-loss:.6g}, so it is not the best"
    elif loss == 0:
        end = "the structure would lose nothing"
    else:
        end = f"the structure would lose {loss:.6g}"
    best = f"The best other place for {name}{beside} is {where}: {end}."
    return [best, "That is if nobody else moves."]


def _firmness(
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
