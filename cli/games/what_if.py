"""`coalitions what-if`: what it costs to have players together, or apart."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.games._demands import DemandFlags, names_in, takes_demands
from cli.games._game_file import read_graph
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
    print_json,
    save_output,
    stdout,
)
from coalitions.errors import InvalidInputError
from coalitions.formatting import players_by_name, visible_lines


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
    output: Output = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what a wish costs: the best structure with it and without it.

    Example: coalitions what-if examples/data/three_domains.csv --together mnist-1,svhn-1
    """
    from solvers import what_if

    check_output(output)
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
    if json_output:
        print_json(wish.to_dict())
    else:
        stdout().print(visible_lines(str(wish)), soft_wrap=True)
    said = str(wish).splitlines()[0]
    save_output(output, {"structures": wish}, wish.to_dict(), title="Wish", said=said)


def _groups(groups: list[str] | None, labels: tuple[str, ...], option: str) -> list[list[int]]:
    """Return the players of each comma-separated group of names."""
    return [players_by_name(names_in(group, labels), labels, option) for group in groups or ()]


COMMANDS = {"what-if": what_if_command}
