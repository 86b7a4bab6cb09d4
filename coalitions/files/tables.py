"""Tables as spreadsheets and statistics programs write them: a matrix, or a list of pairs.

The separator, the encoding and the decimal mark are found out, titles and empty margins left out,
and names looked for where programs put them. A caller who asks gets a sentence about what was
understood.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from coalitions.errors import InvalidInputError, shown, warn_caller
from coalitions.files.cells import (
    Cell,
    ambiguous,
    decimal_mark,
    has_percent,
    is_blank,
    is_empty,
    number,
)
from coalitions.files.opening import encodings
from coalitions.files.pairs import Pair, graph_of_pairs, pair_columns
from coalitions.formatting import composed
from coalitions.game import FloatMatrix
from coalitions.graph import MATRIX_LIMIT, SynergyGraph, Treatment, check_matrix_shape

Row = tuple[int, list[Cell]]
"""The number of a line, and its cells."""

SAMPLE = 1 << 16
"""Characters by which the separator is found."""

WIDEST_PAIRS = 8
"""Most columns of a list of pairs, which may be longer than a matrix."""

HEAD = 12
"""Rows whose cells are kept as they are: titles, a header, what may be one."""

TOTALS = {"sum", "total", "summe", "gesamt", "insgesamt", "somme", "suma", "totale"}
"""What a spreadsheet calls the sum of its rows."""

SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", " ": "spaces"}


@dataclass
class Understood:
    """What was found out about a table, as one line; empty if it was plain.

    Attributes
    ----------
    notes
        The parts of the line.
    separator
        What stands between cells; empty in a spreadsheet.
    mark
        The decimal mark.
    margin
        Empty columns before the table.
    hollow
        Number of empty lines that have cells: one triangle of a matrix may begin or end so.
    """

    notes: list[str] = field(default_factory=list)
    separator: str = ""
    mark: str = "."
    margin: int = 0
    hollow: int = 0

    def line(self, where: str, graph: SynergyGraph) -> str | None:
        """Return the line, None if there is nothing to say."""
        if not self.notes:
            return None
        n = graph.n_players
        return f"{where}: read as {n} player{'s' * (n != 1)}, {', '.join(self.notes)}"


@dataclass(frozen=True)
class _Line:
    """A line of a table: its first cells as they are, the others as numbers if they are some."""

    line: int
    first: Cell
    rest: np.ndarray[Any, np.dtype[np.float64]] | list[Cell]

    def __len__(self) -> int:
        return 1 + len(self.rest)

    def __getitem__(self, column: int) -> Cell:
        if column >= len(self):
            return ""
        return self.first if column == 0 else _plain(self.rest[column - 1])

    @property
    def cells(self) -> list[Cell]:
        return [self[column] for column in range(len(self))]

    @property
    def used(self) -> int:
        """Number of cells up to the last one that is not blank."""
        if isinstance(self.rest, list):
            filled = [k for k, cell in enumerate(self.rest, 1) if not is_empty(cell)]
        else:
            filled = (np.flatnonzero(~np.isnan(self.rest)) + 1).tolist()
        return filled[-1] + 1 if filled else int(not is_empty(self.first))


def _plain(cell: Any) -> Cell:  # noqa: ANN401 (a text, or one of NumPy's floats)
    return cell if isinstance(cell, str) else float(cell)


# -- text ------------------------------------------------------------------------------------------


def read_text_table(
    stream: IO[bytes],
    where: str,
    separator: str,
    treatment: Treatment,
    tell: Callable[[str], None] | None,
) -> SynergyGraph:
    """Return the graph in a text whose cells most likely have that separator."""
    failed: UnicodeError | None = None
    for encoding, hint in encodings(stream, where):
        understood = Understood([hint] if hint else [])
        stream.seek(0)
        lines = io.TextIOWrapper(stream, encoding, newline="")
        try:
            sample = lines.read(SAMPLE)
            understood.separator = _separator(sample, separator)
            if understood.separator != separator:
                understood.notes.append(SEPARATORS[understood.separator])

            def rows(
                text: io.TextIOWrapper = lines, found: Understood = understood
            ) -> Iterator[Row]:
                text.seek(0)
                return csv_rows(text, found.separator, where)

            graph = graph_of_rows(rows, where, understood, treatment, tell)
            if encoding == "cp1252" and tell is None:
                warn_caller(f"{where}: read as {hint}")
            return graph
        except UnicodeError as error:
            failed = error
        finally:
            lines.detach()  # the caller opened the stream and closes it
    odd = f" ({failed.object[failed.start]:#04x})" if isinstance(failed, UnicodeDecodeError) else ""
    raise InvalidInputError(f"{where}: is not UTF-8 text{odd}; save it as UTF-8")


def _separator(sample: str, expected: str) -> str:
    """Return the separator of a text: what gives most lines cells with a number at the end.

    Titles above a table of synergies and spaces between numbers are common here; records have
    neither, but texts with commas, so `coalitions.files.records` looks at the header instead.
    """
    if (named := named_separator(sample)) is not None:
        return named
    lines = sample.splitlines()
    if len(sample) == SAMPLE:
        lines = lines[:-1] or lines  # the last one is cut
    for separator in dict.fromkeys([*SEPARATORS, expected]):
        rows = _parsed(lines[:100], separator)
        filled = [row for row in rows if any(not is_blank(cell) for cell in row)]
        split = [row for row in filled if len(row) > 1 and _ends_in_number(row)]
        if split and len(split) >= len(filled) / 2:
            return separator
    return expected


def named_separator(sample: str) -> str | None:
    """Return the separator that the first line names, as Excel writes it: ``sep=;``."""
    first, *_ = sample.split("\n", 1)
    line = first.strip().strip('"')
    return line[4] if line.startswith("sep=") and len(line) == 5 else None


def _parsed(lines: list[str], separator: str) -> list[list[str]]:
    spaced = separator == " "
    try:
        return list(csv.reader(lines, delimiter=separator, skipinitialspace=spaced))
    except csv.Error:
        return []


def _ends_in_number(row: Sequence[str]) -> bool:
    filled = [cell for cell in row[1:] if not is_blank(cell)]
    return not filled or any(number(filled[-1], mark) is not None for mark in ".,")


def csv_rows(lines: Iterable[str], separator: str, where: str) -> Iterator[Row]:
    """Give the rows of a text, without the line by which Excel names the separator."""
    table = csv.reader(lines, delimiter=separator, skipinitialspace=separator == " ")
    try:
        for row in table:
            if table.line_num == 1 and len(row) <= 2 and "".join(row).strip().startswith("sep="):
                continue
            yield table.line_num, list(row)
    except csv.Error:
        raise InvalidInputError(
            f"{where}: line {table.line_num}: a cell has more than {csv.field_size_limit()}"
            " characters; perhaps a quotation mark is not closed"
        ) from None


# -- rows of any origin ----------------------------------------------------------------------------


def graph_of_rows(
    rows: Callable[[], Iterator[Row]],
    where: str,
    understood: Understood,
    treatment: Treatment,
    tell: Callable[[str], None] | None,
) -> SynergyGraph:
    """Return the graph in the rows of a table, which can be gone through again."""
    understood.mark = found_mark(rows(), where, understood)
    if understood.mark == ",":
        understood.notes.append("decimal commas")
    lines = _lines(rows(), where, understood)
    if not lines:
        raise InvalidInputError(f"{where}: is empty; expected a synergy graph")
    pairs = _pairs(lines, where, understood)
    if pairs is not None:
        unknown = sum(math.isnan(weight) for _, _, weight in pairs)
        if unknown and treatment.missing is not None:
            blank = f"{unknown} blank {_many('pair', unknown)}"
            understood.notes.append(f"{blank} as {treatment.missing:g}")
        if treatment.threshold is None:  # else all are listed
            understood.notes.append("pairs that are not listed as 0")
        graph = graph_of_pairs(pairs, None, treatment)
        if not graph.remarks and len({frozenset(pair[:2]) for pair in pairs}) == len(pairs):
            understood.notes.append("every pair in one direction, which counts in full")
    else:
        matrix, labels = _matrix(lines, where, understood, treatment.missing)
        graph = SynergyGraph(matrix, labels, **{**treatment.asked, "missing": None})
    remark = understood.line(where, graph)
    if tell is not None and remark is not None:
        tell(remark)
    return graph


def _many(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def found_mark(rows: Iterator[Row], where: str, understood: Understood) -> str:
    """Return the decimal mark: the first cell that leaves no doubt tells it."""
    doubtful: tuple[int, int, str] | None = None
    beside = None  # what the first row and column tell: if nobody has a name, they are numbers, too
    above = True
    for line, cells in rows:
        first = next((place for place, cell in enumerate(cells) if not is_empty(cell)), None)
        for column, cell in enumerate(cells):
            if isinstance(cell, float) or ("," not in cell and "." not in cell):
                continue
            found = decimal_mark(cell)
            if above or column == first:
                beside = beside or found
            elif found is not None:
                return found
            elif doubtful is None and ambiguous(cell):
                doubtful = line, column + 1, cell.strip()
        above = above and first is None
    if doubtful is None and beside is not None:
        return beside
    if doubtful is None:
        return "."
    line, column, cell = doubtful
    if "." in cell and understood.separator != ";":
        return "."  # as programs write it
    if "," in cell and understood.separator == ";":
        return ","  # where semicolons separate, commas do not
    plain = cell.replace(",", "").replace(".", "")
    raise InvalidInputError(
        f"{where}: line {line}, column {column}: {shown(cell)} may be {cell.replace(',', '.')} or"
        f" {plain}, and no other cell tells; write one of the two"
        + (" with a comma between the cells" if understood.separator == ";" else "")
    )


def _lines(rows: Iterator[Row], where: str, understood: Understood) -> list[_Line]:
    """Return the lines that are not empty, without empty columns before them.

    Numbers take less memory than their digits, so all but the first lines are read at once.
    """
    mark = understood.mark
    filled = _filled(rows, understood)
    head = _without_titles(list(itertools.islice(filled, HEAD)), understood)
    understood.margin = _margin([cells for _, cells in head], mark)
    lines: list[_Line] = []
    percent = False
    for line, cells in itertools.chain(head, filled):
        cells = cells[understood.margin :] or [""]
        rest = None if len(lines) < HEAD else _floats(cells[1:], mark)
        if rest is None:
            percent = percent or has_percent(cells)
            rest = None if len(lines) < HEAD else _read(cells[1:], mark)
        lines.append(_Line(line, cells[0], cells[1:] if rest is None else rest))
        used = lines[-1].used - 1 if len(cells) > MATRIX_LIMIT + 1 else 0  # one may be a name
        side = max(used, len(lines) - HEAD if len(cells) > WIDEST_PAIRS else 0)
        if side > MATRIX_LIMIT:
            check_matrix_shape((side, side))
    if percent:
        understood.notes.append("12% as 0.12")
    return lines


def _filled(rows: Iterator[Row], understood: Understood) -> Iterator[Row]:
    for line, cells in rows:
        if any(not is_empty(cell) for cell in cells):
            yield line, cells
        elif len(cells) > 1:
            understood.hollow += 1


def _margin(rows: list[list[Cell]], mark: str) -> int:
    """Return how many columns are empty before a table that begins with words.

    Before numbers they may be part of it: a triangle begins with nothing.
    """
    starts = [next(k for k, cell in enumerate(row) if not is_empty(cell)) for row in rows]
    margin = min(starts, default=0)
    words = any(len(row) > margin and number(row[margin], mark) is None for row in rows)
    return margin if words else 0


def _floats(cells: Sequence[Cell], mark: str) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """Return cells as numbers if they are written as programs write them: that is quick to see."""
    try:
        text = "\n".join(cells)  # type: ignore[arg-type]
    except TypeError:  # a spreadsheet's numbers
        return None
    if "_" in text or (mark == "," and "." in text):
        return None
    if mark == ",":
        pieces = text.replace(",", ".").split("\n")
        if len(pieces) != len(cells):  # a line end within a cell
            return None
        cells = pieces
    try:
        return np.array([float(cell) for cell in cells], np.float64)
    except ValueError:
        return None


def _read(cells: Sequence[Cell], mark: str) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """Return cells as numbers, however they are written."""
    numbers = [number(cell, mark) for cell in cells]
    if any(each is None for each in numbers):
        return None
    return np.array(numbers, np.float64)


def _without_titles(rows: list[Row], understood: Understood) -> list[Row]:
    """Leave out what stands above a table: lines with next to nothing in them but words."""
    filled = [[cell for cell in cells if not is_empty(cell)] for _, cells in rows]
    most = max(map(len, filled), default=0)
    titles = 0
    while most >= 3 and titles < len(rows) - 2:
        words = filled[titles]
        few = len(words) == 1 or len(words) < most / 2
        if not few or number(words[0], understood.mark) is not None:
            break
        titles += 1
    if titles:
        understood.notes.append(f"without {titles} {_many('title line', titles)}")
    return rows[titles:]


# -- a list of pairs -------------------------------------------------------------------------------


def _pairs(lines: list[_Line], where: str, understood: Understood) -> list[Pair] | None:
    """Return the pairs that a table lists, None if it is a matrix."""
    columns = _pair_columns(lines, understood.mark)
    if columns is None:
        return None
    a, b, w = columns
    headed = number(lines[0][w], understood.mark) is None
    pairs = []
    for line in lines[headed:]:
        names = [_name(line[column]) for column in (a, b)]
        weight = number(line[w], understood.mark)
        if "" in names:
            raise InvalidInputError(f"{where}: line {line.line} has no name for a player")
        if weight is None:
            raise _not_a_number(where, line, w, understood)
        pairs.append((names[0], names[1], weight))
    heads = " ".join(str(lines[0][column]).strip() for column in columns) if headed else ""
    headings = f" ({heads})" if headed else ""
    understood.notes.append(f"{len(pairs)} {_many('pair', len(pairs))}{headings}")
    return pairs


def _pair_columns(lines: list[_Line], mark: str) -> tuple[int, int, int] | None:
    width = max(line.used for line in lines)
    header, body = lines[0], lines[1:]
    if width < 3 or width > WIDEST_PAIRS:
        return None
    if not body:
        return (0, 1, 2) if width == 3 and _are_pairs(lines, (0, 1, 2), mark) else None
    named = [_name(cell) for cell in header.cells[:width]]
    if [_name(line.first) for line in body] == named[1:]:
        return None  # names on both sides
    by_words = pair_columns(named)
    if by_words is not None:
        square = len(body) == width == 3 and _symmetric(body, mark)
        return None if square else by_words
    beside = [_name(line.first) for line in body]
    if width == 4 and is_blank(header.first) and beside in _counted(len(body)):
        columns = (1, 2, 3)  # the first column numbers the rows
    elif width == 3:
        columns = (0, 1, 2)
    else:
        return None
    if _are_pairs(body, columns, mark):
        return columns
    headed = all(number(header[k], mark) is None for k in columns)
    return columns if _count_players(body if headed else lines, columns, mark, headed) else None


def _count_players(
    lines: list[_Line], columns: tuple[int, int, int], mark: str, headed: bool
) -> bool:
    """Tell whether lines are pairs of players that are numbers.

    Three rows of three numbers are a matrix; and its rows, 0 a b and a 0 c, would list a pair in
    both directions.
    """
    a, b, w = columns
    if len(lines) == 3 or not all(_is_whole(line[k]) for line in lines for k in (a, b)):
        return False
    ends = [frozenset((_name(line[a]), _name(line[b]))) for line in lines]
    distinct = headed or (len(set(ends)) == len(ends) and all(len(pair) == 2 for pair in ends))
    return distinct and all(number(line[w], mark) is not None for line in lines)


def _are_pairs(lines: list[_Line], columns: tuple[int, int, int], mark: str) -> bool:
    """Tell whether lines have two names, which are no numbers, and a number or nothing."""
    a, b, w = columns
    return all(
        all(_is_word(line[k], mark) for k in (a, b)) and number(line[w], mark) is not None
        for line in lines
    )


def _is_word(cell: Cell, mark: str) -> bool:
    """Tell whether a cell has a name that is no number; somebody may be called Na."""
    return _name(cell) != "" and (is_blank(cell) or number(cell, mark) is None)


def _is_whole(cell: Cell) -> bool:
    return cell.is_integer() if isinstance(cell, float) else cell.strip().isdigit()


def _symmetric(lines: list[_Line], mark: str) -> bool:
    rows = [_read(line.cells[:3], mark) for line in lines]
    if any(row is None or len(row) != 3 for row in rows):
        return False
    matrix = np.array(rows)
    return bool(np.array_equal(matrix, matrix.T, equal_nan=True))


def _name(cell: Cell) -> str:
    """Return a name; a spreadsheet's whole number is written without its .0."""
    if isinstance(cell, float):
        return "" if math.isnan(cell) else str(int(cell)) if cell.is_integer() else str(cell)
    return composed(cell.strip())


