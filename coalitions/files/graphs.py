"""Synergy graphs in files: one reader and one writer per format, found by the file's ending."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from coalitions.errors import InvalidInputError, shown, spoken
from coalitions.files.arrays import (
    FREELY_UNPACKED,
    ArrayArchive,
    ArrayFile,
    ArrayHeader,
)
from coalitions.files.cells import number
from coalitions.files.libraries import graph_of_networkx, networkx_graph
from coalitions.files.opening import load_json, open_input, text_lines
from coalitions.files.pairs import graph_of_pairs
from coalitions.files.tables import read_text_table
from coalitions.files.writing import atomic_write
from coalitions.graph import SynergyGraph, Treatment, check_matrix_shape

Tell = Callable[[str], None]
Writer = Callable[[SynergyGraph], bytes]


class Reader(Protocol):
    """What reads one format."""

    def __call__(
        self,
        stream: IO[bytes],
        where: str,
        treatment: Treatment,
        tell: Tell | None = None,
    ) -> SynergyGraph:
        """Return the graph in a file that messages call `where`; see `SynergyGraph.read`."""
        ...


def read_graph(
    path: str | Path,
    treatment: Treatment,
    *,
    format: str | None = None,
    tell: Tell | None = None,
) -> SynergyGraph:
    """Read a graph; the file's ending, or `format`, says how. ``-`` is standard input."""
    with open_input(path, format, READERS) as (where, stream, kind):
        graph = READERS[kind](stream, where, treatment, tell)
    tell_remarks(graph, where, tell)
    return graph


def tell_remarks(graph: SynergyGraph, where: str, tell: Tell | None) -> None:
    """Tell what was done to the numbers of a file."""
    if tell is not None:
        for remark in graph.remarks:
            tell(f"{where}: {remark}")


def write_graph(graph: SynergyGraph, path: str | Path) -> None:
    """Write a graph in the format of the path's ending."""
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in WRITERS:
        raise InvalidInputError(
            f"{path}: the format {kind!r} is unknown; a graph is written as one of"
            f" {', '.join('.' + name for name in WRITERS)}"
        )
    with atomic_write(path) as file:
        file.write(WRITERS[kind](graph))


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Put the file's name in front of what a constructor has to say about its content."""
    try:
        yield
    except InvalidInputError as error:
        if str(error).startswith(where):
            raise
        raise type(error)(f"{where}: {error}") from None


# -- .csv and .tsv: what spreadsheets export -------------------------------------------------------


def _read_table(separator: str) -> Reader:
    def read(
        stream: IO[bytes],
        where: str,
        treatment: Treatment,
        tell: Tell | None = None,
    ) -> SynergyGraph:
        with _named(where):
            return read_text_table(stream, where, separator, treatment, tell)

    return read


def _write_table(delimiter: str) -> Writer:
    def write(graph: SynergyGraph) -> bytes:
        text = io.StringIO()
        table = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        table.writerow(["", *graph.labels])
        for label, row in zip(graph.labels, graph.matrix.tolist(), strict=True):
            table.writerow([label, *map(spoken, row)])
        return text.getvalue().encode()

    return write


# -- .npy and .npz ---------------------------------------------------------------------------------


def _read_npy(
    stream: IO[bytes],
    where: str,
    treatment: Treatment,
    tell: Tell | None = None,
) -> SynergyGraph:
    file = ArrayFile(stream, where)
    with _named(where):
        _check_matrix(file.header)
        return SynergyGraph(file.load(), **treatment.asked)


def _check_matrix(header: ArrayHeader) -> int:
    """Return the number of players of a stored matrix, or refuse it before it is unpacked."""
    if not header.is_numeric:
        raise InvalidInputError(f"the synergy matrix is not numeric: of type {header.dtype}")
    return check_matrix_shape(header.shape)


def _write_npy(graph: SynergyGraph) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, graph.matrix, allow_pickle=False)
    return buffer.getvalue()


def _read_npz(
    stream: IO[bytes],
    where: str,
    treatment: Treatment,
    tell: Tell | None = None,
) -> SynergyGraph:
    archive = ArrayArchive(stream, where)
    with _named(where):
        if all(name in archive for name in ("n_players", "i", "j", "weight")):
            return _graph_of_stored_edges(archive, treatment)
        for key in ("S", "matrix"):
            if key in archive:
                n_players = _check_matrix(archive.header(key))
                labels = _stored_labels(archive, n_players)
                (matrix,) = archive.load(key, widened=8)
                return SynergyGraph(matrix, labels, **treatment.asked)
    # A name may hold line ends, and a message is one line.
    there = ", ".join(" ".join(name[:40].split()) for name in archive.names[:10]) or "none"
    raise InvalidInputError(f"{where}: has the arrays {there}; expected the matrix as S")


