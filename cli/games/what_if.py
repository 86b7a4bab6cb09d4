"""`coalitions what-if`: what it costs to have players together, or apart."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.games._demands import DemandFlags, names_in, takes_demands
from cli.games._game_file import read_graph
from cli.terminal.output import (
    Format,
    GraphFile,
    Json,
    Missing,
    Quiet,
    Symmetrise,
    Threshold,
    decimal,
    figure,
    print_json,
    stdout,
    visible,
)
from coalitions.errors import InvalidInputError
from coalitions.formatting import listed, players_by_name


@takes_demands
def what_if_command(
    file: GraphFile,
    together: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,…", help="The wish: players in one coalition; may be repeated."),
    ] = None,
    apart: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,…", help="The wish: players all apart; may be repeated."),
    ] = None,
    demands: DemandFlags = DemandFlags(),
    solver: Annotated[str, typer.Option(help="Method, as for `coalitions solve`.")] = "auto",
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds of wall time for both searches.")
    ] = None,
    symmetrise: Symmetrise = None,
    threshold: Threshold = None,
    missing: Missing = None,
    file_format: Format = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what a wish costs: the best structure with it and without it.

    Example: coalitions what-if examples/data/three_domains.csv --together mnist-1,svhn-1
    """
    from solvers import what_if

    if not together and not apart:
        raise InvalidInputError("there is no wish: give --together a,b or --apart a,b")
    graph = read_graph(
        file,
        file_format=file_format,
        symmetrise=symmetrise,
        missing=missing,
        threshold=threshold,
        quiet=quiet,
    )
    labels = graph.labels
    sizes = demands.sizes(labels)
    wish = what_if(
        graph,
        solver,
        together=_groups(together, labels, "--together"),
        apart=_groups(apart, labels, "--apart"),
        time_limit=time_limit,
        **demands.links(labels),
        **sizes,
    )
    document: dict[str, Any] = {
        "cost": decimal(wish.cost),
        "value": decimal(wish.solution.value),
        "base_value": decimal(wish.base.value),
        "coalitions": _named(wish.solution.structure, labels),
        "base_coalitions": _named(wish.base.structure, labels),
        "optimal": wish.optimal,
        "cost_range": [decimal(each) for each in wish.cost_range],
    }
    if json_output:
        print_json(document)
        return
    least, most = wish.cost_range
    costs = "nothing" if wish.cost == 0 else figure(wish.cost)
    between = f"not proven: it is between {figure(least)} and {figure(most)}"
    proven = "proven" if wish.optimal else between
    console = stdout()
    console.print(f"the wish costs {costs} ({proven})", soft_wrap=True)
    for title, solution in (("without it", wish.base), ("with it", wish.solution)):
        blocks = " | ".join(map(listed, _named(solution.structure, labels)))
        console.print(f"{title}, {figure(solution.value)}: {visible(blocks)}", soft_wrap=True)


def _groups(groups: list[str] | None, labels: tuple[str, ...], option: str) -> list[list[int]]:
    """Return the players of each comma-separated group of names."""
    return [players_by_name(names_in(group, labels), labels, option) for group in groups or ()]


def _named(structure: Any, labels: tuple[str, ...]) -> list[list[str]]:  # noqa: ANN401 (lazy import)
    return [[labels[player] for player in block] for block in structure]


COMMANDS = {"what-if": what_if_command}
