"""Connected components, and those of the positive edges: nothing is gained by joining two."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from coalitions.game import FloatMatrix, IntVector
from coalitions.graph import SynergyGraph
from coalitions.structure import CoalitionStructure
from solvers.solver import Answer, Limits, Progress


def components(n_players: int, i: IntVector, j: IntVector) -> IntVector:
    """Return the number of each player's connected component, counted by first members.

    Labels spread along all links at once, and everybody takes over the label of whom it points at:
    about log n rounds, a path being the worst.
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


@dataclass(frozen=True)
class Piece:
    """A component: its players in the whole graph, in ascending order, and its own graph."""

    players: IntVector
    graph: SynergyGraph


def positive_components(graph: SynergyGraph) -> list[Piece]:
    """Return the components of the positive edges that have two players or more."""
    i, j, weight = graph.edges
    if graph.is_sparse:
        part = components(graph.n_players, i[weight > 0], j[weight > 0])
    else:
        part = _components_of(graph.matrix)
    if not part.any() and graph.n_players > 1:
        return [Piece(np.arange(graph.n_players), graph)]
    players_by_part = np.argsort(part, kind="stable")
    counts = np.bincount(part)
    starts = np.cumsum(counts) - counts
    if not graph.is_sparse:
        members = (
            players_by_part[starts[p] : starts[p] + counts[p]] for p in np.flatnonzero(counts > 1)
        )
        return [Piece(players, graph.subgraph(players)) for players in members]
    # Sorting the edges once keeps this linear in a graph of many small components.
    inside = np.flatnonzero(part[i] == part[j])
    edges_by_part = inside[np.argsort(part[i[inside]], kind="stable")]
    edge_counts = np.bincount(part[i[inside]], minlength=len(counts))
    edge_starts = np.cumsum(edge_counts) - edge_counts
    place = np.empty(graph.n_players, np.int64)
    place[players_by_part] = np.arange(graph.n_players) - np.repeat(starts, counts)
    pieces = []
    for p in np.flatnonzero(counts > 1):
        players = players_by_part[starts[p] : starts[p] + counts[p]]
        own = edges_by_part[edge_starts[p] : edge_starts[p] + edge_counts[p]]
        names = [graph.labels[player] for player in players]
        piece = SynergyGraph.from_edges(
            len(players), place[i[own]], place[j[own]], weight[own], names
        )
        pieces.append(Piece(players, piece))
    return pieces


def _components_of(matrix: FloatMatrix) -> IntVector:
    """Return the number of each player's component of positive entries, by first members.

    Each row is looked at once, and none any more when everybody is known: in a graph of millions of
    edges that is after the first few.
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


class Tally:
    """The progress of the whole, put together from the progress of its pieces."""

    def __init__(self, pieces: list[Piece], constant: float, limits: Limits) -> None:
        self._pieces = pieces
        self._constant = constant
        self._limits = limits
        self._values = [0.0] * len(pieces)  # being alone is worth nothing
        self._bounds = [float(np.maximum(p.graph.edges.weight, 0).sum()) for p in pieces]

    def limits_of(self, number: int) -> Limits:
        """Return the limits for one piece, whose reports are added to those of the others."""
        report = self._limits.report
        if report is None:
            return self._limits

        def passed_on(progress: Progress) -> None:
            self._values[number], self._bounds[number] = progress.value, progress.bound
            report(
                Progress(
                    value=math.fsum(self._values) + self._constant,
                    bound=math.fsum(self._bounds) + self._constant,
                    seconds=progress.seconds,
                )
            )

        return replace(self._limits, report=passed_on)

    def close(self, number: int, answer: Answer) -> None:
        """Note the final figures of a piece."""
        if self._limits.report is not None:
            structure = CoalitionStructure.from_labels(answer.labels)
            self._values[number] = self._pieces[number].graph.value(structure)
            self._bounds[number] = answer.bound
