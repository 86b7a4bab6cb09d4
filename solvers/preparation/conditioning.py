r"""What every solver is handed: weights of a handy size, and none lower than it has to be.

Many write −1e16 for "never". Beside it 3 and 2 are the same number on any grid, and within any
tolerance that is relative to all weights. So weights are raised first. With :math:`P_i` the sum of
the positive weights of i and m the largest weight,

.. math:: w_{ij} < -(\min(P_i, P_j) + m)

is hopeless: in a coalition that holds both, the one with the smaller P gains more than m by
leaving, and no less than m with the right-hand side as the weight. No best structure changes, and a
bound on raised weights is a bound. If an answer joins such a pair nevertheless, the one who gains
by leaving leaves.

Where sizes are demanded, leaving may not be allowed. There a weight is hopeless only if all lesser
weights together cannot make up for it. What is found on raised weights is then the best of all, if
it joins no hopeless pair; if it does, the raised weights say nothing about which is the best.

Where coalitions may overlap, a coalition without i may be there already, so nobody can just leave.
There a pair is hopeless below −(P + m), with P the sum of all positive weights: a coalition that
holds it is worth less than nothing, and the best choice does without it.

Weights near the ends of the floats are multiplied by a power of two, which is exact.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from coalitions.game import FloatVector, IntVector
from coalitions.graph import SynergyGraph
from solvers.optimality import rounded_up
from solvers.preparation.scaling import decimals_of
from solvers.proofs.certificate import Certificate
from solvers.solver import Answer, Limits, Progress

HANDY = 400
"""Largest weights from 2^−400 to 2^400 stay as they are: squares of them and sums are floats."""


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A graph for a solver, and how its answers become answers for the graph it was made of.

    Attributes
    ----------
    graph
        The graph a solver gets.
    exponent
        Its weights are those of the graph it was made of, times 2^−exponent.
    i, j
        The pairs that were raised.
    gains
        P of each player.
    """

    graph: SynergyGraph
    exponent: int
    i: IntVector
    j: IntVector
    gains: FloatVector

    def limits(self, limits: Limits) -> Limits:
        """Return limits whose reports are in weights of the original graph."""
        report = limits.report
        if report is None or not self.exponent:
            return limits

        def passed_on(progress: Progress) -> None:
            value, bound = (_shifted(x, self.exponent) for x in (progress.value, progress.bound))
            report(Progress(value, bound, progress.seconds))

        return replace(limits, report=passed_on)

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

    def restored(self, answer: Answer) -> Answer:
        """Return the answer for the original graph, hopeless pairs apart."""
        prove = answer.prove
        if prove is not None and self.exponent:
            prove = functools.partial(_rescaled, answer, Fraction(2) ** self.exponent)
        bound = _shifted(answer.bound, self.exponent)
        return replace(answer, labels=self.parted(answer.labels), bound=bound, prove=prove)


def conditioned(graph: SynergyGraph) -> Conditioned:
    """Return a graph with a positive weight as solvers get it, where everybody may leave."""
    i, j, weight = graph.edges
    exponent = _exponent(float(weight.max()))
    weight = _scaled(weight, exponent)
    largest = float(weight.max())
    suspects = np.flatnonzero(weight < -largest)
    gains = np.zeros(graph.n_players)
    if not len(suspects):
        return _conditioned(graph, exponent, weight, suspects, gains)
    positive = np.maximum(weight, 0.0)
    for end in (i, j):
        gains += np.bincount(end, positive, minlength=graph.n_players)
    # Sums of floats may be off by a rounding, which is far below the largest weight.
    floor = -(np.minimum(gains[i[suspects]], gains[j[suspects]]) + largest)
    below = weight[suspects] < floor
    suspects, floor = suspects[below], floor[below]
    if not len(suspects):
        return _conditioned(graph, exponent, weight, suspects, gains)
    floor = _as_decimals(floor, np.delete(weight, suspects))
    below = weight[suspects] < floor
    hopeless = suspects[below]
    weight = weight.copy()
    weight[hopeless] = floor[below]
    return _conditioned(graph, exponent, weight, hopeless, gains)


def conditioned_for_sizes(
    graph: SynergyGraph, forbidden: tuple[tuple[int, int], ...]
) -> tuple[Conditioned, Conditioned]:
    """Return a graph as solvers get it where sizes are demanded: raised, and as it is.

    Both are the same if no weight is hopeless. The weights of `forbidden` pairs do not matter; the
    solver is told of them.
    """
    graph = _without(graph, forbidden)
    weight = graph.edges.weight
    floor = _floor_for_sizes(weight)
    nobody_leaves = np.zeros(graph.n_players)

    def lifted(hopeless: IntVector) -> Conditioned:
        left = weight.copy()
        left[hopeless] = floor
        exponent = _exponent(float(np.abs(left).max(initial=0.0)))
        return _conditioned(graph, exponent, _scaled(left, exponent), hopeless, nobody_leaves)

    plain = lifted(np.empty(0, np.int64))
    hopeless = np.flatnonzero(weight < floor)
    return (lifted(hopeless) if len(hopeless) else plain), plain


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


def _conditioned(
    graph: SynergyGraph,
    exponent: int,
    weight: FloatVector,
    hopeless: IntVector,
    gains: FloatVector,
) -> Conditioned:
    """Return the graph with new weights; `hopeless` are the numbers of edges that were raised."""
    i, j, _ = graph.edges
    ready = graph.with_weights(weight) if exponent or len(hopeless) else graph
    return Conditioned(ready, exponent, i[hopeless], j[hopeless], gains)


def _exponent(largest: float) -> int:
    """Return the power of two to divide by, 0 if the largest weight is handy as it is."""
    exponent = math.frexp(largest)[1]
    return exponent if abs(exponent) > HANDY else 0


def _scaled(weight: FloatVector, exponent: int) -> FloatVector:
    """Return weights times 2^−exponent, rounded up where that is below the smallest float."""
    if not exponent:
        return weight
    with np.errstate(over="ignore"):  # what falls below all floats is hopeless
        scaled = np.ldexp(weight, -exponent)
    lost = np.ldexp(scaled, exponent) < weight
    scaled[lost] = np.nextafter(scaled[lost], np.inf)
    return scaled


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
