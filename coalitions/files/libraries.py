"""Graphs of other libraries: networkx, igraph and pandas, none of which is imported."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coalitions.errors import InvalidInputError, shown
from coalitions.files.pairs import graph_of_pairs, pair_columns
from coalitions.formatting import composed
from coalitions.graph import SynergyGraph, Treatment
from coalitions.structure import Nodes

if TYPE_CHECKING:
    import networkx as nx


def matrix_of(
    thing: Any,  # noqa: ANN401 (anything a user may have)
    labels: Iterable[Hashable] | None,
    treatment: Treatment,
) -> tuple[Any, Iterable[Hashable] | None]:
    """Return the matrix and the names of whatever it is, or the finished graph."""
    graph: SynergyGraph | None = None
    if isinstance(thing, SynergyGraph):
        graph = _with_threshold(thing, treatment)
    elif hasattr(thing, "adj") and hasattr(thing, "is_multigraph"):
        graph = graph_of_networkx(thing, treatment, weight="weight")
    elif hasattr(thing, "get_edgelist") and hasattr(thing, "vs"):
        graph = graph_of_igraph(thing, treatment, weight="weight")
    elif hasattr(thing, "index") and hasattr(thing, "columns") and hasattr(thing, "iloc"):
        if _lists_pairs(thing):
            graph = graph_of_pairs_frame(thing, None, treatment)
        else:
            thing = _with_index(thing)
            # As an array: asked for floats, pandas drops the imaginary part of a complex number.
            cells = thing.to_numpy(na_value=math.nan)
            return cells, _frame_nodes(thing) if labels is None else labels
    if graph is None:
        return thing, labels
    if labels is not None:
        raise InvalidInputError("a graph has its own names; leave out labels")
    return graph, None


def _with_threshold(graph: SynergyGraph, treatment: Treatment) -> SynergyGraph:
    """Return a graph less a threshold; it is symmetric and complete as it is."""
    threshold = treatment.threshold
    if threshold is None:
        return graph
    if graph.is_sparse:
        return SynergyGraph.from_edges(
            graph.n_players, *graph.edges, graph.nodes, threshold=threshold
        )
    return SynergyGraph(graph.matrix, graph.nodes, threshold=threshold)


# -- pandas ----------------------------------------------------------------------------------------


def graph_of_pairs_frame(
    frame: Any,  # noqa: ANN401 (a DataFrame)
    columns: Sequence[Hashable] | None,
    treatment: Treatment,
) -> SynergyGraph:
    """Return the graph of a table with a row for each pair.

    A column of pandas has one type for all its cells: 1 in one column and "1" in the other are the
    same player.
    """
    header = list(frame.columns)
    places: Sequence[int] = ()
    if columns is None:
        places = pair_columns(header) or (range(3) if len(header) == 3 else ())
        if not places:
            raise InvalidInputError(
                f"a table of pairs has two columns of names and one of numbers; which of"
                f" {shown(header)} are they? say so by SynergyGraph.from_frame(table, columns)"
            )
    else:
        absent = [name for name in columns if name not in header]
        if len(columns) != 3 or absent:
            wrong = f"there is no column {shown(absent[0])}" if absent else shown(list(columns))
            raise InvalidInputError(f"columns are two of names and one of numbers, but {wrong}")
        places = [header.index(name) for name in columns]
    one, other, weight = (frame.iloc[:, place].tolist() for place in places)
    pairs = []
    nodes: dict[str, Hashable] = {}
    for row, (a, b, number) in enumerate(zip(one, other, weight, strict=True), 1):
        if any(end is None or str(end) in ("nan", "<NA>", "") for end in (a, b)):
            raise InvalidInputError(f"row {row} of the table has no name for a player")
        ends = [_whole(a), _whole(b)]
        for end in ends:
            text = composed(str(end))
            if text not in nodes or isinstance(nodes[text], str):
                nodes[text] = end
        pairs.append((str(ends[0]), str(ends[1]), _value(number, row)))
    return graph_of_pairs(pairs, Nodes(nodes.values()), treatment)


def _value(number: Any, row: int) -> float:  # noqa: ANN401 (a cell of a DataFrame)
    if number is None or type(number).__name__ == "NAType":  # pandas.NA
        return math.nan
    try:
        if not isinstance(number, complex):
            return float(number)
    except (TypeError, ValueError):
        pass
    raise InvalidInputError(f"row {row} of the table: {shown(number)} is not a number")


def _whole(node: Hashable) -> Hashable:
    """Return a player's node; a column of whole numbers with a gap has become one of floats."""
    return int(node) if isinstance(node, float) and node.is_integer() else node


def _lists_pairs(frame: Any) -> bool:  # noqa: ANN401 (a DataFrame)
    """Tell whether a table has a row for each pair, and is no matrix."""
    kinds = [getattr(kind, "kind", "O") for kind in frame.dtypes]
    if len(kinds) < 3:
        return False
    places = pair_columns(list(frame.columns))
    if places is None:
        return len(kinds) == 3 and kinds[0] not in "biufc" and kinds[1] not in "biufc"
    return [str(name) for name in frame.index] != [str(name) for name in frame.columns]


