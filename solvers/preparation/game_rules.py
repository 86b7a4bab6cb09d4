"""Demands on the coalitions of a game, as a mask over all 2^n of them, player i = bit i."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coalitions.errors import InfeasibleError, InvalidInputError
from coalitions.game import BoolVector, IntVector
from coalitions.graph import SynergyGraph
from solvers.preparation.demands import Pairs, contract
from solvers.preparation.sizes import checked_sizes

MAX_PLAYERS_COUNTED = 20
"""2^19 slacks for each number of coalitions take up to 80 MiB."""


@dataclass(frozen=True, eq=False)
class GameRules:
    """What a structure must keep to.

    Attributes
    ----------
    allowed
        Which coalitions may be formed [2^n]; not the empty one.
    fewest, most
        Number of coalitions.
    counted
        Whether that says more than what is allowed does.
    free
        Whether nothing is demanded.
    """

    allowed: BoolVector
    fewest: int
    most: int
    counted: bool
    free: bool

    def keeps_to(self, blocks: IntVector) -> bool:
        """Tell whether a structure keeps to the rules."""
        return bool(self.allowed[blocks].all()) and self.fewest <= len(blocks) <= self.most


def rules_of(n: int, *, must_link: Pairs, cannot_link: Pairs, **sizes: Any) -> GameRules:  # noqa: ANN401 (passed on)
    """Return the rules for a game of n players; `sizes` as `checked_sizes` takes them.

    Raises
    ------
    InvalidInputError
        A demand is wrong, or a number of coalitions is demanded of too many players.
    InfeasibleError
        It is plain that no structure meets the demands.
    """
    nobody = SynergyGraph.from_edges(n, [], [], [])
    problem = contract(nobody, must_link, cannot_link)
    demands = checked_sizes(problem, nobody, **sizes)
    allowed = np.ones(1 << n, np.bool_)
    allowed[0] = False
    if demands is None and not problem.must_link and not problem.cannot_link:
        return GameRules(allowed, 1, n, counted=False, free=True)
    masks = np.arange(1 << n)
    for node in range(problem.graph.n_players):
        together = int((1 << np.flatnonzero(problem.group == node)).sum())
        if together & (together - 1):
            allowed &= np.isin(masks & together, (0, together))
    for a, b in problem.cannot_link:
        allowed &= (masks >> a & masks >> b & 1) == 0
    if demands is None:
        return GameRules(allowed, 1, n, counted=False, free=False)
    players = np.bitwise_count(masks)
    allowed &= (demands.min_size <= players) & (players <= demands.max_size)
    if len(demands.loads):
        load = np.zeros(1, np.int64)
        first = np.unique(problem.group, return_index=True)[1]
        for player in range(n):  # a node's load is counted with its first player
            own = demands.loads[problem.group[player]] if player in first else 0
            load = np.concatenate((load, load + own))
        allowed &= load <= demands.max_load
    for role in demands.roles:
        holders = int((1 << np.flatnonzero(np.isin(problem.group, role))).sum())
        allowed &= masks & holders != 0
    for player in range(n):
        if not allowed.reshape(-1, 2, 1 << player)[:, 1].any():  # bit `player` is 1
            raise InfeasibleError(f"no coalition that player {player} could be in is allowed")
    unsaid = checked_sizes(problem, nobody, **{**sizes, "n_groups": None})
    implied = (1, n) if unsaid is None else (unsaid.fewest, unsaid.most)
    counted = implied != (demands.fewest, demands.most)
    if counted and n > MAX_PLAYERS_COUNTED:
        raise InvalidInputError(
            f"the game has {n} players; with n_groups, solve_game takes at most"
            f" {MAX_PLAYERS_COUNTED}"
        )
    return GameRules(allowed, demands.fewest, demands.most, counted=counted, free=False)
