"""Synergy graphs in files: one reader and one writer per format, found by the file's ending."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.graph import SynergyGraph
from coalitions.storage import disk_trouble_named, storage_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    import networkx as nx

Reader = Callable[[bytes, str, "str | None"], SynergyGraph]
Writer = Callable[[SynergyGraph], bytes]


def read_graph(
    path: str | Path, *, format: str | None = None, symmetrise: str | None = None
) -> SynergyGraph:
    """Read a graph; the file's ending, or `format`, says how. ``-`` is standard input."""
    where, content, kind = read_input(path, format, READERS)
    return READERS[kind](content, where, symmetrise)


def read_input(
    path: str | Path, format: str | None, known: Iterable[str]
) -> tuple[str, bytes, str]:
    """Return what to call the file in messages, its content, and its format."""
    kind = (format or Path(path).suffix).lower().lstrip(".")
    if str(path) == "-":
        if not kind:
            raise InvalidInputError(
                f"standard input needs a format; give one of {', '.join(known)} with --format"
            )
        where, content = "standard input", sys.stdin.buffer.read()
    else:
        where = str(path)
        try:
            content = Path(path).read_bytes()
        except FileNotFoundError:
            raise InvalidInputError(f"{where}: there is no such file") from None
        except OSError as error:
            raise InvalidInputError(f"{where}: cannot be read ({error.strerror})") from None
    if kind not in known:
        ending = f"the format {kind!r} is unknown" if kind else "the file's name has no ending"
        raise InvalidInputError(
            f"{where}: {ending}; a graph is one of {', '.join('.' + name for name in known)}"
        )
    if not content.strip():
        raise InvalidInputError(f"{where}: is empty; expected a synergy graph")
    return where, content, kind


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
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Give a file to write that takes its name only when it is complete."""
    target = Path(path)
    if target.exists() and not target.is_file() and not target.is_dir():
        # A device or a pipe: there is nothing to replace, and as root we would replace /dev/null.
        with disk_trouble_named(path), target.open("wb") as file:
            yield file
        return
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        refusal = InvalidInputError(f"{path}: cannot be written ({error.strerror})")
        raise storage_error(error, path) or refusal from None
    try:
        with disk_trouble_named(path):
            with os.fdopen(descriptor, "wb") as file:
                yield file
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(name, 0o666 & ~umask)  # mkstemp makes the file private
            os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _text(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{where}: is not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None


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


def _read_table(delimiter: str) -> Reader:
    def read(content: bytes, where: str, symmetrise: str | None) -> SynergyGraph:
        text = _text(content, where)
        rows = [
            (number, row)
            for number, row in enumerate(csv.reader(io.StringIO(text), delimiter=delimiter), 1)
            if any(cell.strip() for cell in row)
        ]
        if not rows:
            raise InvalidInputError(f"{where}: is empty; expected a synergy graph")
        labels = None
        if _has_names(rows):
            header = [cell.strip() for cell in rows[0][1][1:]]
            rows = rows[1:]
            labels = [row[0].strip() for _, row in rows]
            if labels != header:
                _reject_names(where, rows, labels, header)
            rows = [(number, row[1:]) for number, row in rows]
        first_column = 1 if labels is None else 2
        matrix = _numbers(where, rows, len(rows), first_column)
        with _named(where):
            return SynergyGraph(matrix, labels, symmetrise=symmetrise)

    return read


def _has_names(rows: list[tuple[int, list[str]]]) -> bool:
    """Tell whether the table has names: its corner is no number, or no name is one."""
    corner, *header = rows[0][1]
    names = [*header, *(row[0] for _, row in rows[1:])]
    return _number(corner) is None or (bool(names) and all(_number(name) is None for name in names))


def _reject_names(
    where: str, rows: list[tuple[int, list[str]]], labels: list[str], header: list[str]
) -> None:
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
        f"{where}: line {rows[wrong][0]} is named {labels[wrong]!r}, but column {wrong + 2} is"
        f" {header[wrong]!r}; names must be in the header and in the first column, in one order,"
        " or in neither"
    )


def _numbers(
    where: str, rows: list[tuple[int, list[str]]], width: int, first_column: int
) -> list[list[float]]:
    matrix = []
    for line, row in rows:
        if len(row) != width:
            raise InvalidInputError(
                f"{where}: the synergy matrix must be square, but line {line} has {len(row)}"
                f" numbers and there are {width} rows"
            )
        numbers = []
        for column, cell in enumerate(row, first_column):
            number = _number(cell)
            if number is None:
                raise InvalidInputError(
                    f"{where}: line {line}, column {column}: {cell.strip()!r} is not a number"
                )
            numbers.append(number)
        matrix.append(numbers)
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
            table.writerow([label, *map(_shortest, row)])
        return text.getvalue().encode()

    return write


def _shortest(number: float) -> str:
    """Return the shortest text that reads back as the same number, whole numbers without .0."""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)


# -- .npy and .npz ---------------------------------------------------------------------------------


def _load_numpy(content: bytes, where: str) -> Any:  # noqa: ANN401 (an array or an archive)
    try:
        return np.load(io.BytesIO(content), allow_pickle=False)
    except Exception:
        raise InvalidInputError(
            f"{where}: is not a NumPy file of plain numbers (objects are never loaded)"
        ) from None


def _read_npy(content: bytes, where: str, symmetrise: str | None) -> SynergyGraph:
    with _named(where):
        return SynergyGraph(_load_numpy(content, where), symmetrise=symmetrise)


def _write_npy(graph: SynergyGraph) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, graph.matrix, allow_pickle=False)
    return buffer.getvalue()


def _read_npz(content: bytes, where: str, symmetrise: str | None) -> SynergyGraph:
    archive = _load_numpy(content, where)
    if isinstance(archive, np.ndarray):
        raise InvalidInputError(f"{where}: holds one bare array; name it .npy")
    try:
        arrays = {name: archive[name] for name in archive.files}
    except ValueError:
        raise InvalidInputError(f"{where}: holds Python objects, which are never loaded") from None
    # A numeric `labels` is somebody's clustering, not names.
    labels = arrays["labels"].tolist() if _is_text(arrays.get("labels")) else None
    with _named(where):
        if {"i", "j", "weight", "n_players"} <= arrays.keys():
            return SynergyGraph.from_edges(
                int(arrays["n_players"]), arrays["i"], arrays["j"], arrays["weight"], labels
            )
        for key in ("S", "matrix"):
            if key in arrays:
                return SynergyGraph(arrays[key], labels, symmetrise=symmetrise)
    raise InvalidInputError(
        f"{where}: has the arrays {', '.join(sorted(arrays)) or 'none'}; expected the matrix as S"
    )


def _is_text(labels: np.ndarray[Any, Any] | None) -> bool:
    return labels is not None and labels.dtype.kind in "US"


def _write_npz(graph: SynergyGraph) -> bytes:
    buffer = io.BytesIO()
    names = np.array(graph.labels)
    if graph.is_sparse:
        i, j, weight = graph.edges
        np.savez_compressed(
            buffer, n_players=graph.n_players, i=i, j=j, weight=weight, labels=names
        )
    else:
        np.savez_compressed(buffer, S=graph.matrix, labels=names)
    return buffer.getvalue()


# -- .json -----------------------------------------------------------------------------------------


def _read_json(content: bytes, where: str, symmetrise: str | None) -> SynergyGraph:
    document = load_json(content, where)
    if not isinstance(document, dict) or not {"matrix", "edges"} & document.keys():
        raise InvalidInputError(
            f'{where}: expected an object with "matrix" or "edges", and perhaps "labels"'
        )
    labels = document.get("labels")
    if labels is not None and not isinstance(labels, list):
        raise InvalidInputError(f'{where}: "labels" must be a list of names')
    with _named(where):
        if "matrix" in document:
            return SynergyGraph(document["matrix"], labels, symmetrise=symmetrise)
        return _graph_of_named_edges(
            _json_edges(document["edges"], where, labels), where, labels, symmetrise
        )


def load_json(content: bytes, where: str) -> Any:  # noqa: ANN401 (whatever the document holds)
    """Parse a JSON document, or say where it is broken."""
    try:
        return json.loads(_text(content, where))
    except json.JSONDecodeError as error:
        raise InvalidInputError(
            f"{where}: line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})"
        ) from None
    except RecursionError:
        raise InvalidInputError(f"{where}: is nested too deeply to be read as JSON") from None
    except InvalidInputError:
        raise
    except ValueError:  # the one limit of Python's numbers
        raise InvalidInputError(
            f"{where}: has a whole number of more than 4300 digits; no number here needs them"
        ) from None


def _json_edges(
    edges: Any,  # noqa: ANN401 (user data, checked here)
    where: str,
    labels: list[Any] | None,
) -> list[tuple[str, str, float]]:
    """Return edges [a, b, weight]; an end is a label, or a player's number."""
    names = [str(label) for label in labels or ()]
    known = set(names)
    found = []
    for number, edge in enumerate(edges if isinstance(edges, list) else [None], 1):
        if (
            not isinstance(edge, list)
            or len(edge) != 3
            or not isinstance(edge[2], int | float)
            or isinstance(edge[2], bool)
        ):
            raise InvalidInputError(
                f"{where}: edge {number} must be [player, player, weight], not {json.dumps(edge)}"
            )
        ends = []
        for end in edge[:2]:
            by_number = isinstance(end, int) and str(end) not in known and 0 <= end < len(names)
            ends.append(names[end] if by_number else str(end))
        found.append((ends[0], ends[1], float(edge[2])))
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