def _with_index(frame: Any) -> Any:  # noqa: ANN401 (a DataFrame)
    """Return a matrix whose names may stand in its first column, as pandas reads it from a file."""
    rows, columns = frame.shape
    first = str(frame.columns[0]) if columns else ""
    if columns == rows + 1 and getattr(frame.dtypes.iloc[0], "kind", "O") not in "biufc":
        return frame.set_index(frame.columns[0])
    if columns == rows + 1 and first.startswith("Unnamed: 0"):
        return frame.iloc[:, 1:]
    return frame


def _frame_nodes(frame: Any) -> Nodes:  # noqa: ANN401 (a DataFrame)
    """Return what the rows and columns of a matrix are called; of 1 and "1" the number."""
    axes = frame.index.tolist(), frame.columns.tolist()
    rows, columns = ([composed(str(name)) for name in axis] for axis in axes)
    if rows != columns and rows == list(map(str, range(len(columns)))):  # nobody named the rows
        return Nodes(axes[1])
    if rows != columns and sorted(rows) == sorted(columns):
        raise InvalidInputError(
            "the rows and columns of the table name the same players in different orders;"
            " reorder one of them: table.loc[table.columns]"
        )
    if rows != columns and len(rows) == len(columns):
        wrong = next(
            k for k, pair in enumerate(zip(rows, columns, strict=True)) if len(set(pair)) > 1
        )
        raise InvalidInputError(
            f"row {wrong + 1} of the table is {rows[wrong]!r}, but column {wrong + 1} is"
            f" {columns[wrong]!r}; both must name the same players"
        )
    return Nodes(axes[0])


# -- networkx and igraph ---------------------------------------------------------------------------


def graph_of_networkx(graph: nx.Graph, treatment: Treatment, *, weight: str) -> SynergyGraph:
    """Return the synergy graph of a networkx graph, its nodes as players in their order."""
    if graph.is_multigraph():
        raise InvalidInputError("a multigraph has several weights for a pair; give a simple graph")
    place = {node: k for k, node in enumerate(graph)}
    edges = [(place[a], place[b], w) for a, b, w in graph.edges(data=weight, default=1.0)]
    return _of_edges(Nodes(graph), edges, graph.is_directed(), treatment)


def networkx_graph(graph: SynergyGraph, nodes: Sequence[Hashable]) -> nx.Graph:
    """Return an undirected networkx graph whose nodes are called so."""
    import networkx as nx

    made = nx.Graph()
    made.add_nodes_from(nodes)
    i, j, weight = graph.edges
    made.add_weighted_edges_from(
        (nodes[a], nodes[b], w)
        for a, b, w in zip(i.tolist(), j.tolist(), weight.tolist(), strict=True)
    )
    return made


def graph_of_igraph(
    graph: Any,  # noqa: ANN401 (an igraph.Graph)
    treatment: Treatment,
    *,
    weight: str,
) -> SynergyGraph:
    """Return the synergy graph of an igraph graph, its vertices as players in their order."""
    if graph.has_multiple():
        raise InvalidInputError("a multigraph has several weights for a pair; give a simple graph")
    named = "name" in graph.vs.attributes()
    nodes = Nodes(graph.vs["name"] if named else range(len(graph.vs)))
    for node in nodes:
        if not isinstance(node, Hashable):
            raise InvalidInputError(
                f"the vertex name {shown(node)} can change, so it names nobody; give texts, numbers"
                " or tuples"
            )
    weights = graph.es[weight] if weight in graph.es.attributes() else [1.0] * len(graph.es)
    edges = [(a, b, w) for (a, b), w in zip(graph.get_edgelist(), weights, strict=True)]
    return _of_edges(nodes, edges, graph.is_directed(), treatment)


def _of_edges(
    nodes: Nodes, edges: list[tuple[int, int, Any]], directed: bool, treatment: Treatment
) -> SynergyGraph:
    if not nodes:
        raise InvalidInputError("the graph is empty; there must be at least one player")
    weights = []
    for a, b, value in edges:
        try:
            weights.append(float(value))
        except (TypeError, ValueError):
            raise InvalidInputError(
                f"the weight of {nodes[a]!r}–{nodes[b]!r} is {shown(value)}, not a number"
            ) from None
    pairs = np.array([edge[:2] for edge in edges], np.int64).reshape(-1, 2)
    values = np.array(weights, np.float64)
    threshold = treatment.threshold
    if not directed:
        return SynergyGraph.from_edges(
            len(nodes), pairs[:, 0], pairs[:, 1], values, nodes, threshold=threshold
        )
    from scipy import sparse

    # A directed pair that is missing is 0, so one arrow alone is not symmetric.
    matrix = sparse.coo_array((values, (pairs[:, 0], pairs[:, 1])), shape=(len(nodes),) * 2)
    return SynergyGraph(matrix, nodes, symmetrise=treatment.symmetrise, threshold=threshold)
