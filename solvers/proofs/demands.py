"""Demands of a proof: who must be together, who apart, in a form that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coalitions.errors import InvalidInputError

Pairs = Iterable[Sequence[int]]


@dataclass(frozen=True)
class Links:
    """Demands on pairs of players, closed: a with b and b with c says a with c.

    Two sets of demands ask for the same structures if `group` and `apart` are equal.

    Attributes
    ----------
    must, cannot
        The pairs as they were given.
    group
        For each player, the first one that must be with it.
    apart
        Pairs of groups that must be apart, the smaller first.
    """

    must: tuple[tuple[int, int], ...]
    cannot: tuple[tuple[int, int], ...]
    group: tuple[int, ...]
    apart: frozenset[tuple[int, int]]

    @classmethod
    def of(cls, n_players: int, must_link: Pairs, cannot_link: Pairs, whose: str = "") -> Links:
        """Return demands in that form; `whose` begins the sentence about what is wrong in them.

        Raises
        ------
        InvalidInputError
            A pair has not two different players, or names one that is not there.
        """
        must = _checked(must_link, n_players, f"{whose}must_link")
        cannot = _checked(cannot_link, n_players, f"{whose}cannot_link")
        group = _components(n_players, must)
        apart = {(min(group[a], group[b]), max(group[a], group[b])) for a, b in cannot}
        return cls(must, cannot, group, frozenset(apart))

    def members(self) -> list[tuple[int, ...]]:
        """Return the players of each group, in ascending order."""
        found: dict[int, list[int]] = {}
        for player, first in enumerate(self.group):
            found.setdefault(first, []).append(player)
        return [tuple(players) for players in found.values()]

    def broken(self, block: Sequence[int], names: Sequence[str]) -> str | None:
        """Return what a structure, given by the block of each player, does against them."""
        for a, b in self.must:
            if block[a] != block[b]:
                return f"{names[a]} and {names[b]} must be together, but are apart"
        for a, b in self.cannot:
            if block[a] == block[b]:
                return f"{names[a]} and {names[b]} must be apart, but are together"
        return None

    def beyond(self, other: Links, names: Sequence[str]) -> str | None:
        """Return a demand of these that the others do not make, in words."""
        for a, b in self.must:
            if other.group[a] != other.group[b]:
                return f"{names[a]} and {names[b]} together"
        for a, b in self.cannot:
            pair = other.group[a], other.group[b]
            if (min(pair), max(pair)) not in other.apart:
                return f"{names[a]} and {names[b]} apart"
        return None


def _checked(pairs: Pairs, n_players: int, name: str) -> tuple[tuple[int, int], ...]:
    checked = []
    for pair in pairs:
        members = [int(player) for player in pair]
        if len(members) != 2 or members[0] == members[1]:
            raise InvalidInputError(f"{name} takes pairs of two different players")
        for player in members:
            if not 0 <= player < n_players:
                raise InvalidInputError(
                    f"{name} names a player that is not there; players are 0 … {n_players - 1}"
                )
        checked.append((members[0], members[1]))
    return tuple(checked)


def _components(n: int, pairs: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return the least member of each player's component."""
    above = list(range(n))

    def top(player: int) -> int:
        while above[player] != player:
            above[player] = above[above[player]]
            player = above[player]
        return player

    for a, b in pairs:
        one, two = sorted((top(a), top(b)))
        above[two] = one
    return tuple(top(player) for player in range(n))