def _read_edges(content: bytes, where: str, symmetrise: str | None) -> SynergyGraph:
    edges: list[tuple[str, str, float]] = []
    for number, line in enumerate(_text(content, where).splitlines(), 1):
        cells = line.split("#", 1)[0].split()
        if not cells:
            continue
        if len(cells) == 1:  # a player without any edge
            edges.append((cells[0], cells[0], 0.0))
            continue
        weight = _number(cells[2]) if len(cells) == 3 else None
        if weight is None:
            raise InvalidInputError(f"{where}: line {number}: expected `a b weight`, not {line!r}")
        edges.append((cells[0], cells[1], weight))
    with _named(where):
        return _graph_of_named_edges(edges, where, None, symmetrise)


def _write_edges(graph: SynergyGraph) -> bytes:
    i, j, weight = graph.edges
    names = graph.labels
    spaced = next((name for name in names if len(name.split()) != 1 or "#" in name), None)
    if spaced is not None:
        raise InvalidInputError(
            f"the label {spaced!r} has a space or a # in it, which .edges cannot hold; use .json"
        )
    # Every player first, alone: their order and those without edges are kept.
    lines = list(names)
    lines += [
        f"{names[a]} {names[b]} {_shortest(w)}"
        for a, b, w in zip(i.tolist(), j.tolist(), weight.tolist(), strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


def _graph_of_named_edges(
    edges: list[tuple[str, str, float]],
    where: str,
    labels: list[Any] | None,
    symmetrise: str | None,
) -> SynergyGraph:
    """Return the graph of edges between names; without labels, players come as they appear."""
    if labels is None:
        names = list(dict.fromkeys(name for a, b, _ in edges for name in (a, b)))
    else:
        names = [str(label) for label in labels]
    if not names:
        raise InvalidInputError(f"{where}: has no players; expected lines `a b weight`")
    place = {name: k for k, name in enumerate(names)}
    for a, b, _ in edges:
        for end in (a, b):
            if end not in place:
                raise InvalidInputError(f"{where}: an edge names {end!r}, who is not in labels")
    ends = np.array([(place[a], place[b]) for a, b, _ in edges], np.int64).reshape(-1, 2)
    weights = np.array([weight for _, _, weight in edges])
    if symmetrise is not None:
        return _symmetrised(ends, weights, names, symmetrise)
    return SynergyGraph.from_edges(len(names), ends[:, 0], ends[:, 1], weights, names)


def _symmetrised(
    ends: np.ndarray[Any, Any], weights: np.ndarray[Any, Any], names: list[str], symmetrise: str
) -> SynergyGraph:
    """Return the graph of directed edges; a direction that is not listed is 0."""
    from scipy import sparse

    n = len(names)
    _, counts = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0, return_counts=True)
    if (counts > 1).any():
        raise InvalidInputError("a directed pair is listed twice; list it once")
    kept = weights != 0
    matrix = sparse.coo_array((weights[kept], (ends[kept, 0], ends[kept, 1])), shape=(n, n))
    return SynergyGraph(matrix, names, symmetrise=symmetrise)


# -- .graphml and networkx -------------------------------------------------------------------------


def _read_graphml(content: bytes, where: str, symmetrise: str | None) -> SynergyGraph:
    from xml.etree.ElementTree import ParseError

    import networkx as nx

    if b"<!ENTITY" in content:  # entity expansion is how an XML file exhausts memory
        raise InvalidInputError(f"{where}: declares XML entities, which are not read")
    try:
        graph = nx.read_graphml(io.BytesIO(content))
    except (nx.NetworkXException, ParseError, KeyError, ValueError) as error:
        raise InvalidInputError(f"{where}: is not GraphML ({error})") from None
    with _named(where):
        return graph_of_networkx(graph, weight="weight", symmetrise=symmetrise)


def _write_graphml(graph: SynergyGraph) -> bytes:
    import networkx as nx

    buffer = io.BytesIO()
    nx.write_graphml(graph.to_networkx(), buffer)
    return buffer.getvalue()


def graph_of_networkx(graph: nx.Graph, *, weight: str, symmetrise: str | None) -> SynergyGraph:
    """Return the synergy graph of a networkx graph, its nodes as players in their order."""
    if graph.is_multigraph():
        raise InvalidInputError("a multigraph has several weights for a pair; give a simple graph")
    names = [str(node) for node in graph]
    if not names:
        raise InvalidInputError("the graph is empty; there must be at least one player")
    place = {node: k for k, node in enumerate(graph)}
    ends, weights = [], []
    for a, b, value in graph.edges(data=weight, default=1.0):
        number = _number(str(value))
        if number is None:
            raise InvalidInputError(
                f"the weight of {str(a)!r}–{str(b)!r} is {value!r}, not a number"
            )
        ends.append((place[a], place[b]))
        weights.append(number)
    pairs = np.array(ends, np.int64).reshape(-1, 2)
    values = np.array(weights, np.float64)
    if not graph.is_directed():
        return SynergyGraph.from_edges(len(names), pairs[:, 0], pairs[:, 1], values, names)
    from scipy import sparse

    # A directed pair that is missing is 0, so one arrow alone is not symmetric.
    matrix = sparse.coo_array((values, (pairs[:, 0], pairs[:, 1])), shape=(len(names),) * 2)
    return SynergyGraph(matrix, names, symmetrise=symmetrise)


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
