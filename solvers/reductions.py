r"""Reductions: what is done to a graph before a method sees it, and undone in its answer.

Each reduction is a class with `apply` and `invert`. `apply` makes the simpler graph, or weights.
`invert` turns an answer on that into an answer on the original; what it needs are arrays and
numbers, so a reduction can be pickled.
(`Contraction`, of players that must be together, is in `solvers.demands`.)

**Components.** Nothing is gained by joining players that no positive edge connects, so every
component of the positive edges is a problem of its own.

**Conditioning.** Many users write −1e16 for "never". Beside it 3 and 2 are the same number on any
grid, and within any tolerance that is relative to all weights. So weights are raised first. With
:math:`P_i` the sum of the positive weights of i and m the largest weight,

.. math:: w_{ij} < -(\min(P_i, P_j) + m)

is hopeless: in a coalition that holds both, the one with the smaller P gains more than m by
leaving, and no less than m with the right-hand side as the weight. No best structure changes, and a
bound on raised weights is a bound. If an answer joins such a pair nevertheless, the player that
gains by leaving leaves.

If sizes are demanded, leaving may not be allowed. A weight is then hopeless only if all lesser
weights together cannot make up for it. What is found on raised weights is then the best of all, if
it joins no hopeless pair; if it does, the raised weights say nothing about which is the best.

If coalitions may overlap, a coalition without i may exist already, so i cannot just leave. Then
a pair is hopeless below −(P + m), with P the sum of all positive weights: a coalition that holds it
is worth less than nothing, and the best choice does without it.

Weights near the ends of the floats are multiplied by a power of two, which is exact.

**Whole numbers.** Integers, and decimals such as 0.25 or -0.1, become the smallest integers that
stand in the same ratio, so that a bound on them can be rounded down to the next whole number.
Anything else is rounded to a grid so fine that the sum of all roundings is far below the tolerance
of a proof.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from coalitions.game import FloatMatrix, FloatVector, IntVector
from coalitions.graph import SynergyGraph
from coalitions.structure import CoalitionStructure
from solvers.optimality import rounded_up
from solvers.proofs.certificate import Certificate, Part
from solvers.solver import Answer, Limits, SearchProgress

# ----------------------------------------------------------------------------------------
# Components


def components(n_players: int, i: IntVector, j: IntVector) -> IntVector:
    """Return the number of each player's connected component, counted by first members.

    Labels spread along all links at once, and each player takes the label of the player that its
    label names. That takes about log n rounds; a path is the worst case.
    """
    label = np.arange(n_players)
    while True:
        one, two = label[i], label[j]
        smaller = np.minimum(one, two)
        np.minimum.at(label, one, smaller)
        np.minimum.at(label, two, smaller)
        label = label[label]
        if (label[i] == label[j]).all():
            return numbered(label)


def numbered(labels: IntVector) -> IntVector:
    """Return the same partition with blocks numbered 0 … k−1."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Components:
    """The components of the positive edges that have two players or more.

    Attributes
    ----------
    n_players
        Number of players of the whole graph.
    players
        The players of each component, in ascending order.
    graphs
        The graph of each component.
    """

    n_players: int
    players: tuple[IntVector, ...]
    graphs: tuple[SynergyGraph, ...]

    @classmethod
    def apply(cls, graph: SynergyGraph) -> Components:
        """Return the components of a graph."""
        n = graph.n_players
        i, j, weight = graph.edges
        if graph.is_sparse:
            part = components(n, i[weight > 0], j[weight > 0])
        else:
            part = _components_of(graph.matrix)
        if not part.any() and n > 1:
            return cls(n, (np.arange(n),), (graph,))
        players_by_part = np.argsort(part, kind="stable")
        counts = np.bincount(part)
        starts = np.cumsum(counts) - counts
        several = np.flatnonzero(counts > 1)
        players = tuple(players_by_part[starts[p] : starts[p] + counts[p]] for p in several)
        if not graph.is_sparse:
            return cls(n, players, tuple(graph.subgraph(own) for own in players))
        # Sorting the edges once keeps this linear in a graph of many small components.
        inside = np.flatnonzero(part[i] == part[j])
        edges_by_part = inside[np.argsort(part[i[inside]], kind="stable")]
        edge_counts = np.bincount(part[i[inside]], minlength=len(counts))
        edge_starts = np.cumsum(edge_counts) - edge_counts
        place = np.empty(n, np.int64)
        place[players_by_part] = np.arange(n) - np.repeat(starts, counts)
        graphs = []
        for p, own in zip(several, players, strict=True):
            edges = edges_by_part[edge_starts[p] : edge_starts[p] + edge_counts[p]]
            names = [graph.labels[player] for player in own]
            graphs.append(
                SynergyGraph.from_edges(
                    len(own), place[i[edges]], place[j[edges]], weight[edges], names
                )
            )
        return cls(n, players, tuple(graphs))

    def invert(self, answers: Sequence[Answer]) -> Answer:
        """Return the answer for the whole graph from one for each component.

        All other players are alone. There is a certificate if each of the answers has one.
        """
        labels = np.arange(self.n_players)
        stats: dict[str, Any] = {"components": len(answers)}
        for players, answer in zip(self.players, answers, strict=True):
            # A coalition is named after its first player: no name is given in two components.
            _, first, block = np.unique(answer.labels, return_index=True, return_inverse=True)
            labels[players] = players[first[block]]
            for key, figure in answer.stats.items():
                added = isinstance(figure, int | float) and not isinstance(figure, bool)
                stats[key] = stats.get(key, 0) + figure if added else figure
        proven = all(answer.prove is not None for answer in answers)
        return Answer(
            labels,
            math.fsum(answer.bound for answer in answers),
            stats,
            functools.partial(_joined, self.n_players, self.players, answers) if proven else None,
        )


