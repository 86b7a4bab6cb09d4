r"""verify(graph, structure, certificate): check a proof in exact integers, without any solver.

Nothing is taken from the certificate but multipliers, branching pairs and claims; the weights come
from the graph. With a claimed bound B, a branch of the tree is checked as follows. Some nodes are
known to be together (one *group*), some groups to be apart. A stage gives multipliers y ≥ 0 of
inequalities that every structure obeys; with the reduced weights r = w − Aᵀy summed over groups,

.. math:: U = \sum y + \sum_{\text{inside groups}} r + \sum_{\text{undecided } e} \max(0, r_e)

is a bound, and U − |r_e| one for structures that decide e against the sign of r_e. If U ≤ B the
branch is closed. If U − |r_e| ≤ B, pair e is decided by its sign, for the other case is closed. A
branching pair that is still undecided opens two branches, and every leaf must be closed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import IntVector
from coalitions.graph import SynergyGraph
from coalitions.structure import CoalitionStructure
from solvers.certificate import Branch, Certificate, Part, Stage
from solvers.optimality import OPTIMALITY_TOLERANCE, is_optimal, positive_weight
from solvers.reductions import may_merge, merge, trimmed

SAFE = 1 << 62
"""Sums below this are exact in int64; above, Python's own integers are used."""


@dataclass(frozen=True)
class Verification:
    """What was checked.

    Attributes
    ----------
    value
        What the structure is worth.
    bound
        What no structure is worth more than; None if there was no certificate.
    optimal
        Whether that proves the structure; None if the bound was not checked.
    """

    value: float
    bound: float | None
    optimal: bool | None


def verify(
    graph: SynergyGraph, structure: CoalitionStructure, certificate: Certificate | None = None
) -> Verification:
    """Return the value of a structure and the bound that a certificate proves.

    Parameters
    ----------
    graph
        The graph, from which all weights are taken.
    structure
        The structure that is claimed to be the best one found.
    certificate
        The proof; without it only partition and value are checked.

    Raises
    ------
    InvalidInputError
        The certificate does not prove what it claims, or belongs to another graph or structure.
    """
    value = graph.value(structure)
    if certificate is None:
        return Verification(value, None, None)
    _check(
        certificate.n_players == graph.n_players,
        f"the certificate is for {certificate.n_players} players, the graph has {graph.n_players}",
    )
    gains = positive_weight(graph)
    tolerance = Fraction(OPTIMALITY_TOLERANCE) * Fraction(gains) / 4
    labels = structure.labels
    for a, b in certificate.must_link:
        _check(labels[a] == labels[b], f"players {a} and {b} must be together, but are apart")
    for a, b in certificate.cannot_link:
        _check(labels[a] != labels[b], f"players {a} and {b} must be apart, but are together")
    nodes = _all_nodes(certificate)
    inside, across = _between_nodes(graph, certificate, nodes)
    bound = inside
    first = 0
    for number, part in enumerate(certificate.parts):
        numbers = range(first, first + len(part.nodes))
        first += len(part.nodes)
        bound += _part_bound(number, part, across, numbers, nodes, labels, tolerance)
    exact = float(bound)
    if Fraction(exact) < bound:
        exact = math.nextafter(exact, math.inf)
    return Verification(value, exact, is_optimal(value, exact, gains))


def _check(condition: object, complaint: str) -> None:
    if not condition:
        raise InvalidInputError(f"the certificate is refused: {complaint}")


def _all_nodes(certificate: Certificate) -> list[tuple[int, ...]]:
    """Return the nodes of all parts, then a node for everybody else."""
    n = certificate.n_players
    nodes = [node for part in certificate.parts for node in part.nodes]
    players = [player for node in nodes for player in node]
    _check(all(nodes), "a node has no players")
    _check(len(set(players)) == len(players), "a player is in two nodes")
    _check(all(0 <= player < n for player in players), "a node names a player that is not there")
    linked = list(range(n))
    for a, b in certificate.must_link:
        _check(0 <= a < n and 0 <= b < n, "must_link names a player that is not there")
        one, two = linked[a], linked[b]
        linked = [one if group == two else group for group in linked]
    groups: dict[int, list[int]] = {}
    for player, group in enumerate(linked):
        groups.setdefault(group, []).append(player)
    demanded = {tuple(group) for group in groups.values()}
    _check(
        all(tuple(sorted(node)) in demanded for node in nodes),
        "a node is not one player, nor a set of players that must be together",
    )
    listed = set(players)
    return nodes + [group for group in sorted(demanded) if group[0] not in listed]