# -- a matrix --------------------------------------------------------------------------------------


def _matrix(
    lines: list[_Line], where: str, understood: Understood, missing: float | None
) -> tuple[FloatMatrix, list[str] | None]:
    """Return the synergies and the names, wherever they stand."""
    width = max(line.used for line in lines)
    body, labels, first = _laid_out(lines, width, where, understood)
    n = len(body)
    check_matrix_shape((n, n))
    matrix = np.empty((n, n))
    for k, line in enumerate(body):
        cut = understood.separator and len(line) - first not in (k, k + 1)  # no lower triangle
        if line.used > n + first or (cut and len(line) - first < n):
            raise InvalidInputError(
                f"{where}: the synergy matrix must be square, but line {line.line} has"
                f" {len(line) - first} numbers and there are {n} rows"
            )
        matrix[k] = _numbers(line, first, n, where, understood)
    if labels is not None and labels[-1].casefold() in TOTALS and n > 2:
        sums = np.nansum(matrix[:-1, :-1], axis=0)
        if np.allclose(matrix[-1, :-1], sums, rtol=1e-9, atol=0, equal_nan=False):
            raise InvalidInputError(
                f"{where}: the last player, {shown(labels[-1])}, is the sum of the others; leave"
                " out its row and its column"
            )
    return _known(matrix, body, labels, first, where, understood, missing), labels


