"""`coalitions explain`: why a player is where it is, and which pairs are fragile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.games._game_file import read_graph
from cli.terminal.flags import in_flags
from cli.terminal.output import (
    Format,
    GraphFile,
    Json,
    Missing,
    Output,
    Quiet,
    Symmetrise,
    Threshold,
    check_output,
    figure,
    print_json,
    save_output,
    stdout,
    visible,
)
from coalitions.errors import InvalidInputError
from coalitions.formatting import players_by_name, quoted
from solvers.solution_file import check_reading, links_of, read_document, sizes_of, structure_of

if TYPE_CHECKING:
    from solvers.alternatives.fragile_pairs import FragilePair

LISTED = 10
"""Fragile pairs that are listed where no player is named, unless told otherwise."""


def explain_command(
    file: GraphFile,
    solution: Annotated[
        Path, typer.Argument(help='JSON with "coalitions", as `solve --output` writes it.')
    ],
    player: Annotated[
        str | None,
        typer.Argument(help="Player to explain; without one, list the most fragile pairs."),
    ] = None,
    fragile: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of fragile pairs to list; 0 is quicker. [default: 1 for a player,"
            f" else {LISTED}]",
            min=0,
        ),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(help="Seconds for fragile pairs; later ones get bounds.")
    ] = 5.0,
    symmetrise: Symmetrise = None,
    threshold: Threshold = None,
    missing: Missing = None,
    file_format: Format = None,
    output: Output = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Explain why a player is in its coalition, and what its best alternative is.

    Fragile pairs are those whose synergy need change least before another structure is better.

    Example: coalitions explain examples/data/three_domains.csv solution.json mnist-1
    """
    from solvers import explain
    from solvers import fragile as fragile_pairs

    check_output(output)
    if not time_limit > 0:
        raise InvalidInputError(f"--time-limit is {time_limit}; it must be a positive number")
    reading: dict[str, Any] = {"symmetrise": symmetrise, "missing": missing, "threshold": threshold}
    graph = read_graph(file, file_format=file_format, quiet=quiet, **reading)
    recorded = read_document(solution)
    structure = structure_of(recorded, graph, solution)
    check_reading(recorded, graph.value(structure), reading, solution)
    demands: dict[str, Any] = {
        **links_of(recorded, graph, solution),
        **sizes_of(recorded, graph, solution),
    }
    if player is None:
        most = LISTED if fragile is None else fragile
        pairs = fragile_pairs(graph, structure, time_limit=time_limit, **demands)[:most]
        document: dict[str, Any] = {}
        why = None
    else:
        (number,) = players_by_name([player], graph.labels, "PLAYER")
        most = 1 if fragile is None else fragile
        why = explain(
            graph,
            structure,
            number,
            fragile_pairs=most > 0,
            time_limit=time_limit,
            **demands,
        )
        pairs = why.fragile[:most]
        text = in_flags(why.text, {"all_optimal": "--all-optimal"})
        document = why.to_dict() | {"text": text}
    document["fragile"] = [pair.to_dict() for pair in pairs]
    if json_output:
        print_json(document)
    else:
        if why is not None:
            stdout().print(visible(document["text"]), soft_wrap=True)
        if fragile or why is None:
            _print_pairs(pairs)
    margins = [pair.to_dict() | {"margin": pair.margin, "at_most": pair.at_most} for pair in pairs]
    save_output(
        output,
        ({} if why is None else {"partners": why}) | {"fragile pairs": margins},
        document,
        title="Fragile pairs" if why is None else str(document["player"]),
        said=document.get("text", ""),
    )


def _print_pairs(pairs: Sequence[FragilePair]) -> None:
    from rich.table import Table

    table = Table("pair", "are", "synergy", "may change by", "", box=None, pad_edge=False)
    table.columns[2].justify = table.columns[3].justify = "right"
    for pair in pairs:
        names = " and ".join(map(quoted, pair.named))
        margin = "any amount" if math.isinf(pair.margin) else figure(pair.margin)
        doubt = "no limit known" if math.isinf(pair.at_most) else f"at most {figure(pair.at_most)}"
        table.add_row(
            visible(names),
            "together" if pair.together else "apart",
            figure(pair.synergy),
            margin,
            "" if pair.exact else f"for sure; {doubt}",
        )
    stdout().print(table)


COMMANDS = {"explain": explain_command}