def _between_nodes(
    graph: SynergyGraph, certificate: Certificate, nodes: Sequence[tuple[int, ...]]
) -> tuple[Fraction, dict[tuple[int, int], Fraction | None]]:
    """Return the weight inside nodes, and the exact weights between them; None if forbidden.

    Pairs of nodes in different parts must not gain by being together.
    """
    n = graph.n_players
    node_of = [0] * n
    for number, node in enumerate(nodes):
        for player in node:
            node_of[player] = number
    part_of = [k for k, part in enumerate(certificate.parts) for _ in part.nodes]
    part_of += range(len(certificate.parts), len(certificate.parts) + len(nodes) - len(part_of))
    inside = Fraction(0)
    across: dict[tuple[int, int], Fraction | None] = {}
    i, j, weight = graph.edges
    for a, b, w in zip(i.tolist(), j.tolist(), weight.tolist(), strict=True):
        one, two = node_of[a], node_of[b]
        if one == two:
            inside += Fraction(w)
        else:
            pair = (one, two) if one < two else (two, one)
            across[pair] = (across.get(pair) or 0) + Fraction(w)
    for a, b in certificate.cannot_link:
        _check(0 <= a < n and 0 <= b < n, "cannot_link names a player that is not there")
        one, two = sorted((node_of[a], node_of[b]))
        _check(one != two, f"players {a} and {b} must be both together and apart")
        across[one, two] = None
    for (one, two), w in across.items():
        _check(
            w is None or w <= 0 or part_of[one] == part_of[two],
            f"players {nodes[one][0]} and {nodes[two][0]} gain by being together, but the proof"
            " treats them apart",
        )
    return inside, across


def _part_bound(
    number: int,
    part: Part,
    across: dict[tuple[int, int], Fraction | None],
    numbers: range,
    nodes: Sequence[tuple[int, ...]],
    labels: IntVector,
    tolerance: Fraction,
) -> Fraction:
    """Return the bound of one part after checking its proof."""
    _check(part.unit > 0, f"the unit of part {number} is not positive")
    n, first = len(numbers), numbers.start
    weights: Any = np.zeros((n, n), object)
    forbidden: list[tuple[int, int]] = []
    slack = Fraction(0)
    for (one, two), w in across.items():
        if first <= one < first + n and first <= two < first + n:
            a, b = one - first, two - first
            if w is None:
                forbidden.append((a, b))
                continue
            k = round(w / part.unit)
            weights[a, b] = weights[b, a] = k
    prohibitive = -(int(np.maximum(weights, 0).sum()) + 1)
    own = np.array([labels[node[0]] for node in nodes[first : first + n]])
    together = own[:, None] == own[None, :]
    found = int(weights[together].sum()) // 2
    # Sums of floats may have been rounded where players must be together.
    margin = int(tolerance / (part.unit * max(1, len(nodes))))
    _check(
        found >= part.value - margin,
        f"it was made for a structure worth more than this one (part {number}:"
        f" {float(part.unit * part.value)} against {float(part.unit * found)})",
    )
    # No best structure joins a pair of a prohibitive weight, so it stands for the demand.
    for a, b in forbidden:
        weights[a, b] = weights[b, a] = prohibitive
    weights = trimmed(weights)
    for (one, two), w in across.items():
        if w is not None and first <= one < first + n and first <= two < first + n:
            slack += max(Fraction(0), w - part.unit * int(weights[one - first, two - first]))
    if int(np.abs(weights).sum()) < SAFE:
        weights = weights.astype(np.int64)
    _Proof(part, weights, part.bound + margin, number).check()
    return part.unit * (part.bound + margin) + slack


