"""`coalitions stability`: who would leave a coalition structure, and whereto."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.games._game_file import read_game
from cli.terminal.output import (
    Format,
    GameFile,
    Json,
    Missing,
    Output,
    Quiet,
    Symmetrise,
    Threshold,
    check_output,
    print_json,
    save_output,
    split_names,
    stdout,
    visible,
)
from solvers.solution_file import check_reading, links_of, read_document, sizes_of, structure_of


def stability_command(
    graph: GameFile,
    solution: Annotated[
        Path,
        typer.Argument(
            metavar="SOLUTION", help='JSON with "coalitions", as `solve --output` writes it.'
        ),
    ],
    notion: Annotated[
        list[str] | None,
        typer.Option(
            help="nash, individual, contractual-nash, contractual-individual, core, strict-core or"
            " transferable-core; several with commas. Default: all."
        ),
    ] = None,
    symmetrise: Symmetrise = None,
    threshold: Threshold = None,
    missing: Missing = None,
    file_format: Format = None,
    output: Output = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check whether a coalition structure is stable, and show a move that breaks it.

    Example: coalitions stability examples/data/three_domains.csv solution.json
    """
    from coalitions.structures.stability import deviations
    from coalitions.values.owen_myerson import payoffs
    from solvers.drawing.solution_tables import structures_in_words

    check_output(output)
    reading: dict[str, Any] = {"symmetrise": symmetrise, "missing": missing, "threshold": threshold}
    game = read_game(graph, file_format=file_format, quiet=quiet, **reading)
    recorded = read_document(solution)
    blocks = structure_of(recorded, game, solution)
    check_reading(recorded, sum(payoffs(game, blocks)), reading, solution)
    found = deviations(game, blocks, split_names(notion, "--notion") or None)
    links, sizes = links_of(recorded, game, solution), sizes_of(recorded, game, solution)
    asked = structures_in_words(game.labels, links["must_link"], links["cannot_link"], **sizes)
    document = found.to_dict() | {"not_demanded": asked}
    said = ""
    if asked is not None:
        said = (
            f"Not demanded here: {visible(asked)}, as {solution} records it. Moves may need not"
            " keep to that."
        )
    if json_output:
        print_json(document)
    else:
        stdout().print(str(found), soft_wrap=True)
        if said:
            stdout().print(f"\n{said}", soft_wrap=True)
    save_output(
        output,
        {"notions": found, "payoffs": found.payoffs},
        document,
        title="Stability",
        said=said,
    )


COMMANDS = {"stability": stability_command}
