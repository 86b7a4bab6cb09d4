"""Games from files: a table of 2^n values, or a synergy graph."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, TypeAlias

from cli.terminal.output import tell
from coalitions.errors import InputWarning

if TYPE_CHECKING:
    from coalitions.games.induced_subgraph import InducedSubgraphGame
    from coalitions.games.table import TableGame
    from coalitions.graph import SynergyGraph

    FileGame: TypeAlias = TableGame | InducedSubgraphGame


def read_graph(
    file: str,
    *,
    file_format: str | None = None,
    symmetrise: str | None = None,
    missing: float | None = None,
    quiet: bool = False,
) -> SynergyGraph:
    """Return the graph in a file, and say how it was understood if that was not plain."""
    from coalitions.graph import SynergyGraph

    told = _unheard if quiet else tell
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", InputWarning)
        return SynergyGraph.read(
            file, format=file_format, symmetrise=symmetrise, missing=missing, tell=told
        )


def _unheard(line: str) -> None:
    """Keep what was understood to oneself."""


def read_game(
    file: str,
    *,
    file_format: str | None = None,
    symmetrise: str | None = None,
    missing: float | None = None,
    quiet: bool = False,
) -> FileGame:
    """Return the game in a file; a JSON document with ``values`` is a table, all else a graph."""
    from coalitions.files.graphs import READERS, graph_of_document
    from coalitions.files.opening import open_input
    from coalitions.files.text import load_json
    from coalitions.games.table import TableGame

    with open_input(file, file_format, READERS) as (where, stream, kind):
        if kind != "json":
            told = _unheard if quiet else tell
            return READERS[kind](stream, where, symmetrise, missing, told).game()
        document = load_json(stream.read(), where)
    if isinstance(document, dict) and "values" in document:
        return TableGame.from_document(document, where)
    return graph_of_document(document, where, symmetrise, missing).game()
