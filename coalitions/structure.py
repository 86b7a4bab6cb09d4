"""CoalitionStructure: a partition of the players in canonical order."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import index
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from coalitions.characters import composed
from coalitions.errors import InvalidInputError, did_you_mean, shown
from coalitions.game import IntVector


class Named(Protocol):
    """Players with names, such as those of a `SynergyGraph`."""

    @property
    def labels(self) -> Sequence[str]:
        """Names of the players."""
        ...


@dataclass(frozen=True)
class CoalitionStructure:
    """A partition of the players 0 … n−1 into coalitions.

    Coalitions are kept in canonical order (members ascending, coalitions by smallest member), so
    two structures are the same partition exactly if they are equal.

    Parameters
    ----------
    coalitions
        The players of each coalition, by number or by name.
    players
        Who knows the names, a `SynergyGraph` for instance; numbers do without.

    Examples
    --------
    >>> CoalitionStructure([[2, 0], [1]])
    CoalitionStructure(coalitions=((0, 2), (1,)))
    >>> CoalitionStructure.from_labels([7, 3, 7]).labels
    array([0, 1, 0])
    """

    coalitions: tuple[tuple[int, ...], ...]

    def __init__(
        self, coalitions: Iterable[Iterable[int | str]], players: Named | None = None
    ) -> None:
        names = None if players is None else players.labels
        number = numbering(names)
        blocks = sorted(tuple(sorted(map(number, _members(block)))) for block in coalitions)
        if any(not block for block in blocks):
            raise InvalidInputError("a coalition is empty; leave it out")
        _check_cover(sorted(player for block in blocks for player in block), names)
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
            # Members ascend, and blocks follow by their first: nothing is left to be checked.
            structure = cls.__new__(cls)
            object.__setattr__(structure, "coalitions", tuple(map(tuple, blocks.values())))
            return structure
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


def numbering(names: Sequence[str] | None) -> Callable[[object], int]:
    """Return what gives a player's number: a whole number is one, a text is a name.

    Examples
    --------
    >>> number = numbering(["ann", "bob"])
    >>> number("bob"), number(0)
    (1, 0)
    """
    place: dict[str, int] = {}

    def number(player: object) -> int:
        if isinstance(player, str):
            if names is None:
                raise InvalidInputError(
                    f"{shown(player)} is a name, and nobody here knows the names; give the graph,"
                    " too: CoalitionStructure(coalitions, graph)"
                )
            if not place:
                place.update((composed(name), k) for k, name in enumerate(names))
            player = composed(player)
            if player not in place:
                hint = did_you_mean(player, names)
                raise InvalidInputError(f"there is no player {shown(player)}; {hint}".rstrip("; "))
            return place[player]
        if isinstance(player, float) and player.is_integer():
            return int(player)
        try:
            return index(player)  # type: ignore[arg-type]
        except TypeError:
            raise InvalidInputError(
                f"a player is given by number or by name, not as {shown(player)}"
            ) from None

    return number


def _members(block: Iterable[int | str]) -> Iterable[int | str]:
    """Return a coalition, which a single number or text is not."""
    if isinstance(block, str) or not isinstance(block, Iterable):
        raise InvalidInputError(
            f"a coalition is a list of players, not {shown(block)}; write [[0, 1], [2]]"
        )
    return block


def _check_cover(players: list[int], names: Sequence[str] | None) -> None:
    """Refuse players that are not 0 … n−1, each of them once."""
    n_players = len(players) if names is None else len(names)
    if players == list(range(n_players)):
        return

    def called(player: int) -> str:
        known = names is not None and 0 <= player < n_players
        return repr(names[player]) if known and names is not None else str(player)

    twice = [p for p, q in itertools.pairwise(players) if p == q]
    missing = sorted(set(range(n_players)) - set(players))
    if twice:
        what = f"player {called(twice[0])} is in two coalitions"
    elif missing:
        what = f"player {called(missing[0])} is in no coalition"
    else:
        what = f"there is no player {next(p for p in players if not 0 <= p < n_players)}"
    whom = "0 … n-1" if names is None else f"0 … {n_players - 1}"
    raise InvalidInputError(
        f"coalitions must cover the players {whom}, each of them once, but {what}"
    )


def check_structure(structure: object) -> None:
    """Raise if this is no structure, for instance a list of lists."""
    if not isinstance(structure, CoalitionStructure):
        raise InvalidInputError(
            f"a {type(structure).__name__} is no structure; make one by"
            " CoalitionStructure([[0, 1], [2]])"
        )
