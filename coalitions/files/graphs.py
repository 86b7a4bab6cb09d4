"""Synergy graphs in files: one reader and one writer per format, found by the file's ending."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np

from coalitions.errors import InvalidInputError, shown, spoken
from coalitions.files.arrays import (
    FREELY_UNPACKED,
    ArrayArchive,
    ArrayFile,
    ArrayHeader,
)
from coalitions.files.objects import graph_of_networkx
from coalitions.files.opening import open_input
from coalitions.files.pairs import graph_of_pairs
from coalitions.files.text import load_json, text_lines
from coalitions.files.writing import atomic_write
from coalitions.game import FloatMatrix
from coalitions.graph import MATRIX_LIMIT, SynergyGraph, check_matrix_shape

Tell = Callable[[str], None]
Writer = Callable[[SynergyGraph], bytes]


class Reader(Protocol):
    """What reads one format."""

    def __call__(
        self,
        stream: IO[bytes],
        where: str,
        symmetrise: str | None,
        missing: float | None = None,
        tell: Tell | None = None,
    ) -> SynergyGraph:
        """Return the graph in a file that messages call `where`; see `SynergyGraph.read`."""
        ...


def read_graph(
    path: str | Path,
    *,
    format: str | None = None,
    symmetrise: str | None = None,
    missing: float | None = None,
    tell: Tell | None = None,
) -> SynergyGraph:
    """Read a graph; the file's ending, or `format`, says how. ``-`` is standard input."""
    with open_input(path, format, READERS) as (where, stream, kind):
        return READERS[kind](stream, where, symmetrise, missing, tell)


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


# -- .csv and .tsv: a square matrix, with names on both sides or on neither ------------------------


class _Row(NamedTuple):
    """A line of a table: its first cell, and the others, as numbers if that is what they are."""

    line: int
    first: str
    rest: np.ndarray[Any, np.dtype[np.float64]] | list[str]

    @property
    def cells(self) -> list[str]:
        return [self.first, *map(str, self.rest)]


def _read_table(delimiter: str) -> Reader:
    def read(
        stream: IO[bytes],
        where: str,
        symmetrise: str | None,
        missing: float | None = None,
        tell: Tell | None = None,
    ) -> SynergyGraph:
        rows = _rows(stream, where, delimiter)
        if not rows:
            raise InvalidInputError(f"{where}: is empty; expected a synergy graph")
        labels = None
        if _has_names(rows):
            header = [cell.strip() for cell in rows[0].cells[1:]]
            rows = rows[1:]
            labels = [row.first.strip() for row in rows]
            if labels != header:
                _reject_names(where, rows, labels, header)
        matrix = _numbers(where, rows, named=labels is not None)
        with _named(where):
            return SynergyGraph(matrix, labels, symmetrise=symmetrise)

    return read


def _rows(stream: IO[bytes], where: str, delimiter: str) -> list[_Row]:
    """Return the lines of a table; numbers take less memory than their digits, so they are read."""
    rows: list[_Row] = []
    with text_lines(stream, where) as lines, _named(where):
        table = csv.reader(lines, delimiter=delimiter)
        try:
            for row in table:
                if any(cell.strip() for cell in row):
                    # The first line keeps its cells: they may be names that look like numbers.
                    rest = _floats(row[1:]) if rows else None
                    rows.append(_Row(table.line_num, row[0], row[1:] if rest is None else rest))
                    side = max(len(row), len(rows)) - 1  # one may be names
                    if side > MATRIX_LIMIT:
                        check_matrix_shape((side, side))
        except csv.Error:
            raise InvalidInputError(
                f"{where}: line {table.line_num}: a cell has more than {csv.field_size_limit()}"
                " characters; perhaps a quotation mark is not closed"
            ) from None
    return rows


def _floats(cells: list[str]) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    try:
        return np.array([float(cell) for cell in cells], np.float64)
    except ValueError:
        return None


def _has_names(rows: list[_Row]) -> bool:
    """Tell whether the table has names: its corner is no number, or no name is one."""
    corner, *header = rows[0].cells
    names = [*header, *(row.first for row in rows[1:])]
    return _number(corner) is None or (bool(names) and all(_number(name) is None for name in names))


def _reject_names(where: str, rows: list[_Row], labels: list[str], header: list[str]) -> None:
    if len(labels) != len(header):
        raise InvalidInputError(
            f"{where}: the synergy matrix must be square, but the header names {len(header)}"
            f" players and there are {len(labels)} rows (names stand in the header and in the"
            " first column, or in neither)"
        )
    wrong = next(
        k for k, names in enumerate(zip(labels, header, strict=True)) if len(set(names)) > 1
    )
    raise InvalidInputError(
        f"{where}: line {rows[wrong].line} is named {shown(labels[wrong])}, but column {wrong + 2}"
        f" is {shown(header[wrong])}; names must be in the header and in the first column, in one"
        " order, or in neither"
    )


