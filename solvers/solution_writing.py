"""Solutions written to files: JSON, which is read back; a table, a workbook, a page for people."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalitions.characters import decimal, figure, listed, visible
from coalitions.errors import InvalidInputError
from coalitions.extras import needed
from coalitions.files.writing import write_json, write_whole

if TYPE_CHECKING:
    from solvers.solution import Solution

ENDINGS = (".json", ".csv", ".xlsx", ".md", ".html")
"""What the name of a solution's file can end in; the ending says what is written."""

MOST_SHEET_ROWS, MOST_CELL = 1_048_576, 32_767
"""Rows of a sheet of Excel, and characters of a cell."""


def check_solution_path(path: Path) -> None:
    """Refuse a name that does not say how to write a solution; ask before a long search.

    Raises
    ------
    InvalidInputError
        The ending is none of `ENDINGS`.
    MissingDependencyError
        openpyxl, which writes .xlsx, is not installed.
    """
    if path.suffix.lower() not in ENDINGS:
        raise InvalidInputError(
            f"{path}: its ending does not say what to write; end the name in"
            f" {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
        )
    if path.suffix.lower() == ".xlsx":
        needed("openpyxl")


def save_solution(
    solution: Solution, path: Path, document: Mapping[str, Any] | None = None
) -> None:
    """Write a solution to a file, which is there when it is complete; see `Solution.save`.

    Parameters
    ----------
    solution
        The solution.
    path
        The file.
    document
        What a JSON file gets, if it is not that of `solution_document`.
    """
    check_solution_path(path)
    ending = path.suffix.lower()
    if ending == ".json":
        write_json(path, solution_document(solution) if document is None else document)
    elif ending == ".csv":
        write_whole(path, _csv(solution))
    elif ending == ".xlsx":
        write_whole(path, _workbook(solution))
    elif ending == ".md":
        write_whole(path, _markdown(solution).encode())
    else:
        write_whole(path, _page(solution).encode())


def solution_document(solution: Solution) -> dict[str, Any]:
    """Return a solution as plain values, its players by name, with what was demanded."""
    names = names_of(solution)
    others = [
        {
            "coalitions": [[names[player] for player in block] for block in other.structure],
            "value": decimal(other.value),
            "bound": decimal(other.bound),
            "optimal": other.optimal,
        }
        for other in solution.others
    ]
    links = {"must_link": solution.must_link, "cannot_link": solution.cannot_link}
    return {
        "coalitions": [[names[player] for player in block] for block in solution.structure],
        "value": decimal(solution.value),
        "bound": decimal(solution.bound),
        "gap": solution.gap,
        "optimal": solution.optimal,
        "seconds": solution.seconds,
        "solver": solution.solver,
        "players": solution.structure.n_players,
        **{
            name: [[names[a], names[b]] for a, b in pairs] for name, pairs in links.items() if pairs
        },
        **_plain_sizes(solution, names),
        **({"others": others} if others else {}),
        **({"others_note": solution.stats["others"]} if "others" in solution.stats else {}),
    }


def names_of(solution: Solution) -> Sequence[str]:
    """Return the names of the players; those of a game are their numbers."""
    if solution.graph is not None:
        return solution.graph.labels
    return tuple(map(str, range(solution.structure.n_players)))


def _plain_sizes(solution: Solution, names: Sequence[str]) -> dict[str, Any]:
    """Return demands on coalitions and their number as plain values, players by name."""
    from coalitions.structure import numbering

    number = numbering(solution.graph)
    plain: dict[str, Any] = {}
    for name, demand in solution.sizes.items():
        if name == "weights":
            if isinstance(demand, Mapping):
                places = [number(player) for player in demand]
                loads = dict(zip(places, demand.values(), strict=True))
            else:
                loads = dict(enumerate(demand))
            plain[name] = {names[place]: float(load) for place, load in loads.items()}
        elif name == "at_least_one_of":
            plain[name] = [[names[number(player)] for player in role] for role in demand]
        elif name == "n_groups" and isinstance(demand, Sequence):
            plain[name] = [int(each) for each in demand]
        else:
            plain[name] = float(demand) if name == "max_weight" else int(demand)
    return plain


Cell = str | int | float
Table = list[list[Cell]]
"""Rows of cells, the headings first."""


def _players(solution: Solution) -> Table:
    """Return a row for each player: its name, and its coalition in each of the structures.

    Coalitions are numbered from 1, as they are printed.
    """
    names, structures = names_of(solution), [solution, *solution.others]
    heads = ["coalition", *(f"coalition in structure {k}" for k in range(2, len(structures) + 1))]
    labels = [each.structure.labels + 1 for each in structures]
    order = [player for block in solution.structure for player in block]
    rows: Table = [[names[player], *(int(each[player]) for each in labels)] for player in order]
    return [["player", *heads], *rows]