def _joined(
    n_players: int, players: Sequence[IntVector], answers: Sequence[Answer]
) -> Certificate | None:
    """Return the certificate of the whole graph from those of its components."""
    parts: list[Part] = []
    for own, answer in zip(players, answers, strict=True):
        if answer.certificate is None:
            return None
        parts += answer.certificate.placed(own.reshape(-1, 1).tolist(), n_players).parts
    return Certificate(n_players, tuple(parts))


def _components_of(matrix: FloatMatrix) -> IntVector:
    """Return the number of each player's component of positive entries, by first members.

    Each row is read once, and reading stops when the components of all players are known. In a
    graph of millions of edges that is after the first few rows.
    """
    part = np.zeros(len(matrix), np.int64)
    unknown = np.ones(len(matrix), np.bool_)
    left, number = len(matrix), 0
    while left:
        first = int(unknown.argmax())
        part[first] = number
        unknown[first] = False
        left -= 1
        waiting = [first]
        while waiting and left:
            new = ((matrix[waiting.pop()] > 0.0) & unknown).nonzero()[0]
            part[new] = number
            unknown[new] = False
            left -= len(new)
            waiting += new.tolist()
        number += 1
    return part


def settled(graph: SynergyGraph) -> Answer | None:
    """Return the answer of a component without any negative edge, which is to be together."""
    weight = graph.edges.weight
    if (weight < 0).any():
        return None
    return Answer(np.zeros(graph.n_players, np.int64), math.fsum(weight.tolist()))


class ComponentsProgress:
    """The progress of the whole graph: the sum of the progress of its components."""

    def __init__(self, graphs: Sequence[SynergyGraph], constant: float, limits: Limits) -> None:
        self._graphs = graphs
        self._constant = constant
        self._limits = limits
        self._values = [0.0] * len(graphs)  # being alone is worth nothing
        self._bounds = [float(np.maximum(graph.edges.weight, 0).sum()) for graph in graphs]

    def limits_of(self, number: int) -> Limits:
        """Return limits for one component; its reports are added to those of the others."""
        report = self._limits.report
        if report is None:
            return self._limits

        def passed_on(progress: SearchProgress) -> None:
            self._values[number], self._bounds[number] = progress.value, progress.bound
            report(
                SearchProgress(
                    value=math.fsum(self._values) + self._constant,
                    bound=math.fsum(self._bounds) + self._constant,
                    seconds=progress.seconds,
                )
            )

        return replace(self._limits, report=passed_on)

    def close(self, number: int, answer: Answer) -> None:
        """Note the final figures of a component."""
        if self._limits.report is not None:
            structure = CoalitionStructure.from_labels(answer.labels)
            self._values[number] = self._graphs[number].value(structure)
            self._bounds[number] = answer.bound


# ----------------------------------------------------------------------------------------
# Conditioning: hopeless weights are raised, extreme magnitudes scaled.

HANDY = 400
"""Largest weights from 2^−400 to 2^400 stay as they are: squares of them and sums are floats."""