def _graph_of_stored_edges(archive: ArrayArchive, treatment: Treatment) -> SynergyGraph:
    about = archive.header("n_players")
    if about.dtype.kind not in "iu" or about.size != 1:
        raise InvalidInputError("n_players must be a whole number")
    n_players = int(archive.load("n_players")[0].item())
    shapes = [archive.header(name).shape for name in ("i", "j", "weight")]
    if len({*shapes}) != 1 or len(shapes[0]) != 1:
        raise InvalidInputError(f"i, j and weight must be lists of one length, not {shapes}")
    for name in ("i", "j", "weight"):
        if not archive.header(name).is_numeric:
            raise InvalidInputError(f"{name} is not numeric: of type {archive.header(name).dtype}")
    labels = _stored_labels(archive, n_players)
    i, j, weight = archive.load("i", "j", "weight", widened=8)
    return SynergyGraph.from_edges(n_players, i, j, weight, labels, threshold=treatment.threshold)


def _stored_labels(archive: ArrayArchive, n_players: int) -> list[str] | None:
    # A numeric `labels` is somebody's clustering, not names.
    if "labels" not in archive or not archive.header("labels").is_text:
        return None
    shape = archive.header("labels").shape
    if shape != (n_players,):
        raise InvalidInputError(
            f"labels has the shape {shape}; {n_players} players need as many names"
        )
    (names,) = archive.load("labels")
    try:
        return [name if isinstance(name, str) else name.decode() for name in names.tolist()]
    except (ValueError, SystemError):  # numbers that stand for no character
        raise InvalidInputError("labels is not text: it has characters that do not exist") from None


def _write_npz(graph: SynergyGraph) -> bytes:
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {"S": graph.matrix} if not graph.is_sparse else graph.edges._asdict()
    if graph.is_sparse:
        arrays["n_players"] = np.int64(graph.n_players)
    # What is large is not packed: it would take long, and an archive that unpacks to a hundred
    # times its size is not read.
    large = sum(array.nbytes for array in arrays.values()) > FREELY_UNPACKED
    save = np.savez if large else np.savez_compressed
    save(buffer, **arrays, labels=np.array(graph.labels))
    return buffer.getvalue()


# -- .json -----------------------------------------------------------------------------------------


def _read_json(
    stream: IO[bytes],
    where: str,
    treatment: Treatment,
    tell: Tell | None = None,
) -> SynergyGraph:
    return graph_of_document(load_json(stream.read(), where), where, treatment)


def graph_of_document(
    document: Any,  # noqa: ANN401 (user data, checked here)
    where: str,
    treatment: Treatment,
) -> SynergyGraph:
    """Return the graph of a parsed JSON document; its players have labels, which are text."""
    if not isinstance(document, dict) or not {"matrix", "edges"} & document.keys():
        raise InvalidInputError(
            f'{where}: expected an object with "matrix" or "edges", and perhaps "labels"'
        )
    labels = document.get("labels")
    if labels is not None and not (isinstance(labels, list) and all(map(_is_name, labels))):
        raise InvalidInputError(f'{where}: "labels" must be a list of names')
    labels = None if labels is None else [str(label) for label in labels]
    with _named(where):
        if "matrix" in document:
            return SynergyGraph(document["matrix"], labels, **treatment.asked)
        edges = _json_edges(document["edges"], where, labels or ())
        return graph_of_pairs(edges, labels, treatment)


def _is_name(label: object) -> bool:
    return isinstance(label, str | int | float)


def _json_edges(
    edges: Any,  # noqa: ANN401 (user data, checked here)
    where: str,
    names: Sequence[str],
) -> list[tuple[str, str, float]]:
    """Return edges [a, b, weight]; an end is a label, or a player's number."""
    known = set(names)
    found = []
    for place, edge in enumerate(edges if isinstance(edges, list) else [edges], 1):
        if (
            not isinstance(edge, list)
            or len(edge) != 3
            or not all(map(_is_name, edge[:2]))
            or not isinstance(edge[2], int | float)
            or isinstance(edge[2], bool)
        ):
            raise InvalidInputError(
                f"{where}: edge {place} must be [player, player, weight], not {shown(edge)}"
            )
        ends = []
        for end in edge[:2]:
            by_number = isinstance(end, int) and str(end) not in known and 0 <= end < len(names)
            ends.append(names[end] if by_number else str(end))
        try:
            weight = float(edge[2])
        except OverflowError:  # a whole number of more than 308 digits
            weight = math.inf
        found.append((ends[0], ends[1], weight))
    return found


