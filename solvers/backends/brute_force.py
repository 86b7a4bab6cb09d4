"""All partitions, one after the other: the reference every other method is checked against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coalitions.errors import InfeasibleError, InvalidInputError
from coalitions.game import IntVector
from coalitions.graph import SynergyGraph
from solvers.preparation.scaling import integer_weights
from solvers.solver import SOLVERS, Answer, Limits, Sizes, Solver

MAX_PLAYERS = 12
"""12 players have 4 213 597 partitions; each further player multiplies that by about six."""


@SOLVERS.register("brute-force")
@dataclass(frozen=True)
class BruteForce(Solver):
    """Values every partition; for tests and tiny graphs."""

    @property
    def takes_sizes(self) -> bool:
        """Whatever is enumerated can be counted."""
        return True

    def search(
        self,
        graph: SynergyGraph,
        *,
        limits: Limits,
        warm_start: IntVector | None = None,
        sizes: Sizes | None = None,
    ) -> Answer:
        """Grow all restricted-growth strings by one player at a time, with their values."""
        n = graph.n_players
        if n > MAX_PLAYERS:
            raise InvalidInputError(
                f"brute-force takes at most {MAX_PLAYERS} players, but there are {n};"
                " use the solver branch-and-cut"
            )
        # Whole numbers add up without roundings.
        i, j, weight = graph.edges
        scaled = integer_weights(weight)
        matrix = np.zeros((n, n), np.int64)
        matrix[i, j] = matrix[j, i] = scaled.integers
        labels = np.zeros((1, 1), np.int8)
        values = np.zeros(1, np.int64)
        for player in range(1, n):
            # Player p may join any of the blocks used so far, or open the next one.
            n_blocks = labels.max(axis=1) + 1
            choices = n_blocks + 1
            parent = np.repeat(np.arange(len(labels)), choices)
            start = np.repeat(np.cumsum(choices) - choices, choices)
            block = (np.arange(len(parent)) - start).astype(np.int8)
            joined = labels[parent] == block[:, None]
            values = values[parent] + joined @ matrix[player, :player]
            labels = np.concatenate((labels[parent], block[:, None]), axis=1)
        if sizes is not None:
            allowed = _allowed(labels, sizes)
            if not allowed.any():
                raise InfeasibleError("no structure meets the demands")
            labels, values = labels[allowed], values[allowed]
        best = int(np.argmax(values))
        bound = scaled.bound(int(values[best]))
        return Answer(labels[best].astype(np.int64), bound, {"partitions": len(values)})


def _allowed(labels: np.ndarray[tuple[int, int], np.dtype[np.int8]], sizes: Sizes) -> IntVector:
    allowed = np.ones(len(labels), bool)
    if sizes.n_groups is not None:
        allowed &= labels.max(axis=1) + 1 == sizes.n_groups
    for block in range(labels.shape[1]):
        players = (labels == block) @ sizes.weights
        if sizes.min_size is not None:
            allowed &= (players == 0) | (players >= sizes.min_size)
        if sizes.max_size is not None:
            allowed &= players <= sizes.max_size
    for a, b in sizes.apart:
        allowed &= labels[:, a] != labels[:, b]
    return allowed
