"""verify(graph, structure, certificate): check a proof in exact integers, without any solver.

Nothing is taken from the certificate but multipliers, branching pairs and claims; the weights come
from the graph, and what structures are compared comes from the caller. Nothing of a solver is used:
weights become whole numbers in `_proof_weights`, and the tree is walked in `_proof_tree`.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from coalitions.checks import GraphLike, as_graph
from coalitions.errors import InvalidInputError, RefusedError, with_keywords
from coalitions.formatting import decimal
from coalitions.game import IntVector
from coalitions.graph import SynergyGraph
from coalitions.results import PublicResult, Row
from coalitions.structure import CoalitionStructure, Structured, numbering
from solvers.optimality import OPTIMALITY_TOLERANCE, positive_weight
from solvers.proofs._coalitions import CoalitionRules, check_teams
from solvers.proofs._tree import check_part
from solvers.proofs._weights import (
    NodePairs,
    between_nodes,
    exact_sum,
    gains,
    rounded,
    slack,
    trimmed,
)
from solvers.proofs.certificate import Certificate, Part
from solvers.proofs.proof_demands import (
    LARGEST_UNIT,
    LOAD_STEPS,
    Count,
    Links,
    Pairs,
    Roles,
    TeamDemands,
    Weights,
    refuse_unless,
)
from solvers.proofs.teams import TeamsProof

NamedPairs = Iterable[Iterable[Hashable]]


@dataclass(frozen=True)
class Verification(PublicResult):
    """What was checked.

    Attributes
    ----------
    value
        What the structure is worth.
    bound
        What no structure that meets the demands is worth more than; None without a certificate.
    optimal
        Whether that proves the structure; None if the bound was not checked.
    positive_weight
        All that can be gained: the scale on which value and bound are compared.
        Where sizes are demanded, what the structure loses is part of it.
    must_link, cannot_link
        The demands: pairs of players that all structures under comparison have together, or apart.
    demands
        Demands on every coalition and their number.
    labels
        Names of the players.
    """

    value: float
    bound: float | None
    optimal: bool | None
    positive_weight: float
    must_link: tuple[tuple[int, int], ...] = ()
    cannot_link: tuple[tuple[int, int], ...] = ()
    demands: TeamDemands | None = None
    labels: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return what was checked as plain values, players by name."""
        links = {"must_link": self.must_link, "cannot_link": self.cannot_link}
        return {
            "partition": True,
            "value": decimal(self.value),
            "bound": None if self.bound is None else decimal(self.bound),
            "bound_checked": self.bound is not None,
            "optimal": self.optimal,
            **{
                name: [[self.labels[one], self.labels[other]] for one, other in pairs]
                for name, pairs in links.items()
            },
        }

    def _rows(self) -> list[Row]:
        return [{"value": self.value, "bound": self.bound, "optimal": self.optimal}]


