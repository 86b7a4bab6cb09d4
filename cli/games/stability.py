"""`coalitions stability`: who would leave a coalition structure, and whereto."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.games._demands import structures_in_words
from cli.games._game_file import read_game
from cli.terminal.output import (
    Format,
    GameFile,
    Json,
    Missing,
    Quiet,
    Symmetrise,
    Threshold,
    figure,
    print_json,
    split_names,
    stdout,
    visible,
)
from coalitions.errors import BudgetError
from coalitions.formatting import listed, quoted
from solvers.solution_file import check_reading, links_of, read_document, sizes_of, structure_of

if TYPE_CHECKING:
    from coalitions.structures.stability import Deviation


def stability_command(
    graph: GameFile,
    structure: Annotated[
        Path, typer.Argument(help='JSON with "coalitions", as `solve --output` writes it.')
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
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check whether a coalition structure is stable, and show a move that breaks it.

    Example: coalitions stability examples/data/three_domains.csv solution.json
    """
    from coalitions.structures.stability import NOTIONS, find_deviation
    from coalitions.values.owen_myerson import payoffs

    reading: dict[str, Any] = {"symmetrise": symmetrise, "missing": missing, "threshold": threshold}
    game = read_game(graph, file_format=file_format, quiet=quiet, **reading)
    recorded = read_document(structure)
    blocks = structure_of(recorded, game, structure)
    shares = payoffs(game, blocks)
    check_reading(recorded, float(shares.values.sum()), reading, structure)
    links, sizes = links_of(recorded, game, structure), sizes_of(recorded, game, structure)
    asked = structures_in_words(game.labels, links["must_link"], links["cannot_link"], **sizes)
    wanted = split_names(notion, "--notion") or NOTIONS.names()
    for name in wanted:
        NOTIONS[name]  # a misspelt name is told before any search starts
    findings: dict[str, Any] = {}
    for name in wanted:
        try:
            findings[name] = _finding(find_deviation(game, blocks, name), game.labels)
        except BudgetError as error:
            findings[name] = {"stable": None, "deviation": None, "reason": str(error)}
    document = {
        "coalitions": [[game.labels[player] for player in block] for block in blocks],
        "payoffs": {name: float(x) for name, x in zip(game.labels, shares, strict=True)},
        "notions": findings,
        "not_demanded": asked,
    }
    if json_output:
        print_json(document)
    else:
        _print(document)
        if asked is not None:
            stdout().print(
                f"\nNot demanded here: {visible(asked)}, as {structure} records it. Moves may"
                " need not keep to that.",
                soft_wrap=True,
            )


def _finding(deviation: Deviation | None, labels: tuple[str, ...]) -> dict[str, Any]:
    if deviation is None:
        return {"stable": True, "deviation": None}
    return {
        "stable": False,
        "deviation": {
            "movers": [labels[player] for player in deviation.movers],
            "coalition": [labels[player] for player in deviation.coalition],
            "before": list(deviation.before),
            "after": list(deviation.after),
        },
    }


def _print(document: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table("notion", "stable", "deviation", box=None, pad_edge=False)
    for name, finding in document["notions"].items():
        word = {True: "yes", False: "no", None: "unknown"}[finding["stable"]]
        table.add_row(name, word, visible(_sentence(finding)))
    stdout().print(table)


def _sentence(finding: dict[str, Any]) -> str:
    move = finding["deviation"]
    if move is None:
        return str(finding.get("reason", ""))
    movers, coalition = move["movers"], move["coalition"]
    before, after = sum(move["before"]), sum(move["after"])
    gain = f"{figure(before, 6)} → {figure(after, 6)}"
    if movers == coalition:
        verb = "leaves alone" if len(movers) == 1 else "form a coalition"
        return f"{listed(movers)} {verb}: {gain}"
    others = [name for name in coalition if name not in movers]
    return f"{quoted(movers[0])} joins {listed(others)}: {gain}"


COMMANDS = {"stability": stability_command}
