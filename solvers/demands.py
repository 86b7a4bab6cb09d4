"""Demands on a structure: who is together, who is apart, how many coalitions and how large.

`Demands.of` reads and checks what the caller asks for, once; everything else gets that object.
`Contraction` makes one node of players that must be together. A pair that must stay apart gets the
lowest weight there is, which `solvers.reductions` raises to one that just does not pay. So solvers
see an ordinary graph, and every reduction and every exact method is valid on it as it is. Demands
on sizes, counts, loads and roles are `Sizes` on the nodes of that graph; `first_structure` tells
whether any structure meets them.
"""

from __future__ import annotations

import itertools
import math
import numbers
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypedDict

import numpy as np

from coalitions.checks import Seed
from coalitions.errors import InfeasibleError, InvalidInputError
from coalitions.formatting import listed, quoted
from coalitions.game import BoolMatrix, FloatVector, IntVector
from coalitions.graph import SynergyGraph, weight_sum
from coalitions.structure import Named, Position, Structured, numbering
from solvers.optimality import rounded_up
from solvers.proofs.certificate import Certificate
from solvers.proofs.proof_demands import LOAD_STEPS
from solvers.reductions import components, numbered
from solvers.solver import Answer

Pairs = Iterable[Iterable[Hashable]]
Count = int | Sequence[int]
Weights = Mapping[Hashable, float] | Sequence[float]
Roles = Iterable[Iterable[Hashable]]
Links = tuple[tuple[int, int], ...]
"""Pairs of players by position."""


# ----------------------------------------------------------------------------------------
# Demands on players, as the caller makes them.


@dataclass(frozen=True)
class Demands:
    """What the caller demands of a structure, checked, with players by position.

    Attributes
    ----------
    must_link, cannot_link
        Pairs of players that must, or must not, be together.
    count
        The least and the largest number of coalitions, None if any number will do.
    min_size, max_size
        How many players a coalition may have; None for no limit.
    weights
        The load of each player, as the caller gave it.
    loads, max_load
        The loads and what a coalition can bear, in whole numbers. No loads where none matter.
    roles
        Sets of players: every coalition has a member of each.
    sizes
        All of these but the links as keyword arguments of `solve` and `verify`, in the caller's
        words. Empty if there are only links.
    labels
        Names of the players, for messages.

    Examples
    --------
    >>> graph = SynergyGraph([[0, 2], [2, 0]], labels=["ann", "bob"])
    >>> demands = Demands.of(graph, cannot_link=[("ann", "bob")], max_size=1)
    >>> demands.cannot_link, demands.sizes
    (((0, 1),), {'max_size': 1})
    """

    must_link: Links = ()
    cannot_link: Links = ()
    count: tuple[int, int] | None = None
    min_size: int | None = None
    max_size: int | None = None
    weights: Mapping[int, float] = field(default_factory=dict)
    loads: tuple[int, ...] = ()
    max_load: int = 0
    roles: tuple[tuple[int, ...], ...] = ()
    sizes: Mapping[str, Any] = field(default_factory=dict, compare=False)
    labels: Sequence[str] = field(default=(), repr=False, compare=False)

    @classmethod
    def of(
        cls,
        players: Named,
        *,
        must_link: Pairs = (),
        cannot_link: Pairs = (),
        n_groups: Count | None = None,
        min_size: int | None = None,
        max_size: int | None = None,
        weights: Weights | None = None,
        max_weight: float | None = None,
        at_least_one_of: Roles = (),
    ) -> Demands:
        """Return the demands that these arguments of `solve` make.

        Parameters
        ----------
        players
            Knows the players and their names: a graph.
        must_link, cannot_link, n_groups, min_size, max_size, weights, max_weight, at_least_one_of
            As `solve` takes them.

        Raises
        ------
        InvalidInputError
            A pair does not have two different players, a number is not positive, a player does not
            exist, or one of two arguments that belong together is missing.
        """
        if isinstance(weights, Mapping):
            weights = dict(weights)
        elif weights is not None and isinstance(weights, Iterable):
            weights = list(weights)
        roles = tuple(role if isinstance(role, str) else tuple(role) for role in at_least_one_of)
        said = {
            "n_groups": n_groups,
            "min_size": min_size,
            "max_size": max_size,
            "weights": weights,
            "max_weight": max_weight,
            "at_least_one_of": roles or None,
        }
        for name, number in {"min_size": min_size, "max_size": max_size}.items():
            if number is not None and (not _is_whole(number) or number < 1):
                raise InvalidInputError(f"{name} is {number}; it must be a whole number from 1 on")
        load_of = _checked_weights(weights, max_weight, players)
        loads, max_load = _whole_loads(load_of, max_weight, players.labels)
        return cls(
            must_link=pairs_in(must_link, players, "must_link"),
            cannot_link=pairs_in(cannot_link, players, "cannot_link"),
            count=None if n_groups is None else _checked_count(n_groups),
            min_size=min_size,
            max_size=max_size,
            weights=load_of,
            loads=loads,
            max_load=max_load,
            roles=_checked_roles(roles, players),
            sizes={name: demand for name, demand in said.items() if demand is not None},
            labels=players.labels,
        )

    def with_links(self, together: Links = (), apart: Links = ()) -> Demands:
        """Return these demands and more links, which are pairs of positions."""
        return replace(
            self,
            must_link=(*self.must_link, *_positions(together)),
            cannot_link=(*self.cannot_link, *_positions(apart)),
        )

    def without_count(self) -> Demands:
        """Return these demands for any number of coalitions."""
        sizes = {name: demand for name, demand in self.sizes.items() if name != "n_groups"}
        return replace(self, count=None, sizes=sizes)

    def on_nodes(self, nodes: Contraction) -> Sizes | None:
        """Return the demands on coalitions and their number, None if there are only links.

        Raises
        ------
        InfeasibleError
            It is plain that no partition meets the demands.
        """
        return _sizes_on(self, nodes) if self.sizes else None


