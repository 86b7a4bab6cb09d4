"""`coalitions show`: what a command once printed, again from the files that it left."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.terminal.output import Json, print_json
from coalitions.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable

    Printer = Callable[[dict[str, Any]], None]


def show_command(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|FILE",
            help="Folder of a run, or of `compare --out`; or JSON that `solve --output` wrote.",
        ),
    ],
    json_output: Json = False,
) -> None:
    """Print again what a run, a comparison or `solve` printed: nothing is computed.

    Example: coalitions show runs/first
    """
    document, printer = _found(path)
    if json_output:
        print_json(document)
    else:
        printer(document)


def _found(path: Path) -> tuple[dict[str, Any], Printer]:
    """Return the document of a folder or a file, and what prints it."""
    from solvers.solution_file import read_document

    if not path.is_dir():
        return _solution(path)
    if (path / "result.json").is_file():
        from cli.federation.run import print_result
        from learners.runs.reading import read_result

        return (read_result(path) or {}) | {"out": str(path)}, print_result
    if (path / "comparison.json").is_file():
        return read_document(path / "comparison.json"), _print_comparison
    if (path / "config.toml").is_file():
        raise InvalidInputError(
            f"{path}: the run has no result yet; coalitions resume {path} goes on with it"
        )
    raise InvalidInputError(
        f"{path}: is no folder of a run, and has no comparison.json; coalitions report draws the"
        " runs in a folder"
    )


def _print_comparison(document: dict[str, Any]) -> None:
    from cli.experiments.compare import Target

    Target("table", None, "", by_domain=False).write(document)


def _solution(path: Path) -> tuple[dict[str, Any], Printer]:
    """Return the document of a solution, once what is printed of it has been checked."""
    from cli.games.solve import print_solution
    from solvers.solution_file import links_of, number_of, read_document, sizes_of, structure_of

    document = read_document(path)
    blocks = document.get("coalitions")
    if not isinstance(blocks, list) or not all(isinstance(block, list) for block in blocks):
        raise InvalidInputError(f'{path}: expected an object with "coalitions": [[names…]…]')
    names = tuple(str(name) for block in blocks for name in block)
    players: Any = SimpleNamespace(labels=names, n_players=len(names))
    structure_of(document, players, path)
    links_of(document, players, path)
    sizes_of(document, players, path)
    for key in ("value", "bound", "gap", "seconds"):
        if number_of(document, key, path) is None:
            raise InvalidInputError(f'{path}: has no "{key}", which solve --output writes')
    for key in ("optimal", "solver"):
        if key not in document:
            raise InvalidInputError(f'{path}: has no "{key}", which solve --output writes')
    inside = document.get("synergies_inside")
    if inside is not None and (
        not isinstance(inside, list)
        or len(inside) != len(blocks)
        or not all(isinstance(worth, int | float) for worth in inside)
    ):
        raise InvalidInputError(f'{path}: "synergies_inside" must list a number for each coalition')
    return document, print_solution


COMMANDS = {"show": show_command}
