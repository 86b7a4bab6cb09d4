"""Games from files: a table of 2^n values, or a synergy graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from cli.terminal.output import tell
from coalitions.errors import InputWarning, InvalidInputError

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
    threshold: float | str | None = None,
    quiet: bool = False,
) -> SynergyGraph:
    """Return the graph in a file, and say how it was understood if that was not plain."""
    from coalitions.graph import SynergyGraph

    told = _unheard if quiet else tell
    with _warnings(quiet):
        return SynergyGraph.read(
            file,
            format=file_format,
            symmetrise=symmetrise,
            missing=missing,
            threshold=threshold,
            tell=told,
        )


def _unheard(line: str) -> None:
    """Keep what was understood to oneself."""


@contextmanager
def _warnings(quiet: bool) -> Iterator[None]:
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", InputWarning)
        yield


def read_game(
    file: str,
    *,
    file_format: str | None = None,
    symmetrise: str | None = None,
    missing: float | None = None,
    threshold: float | str | None = None,
    quiet: bool = False,
) -> FileGame:
    """Return the game in a file; a JSON document with ``values`` is a table, all else a graph."""
    from coalitions.files.graphs import READERS, graph_of_document, tell_remarks
    from coalitions.files.opening import load_json, open_input
    from coalitions.games.table import TableGame
    from coalitions.graph import Treatment

    told = _unheard if quiet else tell
    treatment = Treatment(symmetrise, missing, threshold)
    with _warnings(quiet), open_input(file, file_format, READERS) as (where, stream, kind):
        if kind != "json":
            graph = READERS[kind](stream, where, treatment, told)
        else:
            document = load_json(stream.read(), where)
            if isinstance(document, dict) and "values" in document:
                if (symmetrise, threshold) != (None, None):
                    raise InvalidInputError(
                        f"{where}: is a table of values; --symmetrize and --threshold are for"
                        " synergy graphs"
                    )
                return TableGame.from_document(document, where)
            graph = graph_of_document(document, where, treatment)
    tell_remarks(graph, where, told)
    return graph.game()
