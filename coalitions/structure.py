"""CoalitionStructure: a partition of the players in canonical order."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from coalitions.errors import InvalidInputError
from coalitions.game import IntVector


@dataclass(frozen=True)
class CoalitionStructure:
    """A partition of the players 0 … n−1 into coalitions.

    Coalitions are kept in canonical order (members ascending, coalitions by smallest member), so
    two structures are the same partition exactly if they are equal.

    Examples
    --------
    >>> CoalitionStructure([[2, 0], [1]])
    CoalitionStructure(coalitions=((0, 2), (1,)))
    >>> CoalitionStructure.from_labels([7, 3, 7]).labels
    array([0, 1, 0])
    """

    coalitions: tuple[tuple[int, ...], ...]

    def __init__(self, coalitions: Iterable[Iterable[int]]) -> None:
        blocks = sorted(tuple(sorted(int(player) for player in block)) for block in coalitions)
        players = sorted(player for block in blocks for player in block)
        if any(not block for block in blocks):
            raise InvalidInputError("a coalition is empty; leave it out")
        if players != list(range(len(players))):
            twice = [p for p, q in itertools.pairwise(players) if p == q]
            missing = sorted(set(range(len(players))) - set(players))
            what = f"player {twice[0]} is in two coalitions" if twice else ""
            what = what or f"player {missing[0]} is in no coalition"
            raise InvalidInputError(
                f"coalitions must cover the players 0 … n-1, each of them once, but {what}"
            )
        object.__setattr__(self, "coalitions", tuple(blocks))

    @classmethod
    def from_labels(cls, labels: ArrayLike) -> CoalitionStructure:
        """Return the structure in which players with equal labels are together."""
        vector = np.asarray(labels)
        if vector.ndim != 1:
            raise InvalidInputError(f"labels have shape {vector.shape}; expected one per player")
        if vector.dtype.kind in "iu":
            blocks: dict[int, list[int]] = {}
            for player, label in enumerate(vector.tolist()):
                blocks.setdefault(label, []).append(player)
            return cls(blocks.values())
        _, numbers = np.unique(vector, return_inverse=True)
        order = np.argsort(numbers, kind="stable")
        cuts = np.flatnonzero(np.diff(numbers[order])) + 1
        return cls(block.tolist() for block in np.split(order, cuts) if len(block))

    @classmethod
    def singletons(cls, n_players: int) -> CoalitionStructure:
        """Return the structure in which everybody is alone."""
        return cls((player,) for player in range(n_players))

    @classmethod
    def grand(cls, n_players: int) -> CoalitionStructure:
        """Return the structure in which everybody is together."""
        return cls([range(n_players)] if n_players else [])

    @property
    def n_players(self) -> int:
        """Number of players."""
        return sum(map(len, self.coalitions))

    @property
    def labels(self) -> IntVector:
        """Number of each player's coalition, int[n], counted in canonical order: a fresh copy."""
        return self._labels.copy()

    @functools.cached_property
    def _labels(self) -> IntVector:
        labels = np.empty(self.n_players, np.int64)
        for number, block in enumerate(self.coalitions):
            labels[list(block)] = number
        return labels

    def __len__(self) -> int:
        return len(self.coalitions)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return iter(self.coalitions)


def check_structure(structure: object) -> None:
    """Raise if this is no structure, for instance a list of lists."""
    if not isinstance(structure, CoalitionStructure):
        raise InvalidInputError(
            f"a {type(structure).__name__} is no structure; make one by"
            " CoalitionStructure([[0, 1], [2]])"
        )