def _coalitions(solution: Solution) -> Table:
    """Return a row for each coalition: its number, its size, who is in it, the synergy inside."""
    heads: list[Cell] = ["coalition", "players", "names"]
    rows: Table = [
        [number, len(block), listed(block)] for number, block in enumerate(solution.named, 1)
    ]
    if solution.graph is not None:
        heads.append("synergy inside")
        for row, worth in zip(rows, solution.graph.inside(solution.structure), strict=True):
            row.append(decimal(float(worth)))
    return [heads, *rows]


def _structures(solution: Solution) -> Table:
    """Return a row for each structure: what it is worth, and whether that is proven."""
    rows: Table = [
        [number, decimal(each.value), decimal(each.bound), "yes" if each.optimal else "no"]
        for number, each in enumerate([solution, *solution.others], 1)
    ]
    return [["structure", "value", "at most", "proven"], *rows]


def _csv(solution: Solution) -> bytes:
    """Return the table of players; with the mark by which Excel knows UTF-8."""
    text = io.StringIO()
    csv.writer(text).writerows(
        [_no_formula(cell) if isinstance(cell, str) else cell for cell in row]
        for row in _players(solution)
    )
    return text.getvalue().encode("utf-8-sig")


def _no_formula(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: an apostrophe before what begins one.

    Examples
    --------
    >>> _no_formula("=1+1"), _no_formula("Ann")
    ("'=1+1", 'Ann')
    """
    return f"'{text}" if re.match(r"\s*[=+\-@]|[\t\r]", text) else text


def _workbook(solution: Solution) -> bytes:
    """Return a workbook of three sheets: players, coalitions, structures."""
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    tables = {"players": _players, "coalitions": _coalitions, "structures": _structures}
    for title, table in tables.items():
        sheet, rows = book.create_sheet(title), table(solution)
        if len(rows) > MOST_SHEET_ROWS:
            raise InvalidInputError(
                f"a sheet of Excel has {MOST_SHEET_ROWS:,} rows at most, not {len(rows):,}; write"
                " .csv"
            )
        for i, row in enumerate(rows, 1):
            for j, value in enumerate(row, 1):
                cell = sheet.cell(i, j)
                if isinstance(value, str):
                    text = visible(value)
                    cell.value = text if len(text) <= MOST_CELL else f"{text[: MOST_CELL - 1]}…"
                    cell.data_type, cell.quotePrefix = "s", _no_formula(value) != value
                else:
                    cell.value = value
        sheet.freeze_panes = "A2"
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def _markdown(solution: Solution) -> str:
    """Return the tables in Markdown."""

    def shown(cell: Cell) -> str:
        if not isinstance(cell, str):
            return figure(cell)
        return re.sub(r"([\\`*_{}\[\]<>()#+\-.!|&~])", r"\\\1", visible(cell))

    parts = [f"# Coalitions\n\n{verdict(solution)}"]
    for title, table in (("Coalitions", _coalitions), ("Players", _players)):
        head, *rows = table(solution)
        lines = [[*map(str, head)], ["---"] * len(head), *([*map(shown, row)] for row in rows)]
        drawn = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts.append(f"## {title}\n\n{drawn}")
    return "\n\n".join(parts) + "\n"


def _page(solution: Solution) -> str:
    """Return the tables as a page that needs nothing but itself."""
    from coalitions.drawing.document import html_document, words

    body = ["<h1>Coalitions</h1>", f"<p>{words(verdict(solution))}</p>"]
    for title, table in (("Coalitions", _coalitions), ("Players", _players)):
        head, *rows = table(solution)
        told = [
            "".join(f"<td>{words(c if isinstance(c, str) else figure(c))}</td>" for c in row)
            for row in rows
        ]
        heads = "".join(f"<th>{words(str(cell))}</th>" for cell in head)
        body += [
            f"<h2>{title}</h2>",
            f"<table><thead><tr>{heads}</tr></thead><tbody>",
            *(f"<tr>{row}</tr>" for row in told),
            "</tbody></table>",
        ]
    return html_document("Coalitions", body, data={}, scripts=[], style=STYLE) + "\n"


STYLE = """body { font-family: sans-serif; margin: 2em; }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid #ccc; padding: 0.2em 1em 0.2em 0; text-align: left; }
"""


def verdict(solution: Solution) -> str:
    """Return in a sentence what a solution is worth, and whether that is the most."""
    proven = (
        "no structure is worth more"
        if solution.optimal
        else f"not proven: at most {figure(solution.bound)} is possible"
    )
    demanded = solution.must_link or solution.cannot_link or solution.sizes
    among = " among those that meet the demands" if demanded and solution.optimal else ""
    return f"Value {figure(solution.value)}: {proven}{among}. Found by {solution.solver}."