NOTHING_DEMANDED = Demands()


class DemandArguments(TypedDict, total=False):
    """The arguments of `solve` that are demands."""

    must_link: Pairs
    cannot_link: Pairs
    n_groups: Count | None
    min_size: int | None
    max_size: int | None
    weights: Weights | None
    max_weight: float | None
    at_least_one_of: Roles


class SearchArguments(DemandArguments, total=False):
    """The other arguments of `solve`, which functions that search several times pass on."""

    gap: float
    seed: Seed
    threads: int | None
    warm_start: Structured | None
    certificate: bool


DEMANDS = tuple(DemandArguments.__annotations__)


def split_off(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the demands among arguments of `solve`, and the other arguments.

    Examples
    --------
    >>> split_off({"max_size": 3, "seed": 1})
    ({'max_size': 3}, {'seed': 1})
    """
    demands = {name: arguments[name] for name in DEMANDS if name in arguments}
    return demands, {name: arguments[name] for name in arguments if name not in demands}


def pairs_in(groups: Pairs, players: Named, name: str) -> Links:
    """Return all pairs of each group of players, by number.

    Examples
    --------
    >>> pairs_in([("a", "b", "c")], SynergyGraph([[0] * 3] * 3, labels="abc"), "cannot_link")
    ((0, 1), (0, 2), (1, 2))
    """
    pairs: list[tuple[int, int]] = []
    number = numbering(players, name)
    for group in groups:
        if isinstance(group, str) or not isinstance(group, Iterable):
            raise InvalidInputError(
                f"{name} takes groups of players, [('ann', 'bob')] for instance; {group!r} is none"
            )
        members = list(map(number, group))
        if len(members) < 2 or len(set(members)) < len(members):
            raise InvalidInputError(
                f"{name} takes groups of two or more different players, not {group!r}"
            )
        pairs += itertools.combinations(members, 2)
    return _positions(pairs)


def _positions(pairs: Iterable[tuple[int, int]]) -> Links:
    """Return pairs that can be demanded again, also where a number would be a node."""
    return tuple((Position(a), Position(b)) for a, b in pairs)


def _is_whole(number: object) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def _is_load(number: object) -> bool:
    return isinstance(number, numbers.Real) and 0 <= float(number) < math.inf


def _checked_count(n_groups: Count) -> tuple[int, int]:
    """Return the least and the largest number of coalitions."""
    both = n_groups if isinstance(n_groups, Sequence) else (n_groups, n_groups)
    if len(both) != 2 or not all(map(_is_whole, both)) or not 1 <= both[0] <= both[1]:
        raise InvalidInputError(
            f"n_groups is {n_groups!r}; it must be a whole number from 1 on, or two of them, the"
            " least and the largest"
        )
    return int(both[0]), int(both[1])


def _checked_weights(
    weights: Weights | None, max_weight: float | None, players: Named
) -> dict[int, float]:
    """Return the load of each player, in the caller's order; empty if there are none."""
    if weights is None and max_weight is None:
        return {}
    if weights is None or max_weight is None:
        given, lacking = ("max_weight", "weights") if weights is None else ("weights", "max_weight")
        raise InvalidInputError(f"{given} is given alone; {lacking} is needed with it")
    labels = players.labels
    if isinstance(weights, Mapping):
        player_of = numbering(players, "weights")
        load_of = {int(player_of(name)): load for name, load in weights.items()}
        missing = [labels[player] for player in range(len(labels)) if player not in load_of]
        if missing:
            raise InvalidInputError(
                f"weights has none for {missing[0]!r}; give one for each player"
            )
    else:
        load_of = dict(enumerate(weights))
    if len(load_of) != len(labels):
        raise InvalidInputError(
            f"weights has {len(load_of)} numbers; there are {len(labels)} players"
        )
    for player, load in load_of.items():
        if not _is_load(load):
            raise InvalidInputError(
                f"the weight of {labels[player]!r} is {load}; it must be a number that is not"
                " negative"
            )
    if not _is_load(max_weight):
        raise InvalidInputError(
            f"max_weight is {max_weight}; it must be a number that is not negative"
        )
    return load_of


def _whole_loads(
    load_of: Mapping[int, float], max_weight: float | None, labels: Sequence[str]
) -> tuple[tuple[int, ...], int]:
    """Return loads of the players and the most of a coalition, as whole numbers.

    Numbers count as they are written: three times 0.1 fits into 0.3. They count in `LOAD_STEPS`,
    but where few digits say the same, they are these digits.
    """
    if max_weight is None:
        return (), 0
    loads = [load_of[player] for player in range(len(labels))]
    exact = [Fraction(str(float(number))) for number in (*loads, max_weight)]
    grid = math.lcm(*(number.denominator for number in exact))
    *whole, most = (int(number * grid) for number in exact)
    # One too many is at least LOAD_STEPS / most steps too many; rounding down takes less than one
    # from each player. So with few players the digits themselves decide in the same way.
    if most * len(whole) >= LOAD_STEPS:
        whole = [load * LOAD_STEPS // most for load in whole]
        most = LOAD_STEPS
    return tuple(min(load, most + 1) for load in whole), most


def _checked_roles(roles: Roles, players: Named) -> tuple[tuple[int, ...], ...]:
    checked, number = [], numbering(players, "at_least_one_of")
    for role in roles:
        if isinstance(role, str):
            raise InvalidInputError(
                f"at_least_one_of takes sets of players, not the single name {role!r}"
            )
        members = tuple(int(number(member)) for member in role)
        if not members:
            raise InvalidInputError(
                "at_least_one_of has an empty set; name at least one player in it"
            )
        checked.append(members)
    return tuple(checked)


# ----------------------------------------------------------------------------------------
# Links: nodes of players that must be together, and the lowest weight for pairs kept apart.

FORBIDDEN = -sys.float_info.max
"""The weight of a pair that must stay apart."""


@dataclass(frozen=True)
class Contraction:
    """A graph whose nodes stand for groups of players of another.

    Attributes
    ----------
    graph
        The graph between the groups, forbidden pairs with the weight `FORBIDDEN`.
    group
        The node of each player.
    constant
        What the players inside the groups are worth together, to twice the precision of a float.
    must_link, cannot_link
        The demands themselves, as pairs of positions.
    """

    graph: SynergyGraph
    group: IntVector
    constant: Fraction = Fraction(0)
    must_link: Links = ()
    cannot_link: Links = ()

    @property
    def sizes(self) -> IntVector:
        """Number of players behind each node."""
        return np.bincount(self.group, minlength=self.graph.n_players)

    @classmethod
    def apply(cls, graph: SynergyGraph, demands: Demands = NOTHING_DEMANDED) -> Contraction:
        """Return the graph with one node for players that must be together.

        A pair of nodes that must be apart gets the weight `FORBIDDEN`.

        The synergy of two nodes is the correctly rounded sum of those of their players. It does not
        depend on any order, so the verifier of a proof finds the same number.

        Raises
        ------
        InvalidInputError
            A sum is larger than a float can be.
        InfeasibleError
            Two players must be together and must not.
        """
        together = np.array(demands.must_link, np.int64).reshape(-1, 2)
        apart = np.array(demands.cannot_link, np.int64).reshape(-1, 2)
        n = graph.n_players
        if not len(together) and not len(apart):
            return cls(graph, np.arange(n))
        group = components(n, together[:, 0], together[:, 1])
        # Nodes are numbered by their first players, so that the order of players is kept.
        _, first, group = np.unique(group, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        group = rank[group]
        for a, b in apart:
            if group[a] == group[b]:
                raise InfeasibleError(
                    f"{graph.labels[a]!r} and {graph.labels[b]!r} must not be together"
                    " (cannot_link), but must_link puts them together; drop one of the two demands"
                )
        i, j, weight = graph.edges
        inside = group[i] == group[j]
        ends = _merged(group[i[~inside]], group[j[~inside]], weight[~inside], len(first))
        merged = SynergyGraph.from_edges(
            len(first), *_forbid(len(first), *ends, group[apart]), labels=_names(graph, group)
        )
        if not graph.is_sparse:
            merged = SynergyGraph(merged.matrix, merged.labels)
        return cls(merged, group, _precise_sum(weight[inside]), _tuples(together), _tuples(apart))

    @property
    def behind(self) -> list[list[int]]:
        """The players behind each node."""
        found: list[list[int]] = [[] for _ in range(self.graph.n_players)]
        for player, node in enumerate(self.group.tolist()):
            found[node].append(player)
        return found

    def contract(self, labels: IntVector) -> IntVector:
        """Return labels of the nodes for labels of the players: each node's first player's."""
        _, first = np.unique(self.group, return_index=True)
        return numbered(labels[first])

    def invert(self, answer: Answer) -> Answer:
        """Return the answer for the players: the nodes' structure, and what is inside nodes."""
        return replace(
            answer,
            labels=answer.labels[self.group],
            bound=rounded_up(Fraction(answer.bound) + self.constant),
            prove=None if answer.prove is None else partial(_for_players, self, answer),
        )


def _for_players(nodes: Contraction, answer: Answer) -> Certificate | None:
    """Return the certificate for the players from that for the nodes."""
    found, behind = answer.certificate, nodes.behind
    if found is None:
        return None
    teams = found.teams
    if teams is not None:
        teams = replace(teams, nodes=tuple(tuple(behind[k]) for (k,) in teams.nodes))
    return replace(
        found.placed(behind, len(nodes.group)),
        must_link=nodes.must_link,
        cannot_link=nodes.cannot_link,
        teams=teams,
    )


def _precise_sum(weights: FloatVector) -> Fraction:
    """Return a sum as two floats added: itself, and what its rounding left out."""
    total = weight_sum(weights)
    return Fraction(total) + Fraction(weight_sum(np.append(weights, -total)))


def _tuples(pairs: IntVector) -> Links:
    return tuple((a, b) for a, b in pairs.tolist())


def _merged(
    i: IntVector, j: IntVector, weight: FloatVector, n_nodes: int
) -> tuple[IntVector, IntVector, FloatVector]:
    """Add up the weights of parallel edges, correctly rounded."""
    low, high = np.minimum(i, j), np.maximum(i, j)
    keys, place, counts = np.unique(low * n_nodes + high, return_inverse=True, return_counts=True)
    total = np.zeros(len(keys))
    alone = counts[place] == 1
    total[place[alone]] = weight[alone]
    several = np.flatnonzero(~alone)
    several = several[np.argsort(place[several], kind="stable")]
    parallel = np.flatnonzero(counts > 1)
    ends = np.cumsum(counts[parallel])
    for key, end, count in zip(parallel, ends, counts[parallel], strict=True):
        total[key] = weight_sum(weight[several[end - count : end]])
    return keys // n_nodes, keys % n_nodes, total


def _forbid(
    n_nodes: int, i: IntVector, j: IntVector, weight: FloatVector, pairs: IntVector
) -> tuple[IntVector, IntVector, FloatVector]:
    """Give forbidden pairs their weight."""
    if not len(pairs):
        return i, j, weight
    keys = np.unique(pairs.min(axis=1) * n_nodes + pairs.max(axis=1))
    kept = ~np.isin(i * n_nodes + j, keys)
    a, b = keys // n_nodes, keys % n_nodes
    forbidden = np.full(len(keys), FORBIDDEN)
    return (
        np.concatenate((i[kept], a)),
        np.concatenate((j[kept], b)),
        np.concatenate((weight[kept], forbidden)),
    )


def _names(graph: SynergyGraph, group: IntVector) -> list[str]:
    """Name a node after its players."""
    members: dict[int, list[str]] = {}
    for label, node in zip(graph.labels, group.tolist(), strict=True):
        members.setdefault(node, []).append(label)
    return ["+".join(members[node]) for node in sorted(members)]


# ----------------------------------------------------------------------------------------
# Sizes, counts, loads and roles on the nodes, as solvers get them.


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


def _sizes_on(demands: Demands, nodes: Contraction) -> Sizes:
    """Return the demands on coalitions and their number for the nodes of a contraction."""
    players, group, labels = nodes.sizes, nodes.group, demands.labels
    min_size, max_size, bearable = demands.min_size, demands.max_size, demands.max_load
    n, n_nodes = int(players.sum()), len(players)
    low, high = min_size or 1, min(max_size or n, n)
    if low > n:
        raise InfeasibleError(f"min_size is {low}, but there are only {n} players")
    if low > (max_size or n):
        raise InfeasibleError(f"min_size {low} is larger than max_size {max_size}")
    if players.max() > high:
        raise InfeasibleError(
            f"must_link makes a group of {players.max()} players, but max_size is {high}"
        )
    fewest, most = -(-n // high), min(n // low, n_nodes)
    if fewest > most:
        raise InfeasibleError(
            f"{n} players cannot be split into coalitions of {low} to {high} players"
        )
    node_loads = np.empty(0, np.int64)
    if demands.loads:
        node_loads = np.bincount(group, demands.loads, n_nodes).astype(np.int64)
        heavy = int(np.argmax(node_loads))
        if node_loads[heavy] > bearable:
            who = [quoted(labels[player]) for player in np.flatnonzero(group == heavy).tolist()]
            raise InfeasibleError(f"the weight of {' and '.join(who)} is above max_weight")
        if bearable:
            fewest = max(fewest, -(-sum(demands.loads) // bearable))
    node_roles = []
    for role in demands.roles:
        holders = np.unique(group[list(role)])
        node_roles.append(tuple(holders.tolist()))
        most = min(most, len(holders))
        if fewest > most:
            names = listed(labels[player] for player in sorted(set(role)))
            raise InfeasibleError(
                f"there are at least {fewest} coalitions, but only {len(holders)} can have one of"
                f" {names}"
            )
    if fewest > most:
        raise InfeasibleError(
            f"max_weight asks for at least {fewest} coalitions, but there can be at most {most}"
        )
    least, largest = demands.count or (fewest, most)
    if largest < fewest or most < least:
        wanted = str(least) if least == largest else f"{least} to {largest}"
        raise InfeasibleError(
            f"{n} players with these demands make {fewest} to {most} coalitions, but n_groups is"
            f" {wanted}"
        )
    apart = tuple((int(group[a]), int(group[b])) for a, b in nodes.cannot_link)
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


# ----------------------------------------------------------------------------------------
# Does any structure meet the demands? Return one that does, or raise.

MOST_STEPS = 200_000
"""Placements tried before the question is left open: half a second or, with many nodes, more."""

STEPS_AT_ONCE = 500
"""Placements between two looks at the clock: each looks at all nodes, so 0.1 s with 300 of them."""

MOST_STARTS = 50
"""Nodes from which sets of nodes that must all be apart are grown."""


def first_structure(
    sizes: Sizes, most_steps: int = MOST_STEPS, expired: Callable[[], bool] = lambda: False
) -> IntVector | None:
    """Return a structure that meets the demands, None if `most_steps` placements leave that open.

    Nodes are placed one by one, the largest first, into every coalition there is and into one more,
    and never where the rest could not make up for it. The question is also left open when time has
    `expired`.

    Raises
    ------
    InfeasibleError
        There is none.

    Examples
    --------
    >>> first_structure(Sizes(np.array([2, 1, 1]), min_size=2, max_size=2, fewest=1, most=3))
    array([0, 1, 1])
    """
    crowd = _all_apart(sizes, expired)
    if crowd > sizes.most:
        raise InfeasibleError(
            f"{crowd} players must all be apart from each other (cannot_link), but there can be at"
            f" most {sizes.most} coalitions"
        )
    even = _evenly(sizes)
    if even is not None:
        return even
    search = _Placement(sizes)
    n = len(sizes.players)
    choice = [0] * n  # the coalition to try next for the node at each depth
    depth = steps = 0
    while depth >= 0:
        if depth == n:
            return search.labels.copy()
        if steps == most_steps:
            return None
        steps += 1
        if steps % STEPS_AT_ONCE == 0 and expired():
            return None
        node, block = search.order[depth], choice[depth]
        if block > min(search.n_blocks, sizes.most - 1):
            choice[depth] = 0
            depth -= 1
            if depth >= 0:
                search.remove(search.order[depth])
            continue
        choice[depth] += 1
        if search.accepts(node, block):
            search.place(node, block)
            if search.can_be_completed():
                depth += 1
            else:
                search.remove(node)
    raise InfeasibleError(
        "no structure meets the demands: every way to place the players was tried"
    )


def _evenly(sizes: Sizes) -> IntVector | None:
    """Return coalitions of nearly the same size where sizes are all that is demanded."""
    n = len(sizes.players)
    if len(sizes.loads) or sizes.roles or sizes.apart or (sizes.players != 1).any():
        return None
    labels = np.arange(n) * sizes.fewest // n
    return labels if sizes.met_by(labels) else None


class _Placement:
    """Some nodes placed in coalitions, and what the others can still bring."""

    def __init__(self, sizes: Sizes) -> None:
        n = len(sizes.players)
        self.sizes = sizes
        self.loads = sizes.loads.tolist() if len(sizes.loads) else [0] * n
        self.max_load = sizes.max_load if len(sizes.loads) else 1 << 62
        self.players = sizes.players.tolist()
        self.roles = [tuple(r for r, role in enumerate(sizes.roles) if i in role) for i in range(n)]
        self.rivals: list[set[int]] = [set() for _ in range(n)]
        for a, b in sizes.apart:
            self.rivals[a].add(b)
            self.rivals[b].add(a)
        self.order = sorted(
            range(n), key=lambda i: (-self.players[i], -len(self.rivals[i]), -self.loads[i], i)
        )
        self.labels = np.full(n, -1, np.int64)
        self.blocks: list[list[int]] = []
        self.left = set(range(n))

    @property
    def n_blocks(self) -> int:
        return len(self.blocks)

    def accepts(self, node: int, block: int) -> bool:
        """Tell whether a node may be in a coalition, one that is there or the next one."""
        members = self.blocks[block] if block < self.n_blocks else []
        return (
            not self.rivals[node].intersection(members)
            and self.players[node] + self._sum(self.players, members) <= self.sizes.max_size
            and self.loads[node] + self._sum(self.loads, members) <= self.max_load
        )

    def place(self, node: int, block: int) -> None:
        """Put a node into a coalition, one that is there or the next one."""
        if block == self.n_blocks:
            self.blocks.append([])
        self.blocks[block].append(node)
        self.labels[node] = block
        self.left.remove(node)

    def remove(self, node: int) -> None:
        """Take back the node that was placed last."""
        members = self.blocks[self.labels[node]]
        members.pop()
        if not members:
            self.blocks.pop()
        self.labels[node] = -1
        self.left.add(node)

    def can_be_completed(self) -> bool:
        """Tell whether those who are left could, one by one demand, make up what is missing."""
        sizes, missing = self.sizes, max(0, self.sizes.fewest - self.n_blocks)
        free = sizes.most - self.n_blocks
        in_blocks = [self._sum(self.players, members) for members in self.blocks]
        wanted = sum(max(0, sizes.min_size - count) for count in in_blocks)
        coming = self._sum(self.players, self.left)
        if len(self.left) < missing or coming < wanted + missing * sizes.min_size:
            return False
        if coming > sum(sizes.max_size - count for count in in_blocks) + free * sizes.max_size:
            return False
        carried = sum(self.max_load - self._sum(self.loads, members) for members in self.blocks)
        if self._sum(self.loads, self.left) > carried + free * self.max_load:
            return False
        for role in range(len(sizes.roles)):
            lacking = sum(all(role not in self.roles[i] for i in block) for block in self.blocks)
            if sum(role in self.roles[i] for i in self.left) < lacking + missing:
                return False
        return True

    @staticmethod
    def _sum(numbers: list[int], members: list[int] | set[int]) -> int:
        return sum(numbers[i] for i in members)


def _all_apart(sizes: Sizes, expired: Callable[[], bool]) -> int:
    """Return how many nodes, chosen greedily, must all be apart from each other."""
    if not sizes.apart:
        return 0
    n = len(sizes.players)
    apart: BoolMatrix = np.zeros((n, n), np.bool_)
    a, b = np.array(sizes.apart).T
    apart[a, b] = apart[b, a] = True
    rivals = apart.sum(axis=1)
    largest = 0
    for node in np.argsort(-rivals, kind="stable")[: min(MOST_STARTS, np.count_nonzero(rivals))]:
        candidates, size = np.flatnonzero(apart[node]), 1
        among = apart[np.ix_(candidates, candidates)]
        while len(candidates) and not (size % 10 == 0 and expired()):
            # Of those that leave the most candidates, the first.
            left = np.flatnonzero(among[among.sum(axis=1).argmax()])
            candidates, among, size = candidates[left], among[np.ix_(left, left)], size + 1
        largest = max(largest, size)
        if expired():
            break
    return largest