@with_keywords()
def verify(
    graph: GraphLike,
    structure: Structured,
    certificate: Certificate | None = None,
    *,
    must_link: NamedPairs = (),
    cannot_link: NamedPairs = (),
    n_groups: Count | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    weights: Weights | None = None,
    max_weight: float | None = None,
    at_least_one_of: Roles = (),
) -> Verification:
    """Return the value of a structure and the bound that a certificate proves.

    Parameters
    ----------
    graph
        The graph, from which all weights are taken, or a matrix, a networkx graph …
    structure
        The structure that is claimed to be the best one found, lists of players, or a solution.
    certificate
        The proof; without it only partition, demands and value are checked.
    must_link, cannot_link
        Pairs of players, as `solve` takes them, that must, or must not, be in one coalition. A
        proof for other demands is refused: it speaks about other structures.
    n_groups, min_size, max_size, weights, max_weight, at_least_one_of
        Demands on every coalition and their number, as `solve` takes them.

    Raises
    ------
    RefusedError
        The structure does not meet the demands, or the certificate does not prove what it claims,
        holds for other demands, or belongs to another graph or structure.
    InvalidInputError
        The demands, or the coalitions, are none of this graph.

    Examples
    --------
    >>> graph = SynergyGraph([[0, 5], [5, 0]], ["ann", "bob"])
    >>> alone, proof = CoalitionStructure([[0], [1]]), Certificate(2, (), cannot_link=((0, 1),))
    >>> verify(graph, alone, proof, cannot_link=[(0, 1)]).optimal
    True
    >>> verify(graph, alone, proof)
    Traceback (most recent call last):
        ...
    coalitions.errors.RefusedError: the certificate is refused: it compares only structures \
that keep ann and bob apart, which is not demanded
    """
    graph = as_graph(graph)
    n, names = graph.n_players, graph.labels
    structure = graph.structure(structure)
    together = _numbered(must_link, graph, "must_link")
    demands = Links.of(n, together, _numbered(cannot_link, graph, "cannot_link"))
    teams = TeamDemands.of(
        graph,
        n_groups=n_groups,
        min_size=min_size,
        max_size=max_size,
        weights=weights,
        max_weight=max_weight,
        at_least_one_of=at_least_one_of,
    )
    value, most = _value(graph, structure)
    broken = demands.broken(structure.labels.tolist(), names) or teams.broken(structure, names)
    if broken is not None:
        raise RefusedError(f"the structure is refused: {broken}")
    if certificate is None:
        return Verification(value, None, None, most, demands.must, demands.cannot, teams, names)
    refuse_unless(
        certificate.n_players == n,
        f"it is for {_short(certificate.n_players)} players, the graph has {n}",
    )
    _check_demands(certificate, demands, teams, graph)
    lost = 0.0
    if certificate.teams is None:
        bound, gained = _bound(graph, structure, certificate, demands)
    else:
        bound, gained, lost = _teams_bound(graph, structure, certificate.teams, demands, teams)
    # Not by two floats: beside players who must be together at −1e16, 3 and 4 are one number.
    gap = bound - exact_sum(_inside(graph, structure))
    scale = min(min(most, float(gained)) + lost, sys.float_info.max)
    optimal = gap <= Fraction(OPTIMALITY_TOLERANCE) * Fraction(scale)
    return Verification(
        value, _rounded_up(bound), optimal, scale, demands.must, demands.cannot, teams, names
    )


def _numbered(pairs: NamedPairs, graph: SynergyGraph, name: str) -> Pairs:
    """Return pairs of players as pairs of numbers; what is no pair is told by whoever checks it."""
    number = numbering(graph, name)
    groups = [[number(player) for player in group] for group in pairs]
    return [pair for g in groups for pair in (itertools.combinations(g, 2) if len(g) > 2 else [g])]


def _value(graph: SynergyGraph, structure: CoalitionStructure) -> tuple[float, float]:
    """Return what a structure is worth, and the sum of all positive weights."""
    try:
        return graph.value(structure), positive_weight(graph)
    except OverflowError:
        raise InvalidInputError(
            "the weights of this graph add up to more than a float can hold; divide them"
        ) from None


def _inside(graph: SynergyGraph, structure: CoalitionStructure) -> list[float]:
    """Return the weights inside coalitions."""
    labels, (i, j, weight) = structure.labels, graph.edges
    inside: list[float] = weight[labels[i] == labels[j]].tolist()
    return inside


def _check_demands(
    certificate: Certificate, demands: Links, teams: TeamDemands, graph: SynergyGraph
) -> None:
    """Refuse a certificate for other structures than those asked about.

    One for fewer demands would prove the bound, too. Equality is simpler, and says what was proven.
    """
    names = graph.labels
    own = Links.of(
        len(names),
        certificate.must_link,
        certificate.cannot_link,
        "the certificate is refused: its ",
    )
    extra, missing = own.beyond(demands, names), demands.beyond(own, names)
    refuse_unless(
        extra is None, f"it compares only structures that keep {extra}, which is not demanded"
    )
    refuse_unless(missing is None, f"it does not keep {missing}, which is demanded")
    its_own = certificate.demands or TeamDemands.of(graph)
    extra, missing = its_own.unlike(teams, names), teams.unlike(its_own, names)
    refuse_unless(extra is None, f"it compares only structures with {extra}, which is not demanded")
    refuse_unless(missing is None, f"it does not ask for {missing}, which is demanded")