def _write_json(graph: SynergyGraph) -> bytes:
    document: dict[str, Any] = {"labels": list(graph.labels)}
    if graph.is_sparse:
        i, j, weight = (array.tolist() for array in graph.edges)
        names = graph.labels
        document["edges"] = [[names[a], names[b], w] for a, b, w in zip(i, j, weight, strict=True)]
    else:
        document["matrix"] = graph.matrix.tolist()
    return json.dumps(document, ensure_ascii=False).encode()


# -- .edges: lines `a b weight` --------------------------------------------------------------------


def _read_edges(
    stream: IO[bytes],
    where: str,
    treatment: Treatment,
    tell: Tell | None = None,
) -> SynergyGraph:
    edges: list[tuple[str, str, float]] = []
    with text_lines(stream, where) as lines:
        for place, line in enumerate(lines, 1):
            cells = line.split("#", 1)[0].split()
            if not cells:
                continue
            if any(cell.endswith((",", ";")) for cell in cells) or (
                len(cells) == 1 and ("," in cells[0] or ";" in cells[0])
            ):
                raise InvalidInputError(
                    f"{where}: line {place}: {shown(line.strip())} has commas or semicolons where"
                    " `a b weight` has spaces; name the file .csv"
                )
            if len(cells) == 1:  # a player without any edge
                edges.append((cells[0], cells[0], 0.0))
                continue
            weight = number(cells[2]) if len(cells) == 3 else None
            if weight is None:
                raise InvalidInputError(
                    f"{where}: line {place}: expected `a b weight`, not {shown(line.strip())}"
                )
            edges.append((cells[0], cells[1], weight))
    with _named(where):
        return graph_of_pairs(edges, None, treatment)


def _write_edges(graph: SynergyGraph) -> bytes:
    i, j, weight = graph.edges
    names = graph.labels
    spaced = next(
        (name for name in names if len(name.split()) != 1 or not set(name).isdisjoint("#,;")), None
    )
    if spaced is not None:
        raise InvalidInputError(
            f"the label {spaced!r} has a space, a comma, a semicolon or a # in it, which .edges"
            " cannot hold; use .json"
        )
    # Every player first, alone: their order and those without edges are kept.
    lines = list(names)
    lines += [
        f"{names[a]} {names[b]} {spoken(w)}"
        for a, b, w in zip(i.tolist(), j.tolist(), weight.tolist(), strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


# -- .graphml and networkx -------------------------------------------------------------------------


def _read_graphml(
    stream: IO[bytes],
    where: str,
    treatment: Treatment,
    tell: Tell | None = None,
) -> SynergyGraph:
    import networkx as nx

    content = stream.read()
    with _named(where), _not_graphml(where):
        _refuse_entities(content)
        graph = nx.read_graphml(io.BytesIO(content))
    with _named(where):
        read = graph_of_networkx(graph, treatment, weight="weight")
    read._nodes = read.labels  # a file's players have labels, as in the other formats
    return read


def _refuse_entities(content: bytes) -> None:
    """Refuse a document that declares entities, by which a small file fills any memory."""
    from xml.parsers import expat

    def refuse(*_: object) -> None:
        raise InvalidInputError("declares XML entities, which are not read")

    parser = expat.ParserCreate()  # it knows the encoding, as a search for bytes would not
    parser.EntityDeclHandler = refuse
    parser.Parse(content, True)


@contextmanager
def _not_graphml(where: str) -> Iterator[None]:
    try:
        yield
    except (InvalidInputError, MemoryError):
        raise
    except Exception as error:  # networkx checks nothing: what is missing or misspelt, it trips on
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise InvalidInputError(f"{where}: is not GraphML ({reason})") from None


def _write_graphml(graph: SynergyGraph) -> bytes:
    import networkx as nx

    buffer = io.BytesIO()
    nx.write_graphml(networkx_graph(graph, graph.labels), buffer)
    return buffer.getvalue()


def _read_xlsx(
    stream: IO[bytes],
    where: str,
    treatment: Treatment,
    tell: Tell | None = None,
) -> SynergyGraph:
    from coalitions.files.spreadsheets import read_spreadsheet

    with _named(where):
        return read_spreadsheet(stream, where, treatment, tell)


READERS: dict[str, Reader] = {
    "csv": _read_table(","),
    "tsv": _read_table("\t"),
    "xlsx": _read_xlsx,
    "npy": _read_npy,
    "npz": _read_npz,
    "json": _read_json,
    "graphml": _read_graphml,
    "edges": _read_edges,
}
WRITERS: dict[str, Writer] = {
    "csv": _write_table(","),
    "tsv": _write_table("\t"),
    "npy": _write_npy,
    "npz": _write_npz,
    "json": _write_json,
    "graphml": _write_graphml,
    "edges": _write_edges,
}
