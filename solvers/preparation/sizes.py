"""From what people say about sizes, counts, loads and roles to `Sizes` on the nodes of a graph."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from coalitions.characters import listed, quoted
from coalitions.errors import InfeasibleError, InvalidInputError
from coalitions.game import IntVector
from coalitions.structure import Named, numbering
from solvers.preparation.demands import Contraction
from solvers.proofs.team_demands import LOAD_STEPS
from solvers.sizes import Sizes

Count = int | Sequence[int]
Weights = Mapping[Hashable, float] | Sequence[float]
Roles = Iterable[Iterable[Hashable]]


def checked_sizes(
    contraction: Contraction,
    whose: Named,
    *,
    n_groups: Count | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    weights: Weights | None = None,
    max_weight: float | None = None,
    at_least_one_of: Roles = (),
) -> Sizes | None:
    """Return the demands on coalitions and their number, or None if there are none.

    Parameters
    ----------
    contraction
        The nodes, and the pairs that must be apart.
    whose
        Who knows the names of the players: the graph.
    n_groups
        Number of coalitions, or the least and the largest number.
    min_size, max_size
        How many players a coalition may have.
    weights, max_weight
        The load of each player (a number for each, or by name), and what a coalition can bear.
    at_least_one_of
        Sets of players; every coalition has a member of each.

    Raises
    ------
    InvalidInputError
        A number is not positive, a player is not there, or one of two things that belong together
        is missing.
    InfeasibleError
        It is plain that no partition meets the demands.
    """
    labels = whose.labels
    roles = _checked_roles(at_least_one_of, whose)
    asked = (n_groups, min_size, max_size, weights, max_weight)
    if not roles and all(demand is None for demand in asked):
        return None
    for name, number in {"min_size": min_size, "max_size": max_size}.items():
        if number is not None and (not _is_whole(number) or number < 1):
            raise InvalidInputError(f"{name} is {number}; it must be a whole number from 1 on")
    least, largest = _checked_count(n_groups)
    loads, bearable = _checked_loads(weights, max_weight, whose)

    players, group = contraction.sizes, contraction.group
    n, nodes = int(players.sum()), len(players)
    low, high = min_size or 1, min(max_size or n, n)
    if low > n:
        raise InfeasibleError(f"min_size is {low}, but there are only {n} players")
    if low > (max_size or n):
        raise InfeasibleError(f"min_size {low} is larger than max_size {max_size}")
    if players.max() > high:
        raise InfeasibleError(
            f"must_link makes a group of {players.max()} players, but max_size is {high}"
        )
    fewest, most = -(-n // high), min(n // low, nodes)
    if fewest > most:
        raise InfeasibleError(
            f"{n} players cannot be split into coalitions of {low} to {high} players"
        )
    node_loads = np.empty(0, np.int64)
    if len(loads):
        node_loads = np.bincount(group, loads, nodes).astype(np.int64)
        heavy = int(np.argmax(node_loads))
        if node_loads[heavy] > bearable:
            who = [quoted(labels[player]) for player in np.flatnonzero(group == heavy).tolist()]
            raise InfeasibleError(f"the weight of {' and '.join(who)} is above max_weight")
        if bearable:
            fewest = max(fewest, -(-int(loads.sum()) // bearable))
    node_roles = []
    for role in roles:
        holders = np.unique(group[list(role)])
        node_roles.append(tuple(holders.tolist()))
        most = min(most, len(holders))
        if fewest > most:
            names = listed(labels[player] for player in role)
            raise InfeasibleError(
                f"there are at least {fewest} coalitions, but only {len(holders)} can have one of"
                f" {names}"
            )
    if fewest > most:
        raise InfeasibleError(
            f"max_weight asks for at least {fewest} coalitions, but there can be at most {most}"
        )
    if n_groups is not None and (largest < fewest or most < least):
        wanted = str(least) if least == largest else f"{least} to {largest}"
        raise InfeasibleError(
            f"{n} players with these demands make {fewest} to {most} coalitions, but n_groups is"
            f" {wanted}"
        )
    apart = tuple((int(group[a]), int(group[b])) for a, b in contraction.cannot_link)
    return Sizes(
        players=players,
        min_size=low,
        max_size=high,
        fewest=max(fewest, least),
        most=min(most, largest),
        loads=node_loads,
        max_load=bearable,
        roles=tuple(node_roles),
        apart=apart,
    )


def _is_whole(number: object) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def _is_load(number: object) -> bool:
    return isinstance(number, numbers.Real) and 0 <= float(number) < math.inf


def _checked_count(n_groups: Count | None) -> tuple[int, int]:
    """Return the least and the largest number of coalitions."""
    if n_groups is None:
        return 1, 1 << 62
    both = n_groups if isinstance(n_groups, Sequence) else (n_groups, n_groups)
    if len(both) != 2 or not all(map(_is_whole, both)) or not 1 <= both[0] <= both[1]:
        raise InvalidInputError(
            f"n_groups is {n_groups!r}; it must be a whole number from 1 on, or two of them, the"
            " least and the largest"
        )
    return int(both[0]), int(both[1])


def _checked_loads(
    weights: Weights | None, max_weight: float | None, whose: Named
) -> tuple[IntVector, int]:
    """Return loads of the players and the most of a coalition, as whole numbers.

    Numbers count as they are written: three times 0.1 fits into 0.3. They count in `LOAD_STEPS`,
    but where few digits say the same, they are these digits.
    """
    if weights is None and max_weight is None:
        return np.empty(0, np.int64), 0
    if weights is None or max_weight is None:
        given, lacking = ("max_weight", "weights") if weights is None else ("weights", "max_weight")
        raise InvalidInputError(f"{given} is given alone; {lacking} is needed with it")
    labels = whose.labels
    if isinstance(weights, Mapping):
        player_of = numbering(whose, "weights")
        by_player = {player_of(name): load for name, load in weights.items()}
        missing = [labels[player] for player in range(len(labels)) if player not in by_player]
        if missing:
            raise InvalidInputError(
                f"weights has none for {missing[0]!r}; give one for each player"
            )
        weights = [by_player[player] for player in range(len(labels))]
    if len(weights) != len(labels):
        raise InvalidInputError(
            f"weights has {len(weights)} numbers; there are {len(labels)} players"
        )
    exact = []
    for name, number in [*zip(labels, weights, strict=True), ("max_weight", max_weight)]:
        if not _is_load(number):
            what = name if name == "max_weight" else f"the weight of {name!r}"
            raise InvalidInputError(f"{what} is {number}; it must be a number that is not negative")
        exact.append(Fraction(str(float(number))))
    grid = math.lcm(*(number.denominator for number in exact))
    *whole, most = (int(number * grid) for number in exact)
    # One too many is at least LOAD_STEPS / most steps too many; rounding down takes less than one
    # from each player. So with few players the digits themselves decide alike.
    if most * len(whole) >= LOAD_STEPS:
        whole = [load * LOAD_STEPS // most for load in whole]
        most = LOAD_STEPS
    return np.array([min(load, most + 1) for load in whole], np.int64), most


def _checked_roles(roles: Roles, whose: Named) -> list[tuple[int, ...]]:
    checked, number = [], numbering(whose, "at_least_one_of")
    for role in roles:
        if isinstance(role, str):
            raise InvalidInputError(
                f"at_least_one_of takes sets of players, not the single name {role!r}"
            )
        members = set(map(number, role))
        if not members:
            raise InvalidInputError(
                "at_least_one_of has an empty set; name at least one player in it"
            )
        checked.append(tuple(sorted(members)))
    return checked