def _bound(
    graph: SynergyGraph, structure: CoalitionStructure, certificate: Certificate, demands: Links
) -> tuple[Fraction, Fraction]:
    """Return what no structure is worth more than, if all parts prove it, and what can be gained.

    What players who must be together are worth is no gain, nor is what must not be.
    """
    nodes, part_of = _all_nodes(certificate, demands)
    node_of = np.empty(graph.n_players, np.int64)
    for number, node in enumerate(nodes):
        node_of[list(node)] = number
    apart = node_of[np.array(sorted(demands.apart), np.int64).reshape(-1, 2)]
    bound, pairs = between_nodes(graph, node_of, len(nodes), apart)
    is_across = part_of[pairs.one] != part_of[pairs.two]
    for k in np.flatnonzero(is_across & (pairs.weight > 0) & ~pairs.forbidden).tolist():
        one, two = (graph.labels[nodes[end][0]] for end in (pairs.one[k], pairs.two[k]))
        refuse_unless(
            False, f"{one} and {two} gain by being together, but the proof treats them apart"
        )
    pairs = pairs[~is_across]
    # Nodes are numbered part by part, so the pairs of a part follow each other.
    first_node = np.cumsum([0, *(len(part.nodes) for part in certificate.parts)])
    first_pair = np.searchsorted(pairs.one, first_node)
    block = structure.labels[[node[0] for node in nodes]]
    for number, part in enumerate(certificate.parts):
        own = pairs[first_pair[number] : first_pair[number + 1]]
        start, end = first_node[number], first_node[number + 1]
        bound += _part_bound(part, own, int(start), block[start:end], f"part {number}")
    return bound, gains(pairs)


def _teams_bound(
    graph: SynergyGraph,
    structure: CoalitionStructure,
    proof: TeamsProof,
    links: Links,
    demands: TeamDemands,
) -> tuple[Fraction, Fraction, float]:
    """Return the bound that prices prove, what can be gained, and what the structure loses."""
    nodes = [tuple(sorted(node)) for node in proof.nodes]
    refuse_unless(
        sorted(nodes) == sorted(links.members()),
        "its nodes are not the players, those who must be together in one",
    )
    node_of = np.empty(graph.n_players, np.int64)
    for number, node in enumerate(nodes):
        node_of[list(node)] = number
    apart = node_of[np.array(sorted(links.apart), np.int64).reshape(-1, 2)]
    inside, pairs = between_nodes(graph, node_of, len(nodes), apart)
    _check_unit(proof.unit, "the proof")
    block = structure.labels[[node[0] for node in nodes]]
    joined = pairs.weight[block[pairs.one] == block[pairs.two]].tolist()
    worth, lost = exact_sum(joined), -exact_sum([weight for weight in joined if weight < 0.0])
    # Whoever joins a pair below −2 · (all gains + the losses here) is worth less than what is here.
    # So such pairs, −1e16 for "never" among them, count as pairs that must be apart.
    stake = gains(pairs) + lost
    dear = np.array([Fraction(weight) < -2 * stake for weight in pairs.weight.tolist()], np.bool_)
    may = ~(pairs.forbidden | dear)
    apart = np.stack((pairs.one[~may], pairs.two[~may]), axis=1)
    kept = pairs[may]
    whole = rounded(kept.weight, proof.unit)
    check_teams(proof, kept.one, kept.two, whole, _rules(demands, nodes, apart))
    # Exactly, pair by pair: a bound on the roundings of large losses would be too much.
    short = [
        Fraction(weight) + Fraction(above) - proof.unit * int(k)
        for weight, above, k in zip(
            kept.weight.tolist(), kept.above.tolist(), whole.tolist(), strict=True
        )
    ]
    bound = proof.unit * proof.bound + sum((off for off in short if off > 0), Fraction(0))
    lost = min(lost, Fraction(sys.float_info.max))
    return inside + min(max(bound, worth), gains(pairs)), gains(pairs), float(lost)


