"""One of several best structures, by a rule instead of by luck.

Where synergies are coarse (accuracies on fifty images come in steps of 0.02), several structures
are best, and which one a search finds depends on the solver and on where it starts. The canonical
one has the largest value, of these the fewest joined pairs, and of these the first labels in
lexicographic order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from coalitions.errors import InfeasibleError, InvalidInputError, NoSolutionError
from coalitions.game import FloatMatrix
from coalitions.graph import DENSE_LIMIT, SynergyGraph
from coalitions.runtime import clock
from coalitions.structure import Position
from solvers.demands import Contraction, Demands, Links
from solvers.optimality import at_stake, is_optimal, losses
from solvers.reductions import EXACT_BITS
from solvers.solution import Solution
from solvers.solver import TimeIsUp

FIRST_SHARE = 0.5
"""Share of the time for the best value; the rest is for the rule."""

SEEN = 1e13
"""Differences below 1/SEEN of all synergies are what sums of floats round off."""

MOST_DECIMALS = 300
"""Tiny synergies have their digits far behind the point; a float ends at 308."""

Search = Callable[..., Solution]
"""One search of `solve`, with everything given but graph, demands and time."""


def canonical(
    graph: SynergyGraph,
    demands: Demands,
    search: Search,
    *,
    time_limit: float | None,
    first: Mapping[str, Any],
) -> Solution:
    """Return the canonical one of the best structures.

    Values count to as many decimals as leave room for the number of joined pairs in whole numbers
    that are exact: eleven for 20 players with synergies around 1. So a rounding off, 0.7 − 0.68
    for instance, makes no difference.

    Parameters
    ----------
    graph, demands
        The players, and what all structures must meet.
    search
        Returns the best structure of a graph under demands.
    time_limit
        Seconds for all of it. If they are over first, ``stats["canonical"]`` is false.
    first
        Further arguments of the first search.
    """
    if graph.n_players > DENSE_LIMIT:
        raise InvalidInputError(
            f"canonical takes at most {DENSE_LIMIT} players; there are {graph.n_players}"
        )
    started = clock()
    deadline = math.inf if time_limit is None else started + time_limit
    best = search(
        graph,
        demands,
        time_limit=None if time_limit is None else FIRST_SHARE * time_limit,
        **first,
    )
    ruled = SynergyGraph(_with_fewest_pairs(graph.matrix), graph.nodes)

    def best_with(together: Links, apart: Links) -> Solution | None:
        """Return the best structure by the rule, None if there is none with these links."""
        left = deadline - clock()
        if left <= 0:
            raise TimeIsUp
        try:
            found = search(
                ruled,
                demands.with_links(together, apart),
                time_limit=None if math.isinf(left) else left,
            )
        except InfeasibleError:
            return None
        except NoSolutionError:
            if math.isinf(left):
                raise
            raise TimeIsUp from None
        if not found.optimal or found.stats.get("interrupted"):
            raise TimeIsUp
        return found

    chosen, done = best, best.optimal
    try:
        if done:
            found = best_with((), ())
            assert found is not None
            chosen = _first_in_order(found, best_with)
    except TimeIsUp:
        done = False
    value, lost = graph.value(chosen.structure), best.losses
    if lost and chosen is not best:
        nodes = Contraction.apply(graph, demands)
        lost = losses(nodes.graph, nodes.contract(chosen.structure.labels))
    stake = at_stake(best.positive_weight, best.losses)
    if not is_optimal(value, best.value, stake):  # the decimals there is room for are too few
        chosen, value, lost, done = best, best.value, best.losses, False
    return replace(
        best,
        structure=chosen.structure,
        value=value,
        bound=max(value, best.bound),
        losses=lost,
        seconds=clock() - started,
        stats={**best.stats, "canonical": done},
    )


def _with_fewest_pairs(matrix: FloatMatrix) -> FloatMatrix:
    """Return whole numbers whose best structures have the most value, then the fewest pairs.

    Each pair is worth its value many times, less one: all pairs together cannot make up for a
    difference in value.
    """
    # A pair that loses more than all gains together is never joined, however much it loses.
    hopeless = -2.0 * float(np.maximum(matrix, 0.0).sum())
    matrix = np.maximum(matrix, hopeless)
    n = len(matrix)
    n_pairs = n * (n - 1) // 2 + 1
    total = float(np.abs(matrix).sum()) / 2 or 1.0
    room = min(2.0 ** (EXACT_BITS - 1) / n_pairs, SEEN)
    decimals = min(MOST_DECIMALS, math.floor(math.log10(room) - math.log10(total)))
    values = np.rint(matrix * 10.0**decimals)
    ruled: FloatMatrix = values * n_pairs - 1.0
    np.fill_diagonal(ruled, 0.0)
    return ruled


def _first_in_order(
    found: Solution, best_with: Callable[[Links, Links], Solution | None]
) -> Solution:
    """Return the structure of the same value whose labels come first.

    Player by player: can it be in an earlier coalition than it is? What was decided is kept by
    links, so each question is a smaller search.
    """
    together: list[tuple[int, int]] = []
    apart: list[tuple[int, int]] = []
    heads: list[int] = []
    for player in map(Position, range(found.structure.n_players)):
        for block, head in enumerate(heads):
            if found.structure.labels[player] == block:
                together.append((head, player))
                break
            better = best_with((*together, (head, player)), tuple(apart))
            if better is not None and better.value == found.value:
                found = better
                together.append((head, player))
                break
            apart.append((head, player))
        else:
            heads.append(player)
    return found
