"""Demands on a structure: who must be together, who must not, how many and how large.

Players that must be together are contracted to one node before anything else happens. A pair that
must stay apart gets the lowest weight there is, which `solvers.preparation.conditioning` raises to
one that just does not pay: the graph that solvers see is an ordinary one, so every reduction and
every exact method is valid on it as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from coalitions.errors import InfeasibleError, InvalidInputError
from coalitions.game import FloatVector, IntVector
from coalitions.graph import SynergyGraph, weight_sum
from coalitions.structure import numbering
from solvers.preparation.components import components, numbered

Pairs = Iterable[Iterable[Hashable]]

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
    must_link: tuple[tuple[int, int], ...] = ()
    cannot_link: tuple[tuple[int, int], ...] = ()

    @property
    def sizes(self) -> IntVector:
        """Number of players behind each node."""
        return np.bincount(self.group, minlength=self.graph.n_players)

    def contract(self, labels: IntVector) -> IntVector:
        """Return labels of the nodes for labels of the players: each node's first player's."""
        _, first = np.unique(self.group, return_index=True)
        return numbered(labels[first])

    def expand(self, labels: IntVector) -> IntVector:
        """Return labels of the players for labels of the nodes."""
        return labels[self.group]


def contract(graph: SynergyGraph, must_link: Pairs = (), cannot_link: Pairs = ()) -> Contraction:
    """Return the graph in which demanded pairs are one node and forbidden pairs are `FORBIDDEN`.

    The synergy of two nodes is the correctly rounded sum of those of their players: it does not
    depend on any order, so whoever checks a proof finds the same number.

    Raises
    ------
    InvalidInputError
        A pair names somebody who is not there, or has not two different players; or a sum is larger
        than a float can be.
    InfeasibleError
        Two players must be together and must not.
    """
    together = _checked_pairs(must_link, graph, "must_link")
    apart = _checked_pairs(cannot_link, graph, "cannot_link")
    n = graph.n_players
    if not len(together) and not len(apart):
        return Contraction(graph, np.arange(n))
    group = components(n, together[:, 0], together[:, 1])
    # Nodes are numbered by their first players, so that the order of players is kept.
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    group = rank[group]
    for a, b in apart:
        if group[a] == group[b]:
            raise InfeasibleError(
                f"{graph.labels[a]!r} and {graph.labels[b]!r} must not be together (cannot_link),"
                " but must_link puts them together; drop one of the two demands"
            )
    i, j, weight = graph.edges
    inside = group[i] == group[j]
    ends = _merged(group[i[~inside]], group[j[~inside]], weight[~inside], len(first))
    merged = SynergyGraph.from_edges(
        len(first), *_forbid(len(first), *ends, group[apart]), labels=_names(graph, group)
    )
    if not graph.is_sparse:
        merged = SynergyGraph(merged.matrix, merged.labels)
    return Contraction(
        merged, group, _precise_sum(weight[inside]), _tuples(together), _tuples(apart)
    )


def _precise_sum(weights: FloatVector) -> Fraction:
    """Return a sum as two floats added: itself, and what its rounding left out."""
    total = weight_sum(weights)
    return Fraction(total) + Fraction(weight_sum(np.append(weights, -total)))


def _tuples(pairs: IntVector) -> tuple[tuple[int, int], ...]:
    return tuple((a, b) for a, b in pairs.tolist())


def _checked_pairs(pairs: Pairs, graph: SynergyGraph, name: str) -> IntVector:
    checked = []
    number = numbering(graph, name)
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Iterable):
            raise InvalidInputError(f"{name} takes pairs of two different players, not {pair!r}")
        members = [number(player) for player in pair]
        if len(members) != 2 or members[0] == members[1]:
            raise InvalidInputError(f"{name} takes pairs of two different players, not {pair!r}")
        checked.append(members)
    return np.array(checked, np.int64).reshape(-1, 2)


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