def _numbers(where: str, rows: list[_Row], *, named: bool) -> FloatMatrix:
    """Return the numbers of the table, without a column of names."""
    n = len(rows)
    for row in rows:
        width = len(row.rest) if named else len(row.rest) + 1
        if width != n:
            raise InvalidInputError(
                f"{where}: the synergy matrix must be square, but line {row.line} has {width}"
                f" numbers and there are {n} rows"
            )
    matrix = np.empty((n, n))
    for k, row in enumerate(rows):
        numbers = row.rest if isinstance(row.rest, np.ndarray) else _floats(row.rest)
        first = 0.0 if named else _number(row.first)
        if numbers is None or first is None:
            cells = row.cells
            column = next(c for c in range(named, n + named) if _number(cells[c]) is None)
            raise InvalidInputError(
                f"{where}: line {row.line}, column {column + 1}: {shown(cells[column].strip())} is"
                " not a number"
            )
        matrix[k] = numbers if named else [first, *numbers]
    return matrix


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


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
    symmetrise: str | None,
    missing: float | None = None,
    tell: Tell | None = None,
) -> SynergyGraph:
    file = ArrayFile(stream, where)
    with _named(where):
        _check_matrix(file.header)
        return SynergyGraph(file.load(), symmetrise=symmetrise, missing=missing)


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
    symmetrise: str | None,
    missing: float | None = None,
    tell: Tell | None = None,
) -> SynergyGraph:
    archive = ArrayArchive(stream, where)
    with _named(where):
        if all(name in archive for name in ("n_players", "i", "j", "weight")):
            return _graph_of_stored_edges(archive)
        for key in ("S", "matrix"):
            if key in archive:
                n_players = _check_matrix(archive.header(key))
                labels = _stored_labels(archive, n_players)
                (matrix,) = archive.load(key, widened=8)
                return SynergyGraph(matrix, labels, symmetrise=symmetrise, missing=missing)
    # A name may hold line ends, and a message is one line.
    there = ", ".join(" ".join(name[:40].split()) for name in archive.names[:10]) or "none"
    raise InvalidInputError(f"{where}: has the arrays {there}; expected the matrix as S")


def _graph_of_stored_edges(archive: ArrayArchive) -> SynergyGraph:
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
    return SynergyGraph.from_edges(n_players, i, j, weight, labels)


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
    symmetrise: str | None,
    missing: float | None = None,
    tell: Tell | None = None,
) -> SynergyGraph:
    return graph_of_document(load_json(stream.read(), where), where, symmetrise, missing)


def graph_of_document(
    document: Any,  # noqa: ANN401 (user data, checked here)
    where: str,
    symmetrise: str | None,
    missing: float | None = None,
) -> SynergyGraph:
    """Return the graph of a parsed JSON document."""
    if not isinstance(document, dict) or not {"matrix", "edges"} & document.keys():
        raise InvalidInputError(
            f'{where}: expected an object with "matrix" or "edges", and perhaps "labels"'
        )
    labels = document.get("labels")
    if labels is not None and not (isinstance(labels, list) and all(map(_is_name, labels))):
        raise InvalidInputError(f'{where}: "labels" must be a list of names')
    with _named(where):
        if "matrix" in document:
            matrix = document["matrix"]
            return SynergyGraph(matrix, labels, symmetrise=symmetrise, missing=missing)
        edges = _json_edges(document["edges"], where, labels)
        return graph_of_pairs(edges, labels, symmetrise=symmetrise, missing=missing)


def _is_name(label: object) -> bool:
    return isinstance(label, str | int | float)


def _json_edges(
    edges: Any,  # noqa: ANN401 (user data, checked here)
    where: str,
    labels: list[Any] | None,
) -> list[tuple[str, str, float]]:
    """Return edges [a, b, weight]; an end is a label, or a player's number."""
    names = [str(label) for label in labels or ()]
    known = set(names)
    found = []
    for number, edge in enumerate(edges if isinstance(edges, list) else [edges], 1):
        if (
            not isinstance(edge, list)
            or len(edge) != 3
            or not all(map(_is_name, edge[:2]))
            or not isinstance(edge[2], int | float)
            or isinstance(edge[2], bool)
        ):
            raise InvalidInputError(
                f"{where}: edge {number} must be [player, player, weight], not {shown(edge)}"
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
    symmetrise: str | None,
    missing: float | None = None,
    tell: Tell | None = None,
) -> SynergyGraph:
    edges: list[tuple[str, str, float]] = []
    with text_lines(stream, where) as lines:
        for number, line in enumerate(lines, 1):
            cells = line.split("#", 1)[0].split()
            if not cells:
                continue
            if any(cell.endswith((",", ";")) for cell in cells) or (
                len(cells) == 1 and ("," in cells[0] or ";" in cells[0])
            ):
                raise InvalidInputError(
                    f"{where}: line {number}: {shown(line.strip())} has commas or semicolons where"
                    " `a b weight` has spaces; name the file .csv"
                )
            if len(cells) == 1:  # a player without any edge
                edges.append((cells[0], cells[0], 0.0))
                continue
            weight = _number(cells[2]) if len(cells) == 3 else None
            if weight is None:
                raise InvalidInputError(
                    f"{where}: line {number}: expected `a b weight`, not {shown(line.strip())}"
                )
            edges.append((cells[0], cells[1], weight))
    with _named(where):
        return graph_of_pairs(edges, symmetrise=symmetrise, missing=missing)


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
    symmetrise: str | None,
    missing: float | None = None,
    tell: Tell | None = None,
) -> SynergyGraph:
    import networkx as nx

    content = stream.read()
    with _named(where), _not_graphml(where):
        _refuse_entities(content)
        graph = nx.read_graphml(io.BytesIO(content))
    with _named(where):
        return graph_of_networkx(graph, weight="weight", symmetrise=symmetrise)


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
    nx.write_graphml(graph.to_networkx(), buffer)
    return buffer.getvalue()


READERS: dict[str, Reader] = {
    "csv": _read_table(","),
    "tsv": _read_table("\t"),
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