def _laid_out(
    lines: list[_Line], width: int, where: str, understood: Understood
) -> tuple[list[_Line], list[str] | None, int]:
    """Return the lines of numbers, the names, and the column where the numbers begin."""
    header, body = lines[0], lines[1:]
    beside = [_name(line.first) for line in body]
    if len(lines) == width and _has_names(lines, width, understood.mark):
        if (
            header.used == width - 1
            and [_name(cell) for cell in header.cells[: width - 1]] == beside
        ):
            return body, beside, 1  # R leaves out the corner
        above = [_name(header[column]) for column in range(1, width)]
        return body, _agreed(above, beside, body, where, understood), 1
    if len(lines) == width:
        return lines, None, 0
    words = [_name(cell) for cell in header.cells[:width]]
    if (
        len(lines) == width + 1
        and all(words)
        and header.used == width
        and (
            all(number(word, understood.mark) is None for word in words)
            or (words in _counted(width) and _idle(body, understood.mark))
        )
    ):
        understood.notes.append("names in the header only")
        return body, words, 0
    names = [_name(line.first) for line in lines]
    if len(lines) == width - 1 and all(
        name and number(name, understood.mark) is None for name in names
    ):
        understood.notes.append("names in the first column only")
        return lines, names, 1
    raise _not_square(lines, width, where, understood.mark)