@dataclass(frozen=True, eq=False)
class Scale:
    """The power of two, 2^exponent, by which weights are divided; 1 for ordinary weights."""

    exponent: int

    @classmethod
    def of(cls, largest: float) -> Scale:
        """Return the scale on which the largest weight is about 1."""
        exponent = math.frexp(largest)[1]
        return cls(exponent if abs(exponent) > HANDY else 0)

    def apply(self, weight: FloatVector) -> FloatVector:
        """Return weights on this scale, rounded up if that is below the smallest float."""
        exponent = self.exponent
        if not exponent:
            return weight
        with np.errstate(over="ignore"):  # what falls below all floats is hopeless
            scaled = np.ldexp(weight, -exponent)
        lost = np.ldexp(scaled, exponent) < weight
        scaled[lost] = np.nextafter(scaled[lost], np.inf)
        return scaled

    def invert(self, answer: Answer) -> Answer:
        """Return an answer whose bound and certificate are in original weights."""
        if not self.exponent:
            return answer
        prove = answer.prove
        if prove is not None:
            prove = functools.partial(_rescaled, answer, Fraction(2) ** self.exponent)
        return replace(answer, bound=_shifted(answer.bound, self.exponent), prove=prove)

    def limits(self, limits: Limits) -> Limits:
        """Return limits whose reports are in original weights."""
        report, exponent = limits.report, self.exponent
        if report is None or not exponent:
            return limits

        def passed_on(progress: SearchProgress) -> None:
            value, bound = (_shifted(x, exponent) for x in (progress.value, progress.bound))
            report(SearchProgress(value, bound, progress.seconds))

        return replace(limits, report=passed_on)


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A graph for a solver: hopeless weights raised, extreme magnitudes scaled.

    Attributes
    ----------
    graph
        The graph a solver gets.
    scale
        The scale of its weights.
    i, j
        The pairs that were raised.
    gains
        P of each player: what it can gain at most.
    """

    graph: SynergyGraph
    scale: Scale
    i: IntVector
    j: IntVector
    gains: FloatVector

    @classmethod
    def apply(cls, graph: SynergyGraph) -> Conditioned:
        """Return a graph with a positive weight as solvers get it, where everybody may leave."""
        i, j, weight = graph.edges
        scale = Scale.of(float(weight.max()))
        weight = scale.apply(weight)
        largest = float(weight.max())
        hopeless = np.flatnonzero(weight < -largest)  # a superset, so far
        gains = np.zeros(graph.n_players)
        if len(hopeless):
            positive = np.maximum(weight, 0.0)
            for end in (i, j):
                gains += np.bincount(end, positive, minlength=graph.n_players)
            # Sums of floats may be off by a rounding, which is far below the largest weight.
            floor = -(np.minimum(gains[i[hopeless]], gains[j[hopeless]]) + largest)
            below = weight[hopeless] < floor
            hopeless, floor = hopeless[below], floor[below]
        if len(hopeless):
            floor = _as_decimals(floor, np.delete(weight, hopeless))
            below = weight[hopeless] < floor
            hopeless = hopeless[below]
            weight = weight.copy()
            weight[hopeless] = floor[below]
        return cls._with(graph, scale, weight, hopeless, gains)

    @classmethod
    def apply_for_sizes(
        cls, graph: SynergyGraph, forbidden: tuple[tuple[int, int], ...]
    ) -> tuple[Conditioned, Conditioned]:
        """Return a graph as solvers get it where sizes are demanded: raised, and not raised.

        Both are the same if no weight is hopeless. The weights of `forbidden` pairs do not matter:
        solvers get these pairs as demands.
        """
        graph = _without(graph, forbidden)
        weight = graph.edges.weight
        floor = _floor_for_sizes(weight)
        nobody_leaves = np.zeros(graph.n_players)

        def raised(hopeless: IntVector) -> Conditioned:
            left = weight.copy()
            left[hopeless] = floor
            scale = Scale.of(float(np.abs(left).max(initial=0.0)))
            return cls._with(graph, scale, scale.apply(left), hopeless, nobody_leaves)

        plain = raised(np.empty(0, np.int64))
        hopeless = np.flatnonzero(weight < floor)
        return (raised(hopeless) if len(hopeless) else plain), plain

    @classmethod
    def _with(
        cls,
        graph: SynergyGraph,
        scale: Scale,
        weight: FloatVector,
        hopeless: IntVector,
        gains: FloatVector,
    ) -> Conditioned:
        """Return a graph with new weights; `hopeless` has the numbers of the raised edges."""
        i, j, _ = graph.edges
        ready = graph.with_weights(weight) if scale.exponent or len(hopeless) else graph
        return cls(ready, scale, i[hopeless], j[hopeless], gains)

    def joins_hopeless(self, labels: IntVector) -> bool:
        """Tell whether a structure has a hopeless pair together."""
        return bool((labels[self.i] == labels[self.j]).any())

    def parted(self, labels: IntVector) -> IntVector:
        """Return a structure without hopeless pairs that is worth as much, or more if it had any.

        Of each pair, the one who can gain less leaves.
        """
        together = labels[self.i] == labels[self.j]
        if not together.any():
            return labels
        labels = labels.copy()
        empty = int(labels.max()) + 1
        for a, b in zip(self.i[together].tolist(), self.j[together].tolist(), strict=True):
            if labels[a] == labels[b]:
                labels[a if self.gains[a] <= self.gains[b] else b] = empty
                empty += 1
        return labels

    def invert(self, answer: Answer) -> Answer:
        """Return the answer for the original graph, hopeless pairs apart."""
        return replace(self.scale.invert(answer), labels=self.parted(answer.labels))


def _floor_for_sizes(weight: FloatVector) -> float:
    """Return −2·L for the least loss above 4·L, where L is the sum of all lesser |weights|.

    With all losses from that one on at −2·L, a structure that joins such a pair is worth at most
    Σ⁺ − 2·L, and one that does not at least Σ⁺ − L. Minus infinity if there is no such loss.
    """
    with np.errstate(over="ignore"):
        losses = np.sort(-weight[weight < 0])
        lesser = np.concatenate(([0.0], np.cumsum(losses[:-1])))[: len(losses)]
        lesser += weight[weight > 0].sum()
        outstanding = np.flatnonzero((lesser > 0.0) & (losses > 4.0 * lesser))
    if not len(outstanding):
        return -math.inf
    first = outstanding[0]
    return float(_as_decimals(-2.0 * lesser[first : first + 1], weight[weight > -losses[first]])[0])


def conditioned_for_overlap(graph: SynergyGraph, cost: float) -> tuple[FloatVector, float]:
    """Return the weights of the edges, and the cost of a membership, where coalitions may overlap.

    Weights of hopeless pairs are raised. No member gains more than P inside a coalition, so a cost
    above P keeps everybody out, whatever it is: it is lowered to about P.
    """
    weight = graph.edges.weight
    gains = graph.positive_weight
    with np.errstate(over="ignore"):  # nothing is below minus infinity
        floors = -np.array([gains + weight.max(initial=0.0), gains])
    ordinary = weight >= floors[0]
    kept = weight[ordinary]
    if cost <= gains:
        kept = np.append(kept, cost)
    if gains > 0:
        floors = _as_decimals(floors, kept)
    raised = np.where(ordinary, weight, np.maximum(weight, floors[0]))
    return raised, min(cost, -float(floors[1]))


def _shifted(number: float, exponent: int) -> float:
    """Return a number times 2^exponent, rounded up."""
    if not exponent or not math.isfinite(number):
        return number
    return rounded_up(Fraction(number) * Fraction(2) ** exponent)


def _as_decimals(floor: FloatVector, others: FloatVector) -> FloatVector:
    """Return a floor, lowered to as many decimals as the other weights have.

    Whole numbers stay whole numbers and decimals stay decimals, so that they become small integers.
    """
    decimals = decimals_of(others)
    if decimals is None:
        return floor
    lowered: FloatVector = np.floor(floor * 10.0**decimals) / 10.0**decimals
    return lowered


def _without(graph: SynergyGraph, pairs: tuple[tuple[int, int], ...]) -> SynergyGraph:
    """Return a graph in which some pairs are worth nothing."""
    if not pairs:
        return graph
    i, j, weight = graph.edges
    ends = np.sort(np.array(pairs), axis=1)
    keys = ends[:, 0] * graph.n_players + ends[:, 1]
    return graph.with_weights(np.where(np.isin(i * graph.n_players + j, keys), 0.0, weight))


def _rescaled(answer: Answer, factor: Fraction) -> Certificate | None:
    """Return the certificate of an answer with its units multiplied."""
    certificate = answer.certificate
    if certificate is None:
        return None
    parts = tuple(replace(part, unit=part.unit * factor) for part in certificate.parts)
    teams = certificate.teams
    if teams is not None:
        teams = replace(teams, unit=teams.unit * factor)
    return replace(certificate, parts=parts, teams=teams)


# ----------------------------------------------------------------------------------------
# Whole numbers, with an account of what rounding leaves out.

MAX_DECIMALS = 9
EXACT_BITS = 50
"""Decimals are taken as they are as long as their integers stay below 2^50 in sum."""

GAIN_BITS, GRID_BITS = 53, 58
"""In a rounded graph the positive integers stay below 2^53 in sum, so that multipliers have room in
int64, and all of them below 2^58. In a graph of few friends and many foes nearly all of the slack
comes from the foes, who hardly need room: there the second number makes it small."""

LEAST_EXPONENT = -1074
"""Every float is a multiple of 2^−1074."""

SAMPLE = 1000
"""So many weights tell at once that a graph does not consist of decimals."""


@dataclass(frozen=True)
class ScaledWeights:
    r"""Integers k and a unit u with w ≈ u·k.

    For every set of pairs E, :math:`\sum_E w_e \le u \sum_E k_e + \text{slack}`: a bound on the
    integers is a bound on the weights.
    """

    integers: IntVector
    unit: Fraction
    slack: float

    def bound(self, integer_bound: int) -> float:
        """Return the bound on the weights that a bound on the integers implies, rounded up."""
        return rounded_up(self.unit * integer_bound + Fraction(self.slack))


def integer_weights(weights: FloatVector) -> ScaledWeights:
    """Return integers in the ratio of `weights`, exactly if they are decimals, else nearly.

    Each integer is the whole number nearest to weight / unit, ties to even.

    Examples
    --------
    >>> integer_weights(np.array([0.3, -0.1])).integers
    array([ 3, -1])
    """
    largest = float(np.abs(weights).max(initial=0.0))
    if largest == 0.0:
        return ScaledWeights(np.zeros(len(weights), np.int64), Fraction(1), 0.0)
    decimals = decimals_of(weights)
    if decimals is not None:
        grid = np.rint(weights * 10.0**decimals)
        return _reduced(weights, grid, Fraction(1, 10**decimals))
    # Near the end of the floats only the ratio to the largest has a sum.
    size = math.frexp(largest)[1]
    ratio = np.ldexp(weights, -size)
    gains, total = float(ratio[ratio > 0].sum()), float(np.abs(ratio).sum())
    exponent = max(math.frexp(gains)[1] - GAIN_BITS, math.frexp(total)[1] - GRID_BITS) + size
    exponent = max(exponent, LEAST_EXPONENT)
    grid = np.rint(np.ldexp(weights, -exponent))
    return _reduced(weights, grid, Fraction(2) ** exponent)


def decimals_of(weights: FloatVector) -> int | None:
    """Return how many decimals all weights have, or None if they have more than fit.

    Examples
    --------
    >>> decimals_of(np.array([0.25, -3.0])), decimals_of(np.array([1 / 3]))
    (2, None)
    """
    with np.errstate(over="ignore"):
        total = float(np.abs(weights).sum())  # a rounding off is far within what is left
    first = float(weights[0]) if len(weights) else 0.0
    for decimals in range(MAX_DECIMALS + 1):
        scale = 10.0**decimals
        if total * scale >= 2.0**EXACT_BITS:
            return None
        if round(first * scale) / scale != first:  # one number tells most odd floats at once
            continue
        # Division rounds correctly, so equality says: these floats are those decimals.
        if all(
            np.array_equal(np.rint(some * scale) / scale, some)
            for some in (weights[:SAMPLE], weights[SAMPLE:])
        ):
            return decimals
    return None


def _reduced(weights: FloatVector, grid: FloatVector, unit: Fraction) -> ScaledWeights:
    """Divide the integers by what they have in common, and bound what they fall short of."""
    integers = grid.astype(np.int64)
    common = int(np.gcd.reduce(integers)) or 1
    if unit.denominator & (unit.denominator - 1):
        # Each weight is the float nearest to its decimal: at most half a spacing away from it, and
        # not at all if the decimal is a fraction of a power of two, as 0.25 is.
        fives = 5 ** (len(str(unit.denominator)) - 1)
        short = np.where(integers % fives == 0, 0.0, np.spacing(np.abs(weights)) / 2)
    else:
        # Floats and grid are both multiples of a power of two, so this difference is exact.
        short = np.maximum(weights - grid * float(unit), 0.0)
    # Rounded up by far more than a sum of floats can be off.
    slack = float(short.sum()) * (1.0 + 1e-9)
    return ScaledWeights(integers // common, unit * common, slack)