def _rules(demands: TeamDemands, nodes: list[tuple[int, ...]], apart: IntVector) -> CoalitionRules:
    """Return the demands on coalitions of nodes, with a number of coalitions that follows."""
    n = len(nodes)
    players = np.array([len(node) for node in nodes], np.int64)
    steps = demands.load_steps
    loads = [sum(steps[i] for i in node) for node in nodes if steps]
    max_load = LOAD_STEPS if loads else 0
    holds = np.array([[not role.isdisjoint(node) for role in demands.roles] for node in nodes])
    forbidden = np.zeros((n, n), np.bool_)
    forbidden[apart[:, 0], apart[:, 1]] = forbidden[apart[:, 1], apart[:, 0]] = True
    fewest = [demands.fewest, -(-demands.n_players // demands.max_size)]
    if max_load:
        fewest.append(-(-sum(loads) // max_load))
    most = [demands.most, demands.n_players // demands.min_size, n, *holds.sum(axis=0).tolist()]
    return CoalitionRules(
        fewest=max(fewest),
        most=min(most),
        players=players,
        min_size=demands.min_size,
        max_size=demands.max_size,
        loads=np.array(loads or [0] * n, np.int64),
        max_load=max_load,
        holds=holds.reshape(n, len(demands.roles)),
        apart=forbidden,
    )


def _check_unit(unit: Fraction, whose: str) -> None:
    refuse_unless(
        unit > 0 and max(unit.numerator, unit.denominator) < LARGEST_UNIT,
        f"the unit of {whose} is not positive, or none that floats can have",
    )


def _all_nodes(certificate: Certificate, demands: Links) -> tuple[list[tuple[int, ...]], IntVector]:
    """Return the nodes of all parts, then a node for everybody else; and the part of each."""
    nodes = [tuple(sorted(node)) for part in certificate.parts for node in part.nodes]
    demanded = demands.members()
    refuse_unless(all(nodes), "a node has no players")
    refuse_unless(len(set(nodes)) == len(nodes), "a player is in two nodes")
    refuse_unless(
        set(demanded).issuperset(nodes),
        "a node is not one player, nor all of a set of players that must be together",
    )
    part_of = [k for k, part in enumerate(certificate.parts) for _ in part.nodes]
    listed = set(nodes)
    alone = [node for node in demanded if node not in listed]
    part_of += range(len(certificate.parts), len(certificate.parts) + len(alone))
    return nodes + alone, np.array(part_of, np.int64)


def _part_bound(part: Part, pairs: NodePairs, first: int, block: IntVector, name: str) -> Fraction:
    """Return the bound of one part, whose nodes are numbered from `first` on."""
    unit = part.unit
    _check_unit(unit, name)
    one, two = pairs.one - first, pairs.two - first
    whole = rounded(pairs.weight, unit)
    together = (block[one] == block[two]) & ~pairs.forbidden
    found = sum(whole[together].tolist())
    refuse_unless(
        found >= part.value,
        f"it was made for a structure worth more than this one ({name}:"
        f" {_short(part.value)} against {_short(found)} times {float(unit):.6g})",
    )
    local = NodePairs(one, two, pairs.weight, pairs.above, pairs.forbidden)
    weights = trimmed(local, whole, len(part.nodes))
    check_part(part, one, two, weights, name)
    # Where nothing is positive, not even what rounding leaves out can be gained.
    return min(unit * part.bound + slack(local, weights, unit), gains(local))


def _rounded_up(exact: Fraction) -> float:
    """Return a float that is not below a fraction."""
    try:
        nearest = float(exact)
    except OverflowError:
        nearest = math.inf
    refuse_unless(math.isfinite(nearest), "its bound is larger than a float can hold")
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _short(number: int) -> str:
    """Return a whole number, or how long it is."""
    return str(number) if abs(number) < 10**30 else f"a number of {number.bit_length()} bits"
