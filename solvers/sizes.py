"""Sizes: what every coalition of a structure, and their number, must keep to."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from coalitions.game import IntVector


@dataclass(frozen=True)
class Sizes:
    """Demands on the number of coalitions and on each of them; every figure is given.

    Nodes are players, or groups of players that must be together.

    Attributes
    ----------
    players
        Number of players behind each node.
    min_size, max_size
        Fewest and most players in a coalition.
    fewest, most
        Fewest and most coalitions.
    loads, max_load
        What each node adds to the load of its coalition, and what a coalition can bear, as whole
        numbers. There are no loads where nothing is said about them.
    roles
        Sets of nodes: every coalition has a member of each.
    apart
        Pairs of nodes that must not be together. With sizes to keep, nobody is free to leave, so
        no weight can stand for that.
    """

    players: IntVector
    min_size: int
    max_size: int
    fewest: int
    most: int
    loads: IntVector = field(default_factory=lambda: np.empty(0, np.int64))
    max_load: int = 0
    roles: tuple[tuple[int, ...], ...] = ()
    apart: tuple[tuple[int, int], ...] = ()

    def met_by(self, labels: IntVector) -> bool:
        """Tell whether a structure, given by a block number for each node, meets the demands."""
        players = np.bincount(labels, self.players)
        players = players[players > 0]
        return bool(
            self.fewest <= len(players) <= self.most
            and players.min() >= self.min_size
            and players.max() <= self.max_size
            and (not len(self.loads) or np.bincount(labels, self.loads).max() <= self.max_load)
            and all(len(set(labels[list(role)].tolist())) == len(players) for role in self.roles)
            and not any(labels[a] == labels[b] for a, b in self.apart)
        )