def _idle(body: list[_Line], mark: str) -> bool:
    """Tell whether nobody has anything with themselves: above, numbers are names, not synergies."""
    own = [number(line[k], mark) for k, line in enumerate(body)]
    return all(each == 0.0 or (each is not None and math.isnan(each)) for each in own)


def _has_names(lines: list[_Line], width: int, mark: str) -> bool:
    """Tell whether a square has names: its corner is no number, or no name is one."""
    corner, mirrored = lines[0].first, range(1, width)
    above, beside = [lines[0][k] for k in mirrored], [line.first for line in lines[1:]]
    words = [number(name, mark) is None for name in (*above, *beside)]
    if not is_blank(corner):
        return number(corner, mark) is None or (bool(words) and all(words))
    if any(words) or not all(is_blank(lines[k][k]) for k in mirrored):
        return True
    # Numbers beside and above a blank corner and a blank diagonal: counted players, or synergies.
    return list(map(_name, above)) in _counted(width - 1)


def _counted(n: int) -> list[list[str]]:
    """Return how programs number n rows."""
    return [list(map(str, range(first, n + first))) for first in (0, 1)]


def _agreed(
    above: list[str], beside: list[str], body: list[_Line], where: str, understood: Understood
) -> list[str]:
    """Return the names that the header and the first column agree on."""
    counted = _counted(len(above))
    if above == beside and all(above):
        return above
    if (beside in counted or not any(beside)) and all(above):
        understood.notes.append("names in the header only")
        return above
    if (above in counted or not any(above)) and all(beside):
        understood.notes.append("names in the first column only")
        return beside
    if not all(above) and not all(beside):
        raise InvalidInputError(
            f"{where}: a player has no name, neither in the header nor in the first column; names"
            " stand in one of them, or in both"
        )
    wrong = next(k for k, names in enumerate(zip(beside, above, strict=True)) if len({*names}) > 1)
    raise InvalidInputError(
        f"{where}: line {body[wrong].line} is named {shown(beside[wrong])}, but column {wrong + 2}"
        f" is {shown(above[wrong])}; names must be in the header and in the first column, in one"
        " order, or in neither"
    )


