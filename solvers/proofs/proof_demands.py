"""What a certificate says was demanded, read with care, in a form that can be compared.

The first part reads fields of a certificate's file and checks them before anything is made of them.
The verifier has its own reader of demands: it trusts none of the code that made the proof.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from coalitions.errors import InvalidInputError, RefusedError
from coalitions.formatting import listed
from coalitions.game import IntVector
from coalitions.structure import Named, numbering

# ----------------------------------------------------------------------------------------
# Fields of a file

LARGEST_UNIT = 1 << 1200
"""Numerator and denominator of a unit are below this: no grid of floats is coarser or finer."""


def damaged(complaint: str) -> InvalidInputError:
    """Return the error of a file that is no certificate."""
    return InvalidInputError(f"the certificate is damaged: {complaint}")


def refuse_unless(condition: object, complaint: str) -> None:
    """Raise the error of a certificate that proves nothing."""
    if not condition:
        raise RefusedError(f"the certificate is refused: {complaint}")


def entry(document: Any, name: str) -> Any:  # noqa: ANN401
    """Return what stands under a name."""
    if not isinstance(document, dict) or name not in document:
        raise damaged(f"where {name!r} should be is {reprlib.repr(document)}")
    return document[name]


def list_of(document: Any, name: str) -> list[Any]:  # noqa: ANN401
    """Return the list that stands under a name."""
    found = entry(document, name)
    if not isinstance(found, list):
        raise damaged(f"{name!r} is {reprlib.repr(found)}, not a list")
    return found


def whole(number: Any, name: str) -> int:  # noqa: ANN401
    """Return a whole number."""
    if type(number) is not int:
        raise damaged(f"{name!r} is {reprlib.repr(number)}, not a whole number")
    return number


def wholes(numbers: Any, name: str, length: int | None = None) -> tuple[int, ...]:  # noqa: ANN401
    """Return whole numbers, as many as there should be."""
    if not isinstance(numbers, list) or not {int}.issuperset(map(type, numbers)):
        raise damaged(f"{name!r} holds {reprlib.repr(numbers)}, not a list of whole numbers")
    if length is not None and len(numbers) != length:
        raise damaged(f"{name!r} holds {reprlib.repr(numbers)}, not {length} numbers")
    return tuple(numbers)


def pairs_of(document: Any, name: str) -> tuple[tuple[int, int], ...]:  # noqa: ANN401
    """Return the pairs of whole numbers that stand under a name."""
    pairs = [wholes(pair, name, 2) for pair in list_of(document, name)]
    return tuple((i, j) for i, j in pairs)


def vector(numbers: Any, name: str) -> IntVector:  # noqa: ANN401
    """Return whole numbers of at most 62 bits as an array."""
    checked = wholes(numbers, name)
    if any(abs(number) >= 1 << 62 for number in checked):
        raise damaged(f"{name!r} holds a number of more than 62 bits")
    return np.array(checked, np.int64)


def fraction(numbers: Any, name: str) -> Fraction:  # noqa: ANN401
    """Return the fraction that numerator and denominator make, if a unit can be so."""
    numerator, denominator = wholes(numbers, name, 2)
    if not (abs(numerator) < LARGEST_UNIT and 0 < denominator < LARGEST_UNIT):
        raise damaged(f"{name!r} is no fraction that a grid of floats can have")
    return Fraction(numerator, denominator)


# ----------------------------------------------------------------------------------------
# Pairs: who must be together, who apart.

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


# ----------------------------------------------------------------------------------------
# Coalitions: sizes, counts, loads and roles.

Count = int | Sequence[int]
Weights = Mapping[Hashable, float] | Sequence[float]
Roles = Iterable[Iterable[Hashable]]

LOAD_STEPS = 10**12
"""Loads count in steps of this part of what a coalition can bear, rounded down: what sums of floats
round off makes no difference, and every sum of steps is exact."""


@dataclass(frozen=True)
class TeamDemands:
    """Demands on every coalition of a structure; two are equal if they ask for the same.

    Attributes
    ----------
    fewest, most
        Number of coalitions; 1 and the number of players if nothing is said.
    min_size, max_size
        Players in a coalition; the same.
    loads, max_load
        What each player weighs and what a coalition can bear; no loads if nothing is said.
    roles
        Sets of players: every coalition has a member of each.
    """

    n_players: int
    fewest: int
    most: int
    min_size: int
    max_size: int
    loads: tuple[Fraction, ...] = ()
    max_load: Fraction = Fraction(0)
    roles: frozenset[frozenset[int]] = frozenset()

    @classmethod
    def of(
        cls,
        players: Named,
        *,
        n_groups: Count | None = None,
        min_size: int | None = None,
        max_size: int | None = None,
        weights: Weights | None = None,
        max_weight: float | None = None,
        at_least_one_of: Roles = (),
        whose: str = "",
    ) -> TeamDemands:
        """Return demands in that form; `whose` begins the sentence about what is wrong in them.

        Raises
        ------
        InvalidInputError
            A number is not positive, or a player is not there.
        """
        n = len(players.labels)
        least, largest = _count((1, n) if n_groups is None else n_groups, whose)
        low = _whole_from_1(1 if min_size is None else min_size, f"{whose}min_size")
        high = _whole_from_1(n if max_size is None else max_size, f"{whose}max_size")
        if (weights is None) != (max_weight is None):
            raise InvalidInputError(f"{whose}weights and max_weight belong together; give both")
        loads: tuple[Fraction, ...] = ()
        if weights is not None:
            loads = _loads(weights, players, whose)
        number = numbering(players, f"{whose}at_least_one_of")
        roles = [frozenset(int(number(member)) for member in role) for role in at_least_one_of]
        if not all(roles):
            raise InvalidInputError(f"{whose}at_least_one_of has an empty set")
        return cls(
            n_players=n,
            fewest=least,
            most=min(largest, n),
            min_size=low,
            max_size=min(high, n),
            loads=loads,
            max_load=Fraction(0) if max_weight is None else _load(max_weight, "max_weight", whose),
            roles=frozenset(roles),
        )

    @property
    def asked(self) -> bool:
        """Whether anything is demanded."""
        return self != TeamDemands(self.n_players, 1, self.n_players, 1, self.n_players)

    @property
    def load_steps(self) -> tuple[int, ...]:
        """The load of each player in `LOAD_STEPS`, of which a coalition can bear that many."""
        most, too_much = self.max_load, LOAD_STEPS + 1
        if not most:
            return tuple(too_much if load else 0 for load in self.loads)
        return tuple(min(int(load * LOAD_STEPS / most), too_much) for load in self.loads)

    def broken(self, blocks: Iterable[Sequence[int]], names: Sequence[str]) -> str | None:
        """Return what a structure does against them, in words."""
        blocks, steps = list(blocks), self.load_steps
        if not self.fewest <= len(blocks) <= self.most:
            return f"it has {len(blocks)} coalitions, but {_range(self.fewest, self.most)} must be"
        for block in blocks:
            first = f"the coalition of {names[block[0]]}"
            if not self.min_size <= len(block) <= self.max_size:
                wanted = _range(self.min_size, self.max_size)
                return f"{first} has {len(block)} players, but {wanted} must be"
            if self.loads and sum(steps[i] for i in block) > LOAD_STEPS:
                load = sum(self.loads[i] for i in block)
                return f"{first} weighs {float(load):g}, above {float(self.max_load):g}"
            for role in self.roles:
                if role.isdisjoint(block):
                    return f"{first} has none of {_some(role, names)}"
        return None

    def unlike(self, other: TeamDemands, names: Sequence[str]) -> str | None:
        """Return a demand of these that is not one of the others, in words."""
        if (self.fewest, self.most) != (other.fewest, other.most):
            return f"{_range(self.fewest, self.most)} coalitions"
        if (self.min_size, self.max_size) != (other.min_size, other.max_size):
            return f"{_range(self.min_size, self.max_size)} players each"
        if (self.loads, self.max_load) != (other.loads, other.max_load):
            return "other weights" if self.loads else "no weights"
        for role in self.roles - other.roles:
            return f"one of {_some(role, names)} in each"
        return None

    def to_json(self) -> dict[str, Any]:
        """Return what is demanded as plain lists and numbers, players by number."""
        asked: dict[str, Any] = {
            "n_groups": [self.fewest, self.most],
            "min_size": self.min_size,
            "max_size": self.max_size,
            "at_least_one_of": sorted(sorted(role) for role in self.roles),
        }
        if self.loads:
            asked |= {"weights": [float(load) for load in self.loads]}
            asked |= {"max_weight": float(self.max_load)}
        return asked

    @classmethod
    def from_json(cls, document: Any, n_players: int) -> TeamDemands:  # noqa: ANN401
        """Return the demands that a certificate's file states.

        Raises
        ------
        InvalidInputError
            It states none that can be.
        """
        low, high = wholes(entry(document, "n_groups"), "n_groups", 2)
        least, largest = (whole(entry(document, name), name) for name in ("min_size", "max_size"))
        if not all(1 <= number <= n_players for number in (low, high, least, largest)):
            raise damaged("a demand is not a number from 1 to that of the players")
        loads: tuple[Fraction, ...] = ()
        max_load = Fraction(0)
        if "weights" in document:
            weights = list_of(document, "weights")
            if len(weights) != n_players:
                raise damaged("there is not a weight for each player")
            loads = tuple(_load(load, "weights", "the certificate's ") for load in weights)
            most = entry(document, "max_weight")
            max_load = _load(most, "max_weight", "the certificate's ")
        roles = [
            frozenset(wholes(role, "at_least_one_of"))
            for role in list_of(document, "at_least_one_of")
        ]
        if not all(role and 0 <= min(role) <= max(role) < n_players for role in roles):
            raise damaged("'at_least_one_of' names a player that is not there")
        return cls(n_players, low, high, least, largest, loads, max_load, frozenset(roles))


def _count(n_groups: Count, whose: str) -> tuple[int, int]:
    both = list(n_groups) if isinstance(n_groups, Sequence) else [n_groups, n_groups]
    if len(both) != 2:
        raise InvalidInputError(
            f"{whose}n_groups must be a whole number, or two: the least and the largest"
        )
    least, largest = (_whole_from_1(number, f"{whose}n_groups") for number in both)
    return least, largest


def _whole_from_1(number: object, name: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise InvalidInputError(f"{name} must be a whole number from 1 on")
    return int(number)


def _loads(weights: Weights, players: Named, whose: str) -> tuple[Fraction, ...]:
    n = len(players.labels)
    if isinstance(weights, Mapping):
        number = numbering(players, f"{whose}weights")
        given = {number(who): load for who, load in weights.items()}
        if len(given) != n:
            raise InvalidInputError(f"{whose}weights must have a number for each player")
        weights = [given[player] for player in range(n)]
    if len(weights) != n:
        raise InvalidInputError(f"{whose}weights has {len(weights)} numbers; there are {n} players")
    return tuple(_load(load, "weights", whose) for load in weights)


def _load(number: float, name: str, whose: str) -> Fraction:
    """Return a load as it is written: 0.1 is a tenth."""
    try:
        load = float(number)
    except (TypeError, ValueError, OverflowError):
        load = math.nan
    if not 0.0 <= load < math.inf:
        raise InvalidInputError(f"{whose}{name} must be numbers that are not negative")
    return Fraction(repr(load))


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _some(role: frozenset[int], names: Sequence[str]) -> str:
    some = [names[player] for player in sorted(role)]
    return listed(some) if len(some) <= 3 else f"{listed(some[:3])} …"