class _Proof:
    """The proof of one part: integer weights of its nodes, and the claim to be checked."""

    def __init__(self, part: Part, weights: Any, claim: int, number: int) -> None:  # noqa: ANN401 (int64 or object)
        self.part = part
        self.weights = weights
        self.claim = claim
        self.name = f"part {number}"

    def check(self) -> None:
        """Walk through the tree; refuse it if a leaf stays open."""
        n, tree = len(self.weights), self.part.tree
        self._check_rows()
        _check(tree, f"{self.name} has no tree")
        groups = self._after_merges()
        open_branches: list[tuple[int, Any, Any]] = [(0, groups, np.zeros((n, n), np.bool_))]
        while open_branches:
            index, groups, apart = open_branches.pop()
            branch = tree[index]
            state = self._after_stages(branch, groups, apart)
            if state is None:
                continue
            groups, apart = state
            _check(branch.pair is not None, f"{self.name} leaves branch {index} open")
            open_branches += self._cases(index, branch, groups, apart)

    def _check_rows(self) -> None:
        """Refuse anything that is not a 2-partition inequality of the nodes."""
        n, triangles, cuts = len(self.weights), self.part.triangles, self.part.cuts
        _check(
            triangles.ndim == 2
            and triangles.shape[1] == 3
            and bool(((triangles >= 0) & (triangles < n)).all())
            and not (triangles[:, [0, 0, 1]] == triangles[:, [1, 2, 2]]).any(),
            f"{self.name} has a triangle that is none",
        )
        there = cuts >= 0
        ordered = np.sort(np.where(there, cuts, n + np.arange(cuts.shape[1])), axis=1)
        _check(
            cuts.ndim == 2
            and not (there[:, 1:] & ~there[:, :-1]).any()
            and bool((there.sum(axis=1) >= 2).all())
            and bool(((cuts >= -1) & (cuts < n)).all())
            and not (ordered[:, 1:] == ordered[:, :-1]).any(),
            f"{self.name} has a cut that is none",
        )

    def _after_merges(self) -> Any:  # noqa: ANN401 (int[n])
        """Return the group of each node after the mergers, each of which must obey a rule."""
        n = len(self.weights)
        groups = np.arange(n)
        if not self.part.merges:
            return groups
        left = self.weights.copy()
        gone: set[int] = set()
        for i, j in self.part.merges:
            _check(
                0 <= i < n and 0 <= j < n and i != j and not {i, j} & gone,
                f"{self.name} merges nodes {i} and {j}, which are not there",
            )
            _check(may_merge(left, i, j), f"{self.name} merges nodes {i} and {j} without reason")
            merge(left, i, j)
            gone.add(j)
            groups[groups == groups[j]] = groups[i]
        return groups

    def _after_stages(self, branch: Branch, groups: Any, apart: Any) -> tuple[Any, Any] | None:  # noqa: ANN401
        """Return groups and pairs apart after the stages of a branch, or None if they close it."""
        for stage in branch.stages:
            total, scale, reduced = self._reduced(stage)
            state = self._decided(total, scale, reduced, groups, apart)
            if state is None:
                return None
            groups, apart = state
        # Multipliers of zero close a branch in which everything is decided.
        return self._decided(0, 1, self.weights, groups, apart)

    def _reduced(self, stage: Stage) -> tuple[int, int, Any]:
        """Return Σy, the scale and the reduced weights above and below the diagonal."""
        _check(0 <= stage.bits <= 64, f"{self.name} has a stage with {stage.bits} bits")
        part, rows, values = self.part, stage.rows, stage.values
        _check(
            len(rows) == len(values)
            and bool((rows >= 0).all())
            and bool((rows < len(part.triangles) + len(part.cuts)).all())
            and bool((values >= 0).all()),
            f"{self.name} has a stage with wrong rows or negative multipliers",
        )
        scale = 1 << stage.bits
        total = sum(values.tolist())
        longest = max(3, part.cuts.shape[1])
        heaviest = total * longest * longest + scale * int(np.abs(self.weights).sum())
        kind: Any = np.int64 if heaviest < SAFE else object
        reduced = self.weights.astype(kind) * scale
        y = values.astype(kind)
        is_triangle = rows < len(part.triangles)
        c, i, k = part.triangles[rows[is_triangle]].T
        for one, two, sign in ((c, i, -1), (c, k, -1), (i, k, 1)):
            np.add.at(reduced, (one, two), sign * y[is_triangle])
            np.add.at(reduced, (two, one), sign * y[is_triangle])
        cuts, y = part.cuts[rows[~is_triangle] - len(part.triangles)], y[~is_triangle]
        for p in range(cuts.shape[1]):
            for q in range(p):
                there = cuts[:, p] >= 0
                one, two, by = cuts[there, p], cuts[there, q], y[there]
                by = -by if q == 0 else by
                np.add.at(reduced, (one, two), by)
                np.add.at(reduced, (two, one), by)
        return total, scale, reduced

    def _decided(
        self,
        total: int,
        scale: int,
        reduced: Any,  # noqa: ANN401 (int64 or object)
        groups: Any,  # noqa: ANN401 (int[n])
        apart: Any,  # noqa: ANN401 (bool[n, n])
    ) -> tuple[Any, Any] | None:
        """Return groups and pairs apart after pegging, or None if nothing is above the claim."""
        n = len(groups)
        names, number = np.unique(groups, return_inverse=True)
        m = len(names)
        member = np.zeros((m, n), np.int64)
        member[number, np.arange(n)] = 1
        between = _sums(reduced, number, m)
        forbidden = (member @ apart.astype(np.int64) @ member.T) > 0
        inside = int(between.diagonal().sum()) // 2
        np.fill_diagonal(between, 0)
        undecided = np.triu(~forbidden, 1)
        bound = total + inside + int(np.maximum(between[undecided], 0).sum())
        # Whole numbers: above the claim means at least one more.
        enough = bound - (self.claim + 1) * scale
        if enough < 0:
            return None
        pegs = undecided & (np.abs(between) > enough)
        positive = pegs & (between > 0)
        forbidden |= pegs & ~positive
        forbidden |= forbidden.T
        groups = groups.copy()
        for one, two in np.argwhere(positive):
            old, new = groups[member[two] > 0][0], groups[member[one] > 0][0]
            groups[groups == old] = new
        apart = forbidden[number][:, number]
        if (apart & (groups[:, None] == groups[None, :])).any():
            return None
        return groups, apart

    def _cases(
        self,
        index: int,
        branch: Branch,
        groups: Any,  # noqa: ANN401 (int[n])
        apart: Any,  # noqa: ANN401 (bool[n, n])
    ) -> list[tuple[int, Any, Any]]:
        """Return the two cases of a branching pair, or the one that is possible."""
        assert branch.pair is not None
        i, j = branch.pair
        n, size = len(groups), len(self.part.tree)
        _check(0 <= i < n and 0 <= j < n and i != j, f"{self.name} branches on no pair")
        for case in (branch.together, branch.apart):
            _check(
                case is not None and index < case < size,
                f"{self.name} has a branch without its two cases",
            )
        assert branch.together is not None
        assert branch.apart is not None
        in_i, in_j = groups == groups[i], groups == groups[j]
        cases: list[tuple[int, Any, Any]] = []
        if not apart[np.ix_(in_i, in_j)].any():
            cases.append((branch.together, np.where(in_j, groups[i], groups), apart))
        if groups[i] != groups[j]:
            parted = apart.copy()
            parted[i, j] = parted[j, i] = True
            cases.append((branch.apart, groups, parted))
        return cases


def _sums(matrix: Any, number: IntVector, m: int) -> Any:  # noqa: ANN401 (int64 or object)
    """Return the sums of a matrix over groups of rows and of columns."""
    order = np.argsort(number, kind="stable")
    starts = np.searchsorted(number[order], np.arange(m))
    rows = np.add.reduceat(matrix[order], starts, axis=0)
    return np.add.reduceat(rows[:, order], starts, axis=1)