def _not_square(lines: list[_Line], width: int, where: str, mark: str) -> InvalidInputError:
    if any(number(cell, mark) is None for cell in lines[0].cells):
        return InvalidInputError(
            f"{where}: the synergy matrix must be square, but the header names"
            f" {lines[0].used - 1} players and there are {len(lines) - 1} rows (names stand in the"
            " header, in the first column, in both or in neither; a list of pairs has three"
            " columns)"
        )
    odd = next((line for line in lines if line.used != len(lines)), lines[0])
    return InvalidInputError(
        f"{where}: the synergy matrix must be square, but line {odd.line} has {odd.used} numbers"
        f" and there are {len(lines)} rows"
    )


def _numbers(
    line: _Line, first: int, n: int, where: str, understood: Understood
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the n numbers of a line, NaN where it is blank or ends before."""
    cells: Sequence[Cell] | np.ndarray[Any, Any] = line.rest if first else line.cells
    numbers = cells if isinstance(cells, np.ndarray) else _read(cells[:n], understood.mark)
    if numbers is None:
        wrong = next(k for k, cell in enumerate(cells) if number(cell, understood.mark) is None)
        raise _not_a_number(where, line, wrong + first, understood)
    row = np.full(n, math.nan)
    row[: len(numbers)] = numbers[:n]
    return row


def _not_a_number(
    where: str, line: _Line, column: int, understood: Understood
) -> InvalidInputError:
    cell = str(line[column]).strip()
    why = "is not a number"
    if cell.startswith("#"):
        why = "is a spreadsheet's error, not a number"
    elif number(cell, "." if understood.mark == "," else ",") is not None:
        other = "comma" if understood.mark == "," else "point"
        why = f"is not a number with a decimal {other}, as others here are"
    return InvalidInputError(
        f"{where}: line {line.line}, column {column + understood.margin + 1}: {shown(cell)} {why}"
    )


def _known(
    matrix: FloatMatrix,
    body: list[_Line],
    labels: list[str] | None,
    first: int,
    where: str,
    understood: Understood,
    missing: float | None,
) -> FloatMatrix:
    """Return the matrix with blank cells filled in: by the mirrored cell, or by `missing`."""
    diagonal = np.isnan(np.diag(matrix))
    if diagonal.any():
        np.fill_diagonal(matrix, np.where(diagonal, 0.0, np.diag(matrix)))
        understood.notes.append("a blank diagonal")
    a, b = np.nonzero(np.isnan(matrix))
    if not len(a):
        return matrix
    matrix[a, b] = matrix[b, a]
    still = np.isnan(matrix[a, b])
    mirrored, unknown = int((~still).sum()), int(still.sum()) // 2
    if mirrored:
        understood.notes.append(
            "one triangle for both"
            if not (a > b)[~still].any() or not (a < b)[~still].any()
            else f"{mirrored} blank {_many('cell', mirrored)} as mirrored"
        )
    if mirrored == len(matrix) * (len(matrix) - 1) // 2 and labels is None and understood.hollow:
        raise InvalidInputError(
            f"{where}: is one triangle of a matrix, with empty lines that may be players; give the"
            " players names, or write 0 on the diagonal"
        )
    if unknown and missing is None:
        i, j = a[still][0], b[still][0]
        one, other = (str(k) if labels is None else labels[k] for k in (i, j))
        others = f", nor of {unknown - 1} more {_many('pair', unknown - 1)}" if unknown > 1 else ""
        raise InvalidInputError(
            f"{where}: nothing is known of {one!r} and {other!r} (line {body[i].line}, column"
            f" {j + first + understood.margin + 1} is blank){others}; fill in what is missing, or"
            " say what it is worth: missing=0"
        )
    if unknown and missing is not None:
        matrix[np.isnan(matrix)] = _finite(missing)
        understood.notes.append(f"{unknown} blank {_many('pair', unknown)} as {missing:g}")
    return matrix


def _finite(missing: float) -> float:
    if not math.isfinite(missing):
        raise InvalidInputError(f"missing is {missing}; it must be a finite number")
    return missing
