"""The flow game: pipes of several owners, and what can flow through those of a coalition."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from coalitions.errors import InvalidInputError, shown
from coalitions.game import BoolMatrix, FloatMatrix, FloatVector
from coalitions.problems.named import NamedGame

CUT_NODES = 10
"""Up to this many nodes between source and sink all cuts are looked at, a matrix product each."""

Arc = tuple[Hashable, Hashable, float, Hashable | None]


def flow_game(arcs: Iterable[Arc], source: Hashable, sink: Hashable) -> FlowGame:
    """Return the game in which a coalition is worth the largest flow through its own arcs.

    Parameters
    ----------
    arcs
        Each (from, to, capacity, owner); the owner None stands for everybody. A player may own
        several. Players are numbered in the order of their first arc.
    source, sink
        Where the flow begins and where it ends.

    Notes
    -----
    Such games, and their subgames, have a core: the owners of a smallest cut share the flow
    [Kalai1982]_.

    Examples
    --------
    >>> pipes = [("s", "a", 3, "ann"), ("a", "t", 2, "bob"), ("s", "t", 1, "cleo")]
    >>> game = flow_game(pipes, "s", "t")
    >>> game([[1, 1, 0], [0, 1, 1], [1, 1, 1]])
    array([2., 1., 3.])
    """
    checked: list[Arc] = []
    for arc in arcs:
        try:
            start, end, capacity, owner = arc
            size = float(capacity)
        except (TypeError, ValueError):
            raise InvalidInputError(
                f"{shown(arc)} is no arc; expected (from, to, capacity, owner)"
            ) from None
        if not (np.isfinite(size) and size >= 0):
            raise InvalidInputError(
                f"the arc from {shown(start)} to {shown(end)} has capacity {shown(capacity)};"
                " it must be a finite number of at least 0"
            )
        for node in (start, end):
            _check_node(node)
        checked.append((start, end, size, None if owner is None else str(owner)))
    nodes = dict.fromkeys(node for start, end, _, _ in checked for node in (start, end))
    for name, node in (("source", source), ("sink", sink)):
        _check_node(node)
        if node not in nodes:
            raise InvalidInputError(f"no arc touches the {name} {shown(node)}")
    if source == sink:
        raise InvalidInputError(f"source and sink are both {shown(source)}; they must differ")
    labels = tuple(dict.fromkeys(str(owner) for _, _, _, owner in checked if owner is not None))
    if not labels:
        raise InvalidInputError("no arc has an owner, so there are no players")
    return FlowGame(checked, source, sink, labels)


def _check_node(node: object) -> None:
    try:
        hash(node)
    except TypeError:
        raise InvalidInputError(
            f"the node {shown(node)} is a {type(node).__name__}; nodes are names or numbers"
        ) from None


class FlowGame(NamedGame):
    """The game of the largest flow; see `flow_game`."""

    def __init__(
        self, arcs: Sequence[Arc], source: Hashable, sink: Hashable, labels: tuple[str, ...]
    ) -> None:
        self.arcs = tuple(arcs)
        self.source = source
        self.sink = sink
        self.labels = labels

    def _values(self, rows: BoolMatrix) -> FloatVector:
        nodes = {node for start, end, _, _ in self.arcs for node in (start, end)}
        if len(nodes) - 2 <= CUT_NODES:
            return self._smallest_cuts(rows)
        return np.array([self._largest_flow(row) for row in rows], np.float64)

    def _smallest_cuts(self, rows: BoolMatrix) -> FloatVector:
        """Return the capacity of the smallest cut of each row, which is the largest flow."""
        cuts = self._cuts()
        with_public = np.concatenate([rows, np.ones((len(rows), 1), np.bool_)], axis=1)
        values = np.full(len(rows), np.inf)
        for cut in cuts:  # sums in one order, whatever the number of rows: no matrix product
            values = np.minimum(values, np.where(with_public, cut, 0.0).sum(axis=1))
        return values

    def _cuts(self) -> FloatMatrix:
        """Return what each owner, and last the public, adds to each cut [2^k, n + 1]."""
        ends = dict.fromkeys(node for start, end, _, _ in self.arcs for node in (start, end))
        inner = [node for node in ends if node not in (self.source, self.sink)]
        sides = np.arange(1 << len(inner))
        beside_source = {node: (sides >> k & 1).astype(bool) for k, node in enumerate(inner)}
        beside_source[self.source] = np.ones(len(sides), np.bool_)
        beside_source[self.sink] = np.zeros(len(sides), np.bool_)
        column = {owner: k for k, owner in enumerate(self.labels)}
        cuts = np.zeros((len(sides), self.n_players + 1))
        for start, end, capacity, owner in self.arcs:
            crossing = beside_source[start] & ~beside_source[end]
            place = self.n_players if owner is None else column[str(owner)]
            cuts[:, place] += np.where(crossing, capacity, 0.0)
        return cuts

    def _largest_flow(self, row: BoolMatrix) -> float:
        import networkx

        members = {label for label, there in zip(self.labels, row, strict=True) if there}
        graph = networkx.DiGraph()
        graph.add_nodes_from((self.source, self.sink))
        for start, end, capacity, owner in self.arcs:
            if owner is None or owner in members:
                before = graph.get_edge_data(start, end, {"capacity": 0.0})["capacity"]
                graph.add_edge(start, end, capacity=before + capacity)
        return float(networkx.maximum_flow_value(graph, self.source, self.sink))
