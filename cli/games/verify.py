"""`coalitions verify`: check a solution, and the proof of its bound, without any solver."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.games._demands import DemandFlags, Pairs, takes_demands
from cli.games._game_file import read_graph
from cli.terminal.output import (
    Format,
    Json,
    Missing,
    Quiet,
    Symmetrise,
    Threshold,
    figure,
    print_json,
    stdout,
    visible,
)
from coalitions.errors import InvalidInputError, RefusedError, spoken
from solvers.solution_file import (
    check_reading,
    links_of,
    number_of,
    read_document,
    sizes_of,
    structure_of,
)

if TYPE_CHECKING:
    from coalitions.graph import SynergyGraph
    from solvers.proofs.verification import Verification


@takes_demands
def verify_command(
    graph_file: Annotated[str, typer.Argument(metavar="GRAPH", help="The synergy graph.")],
    solution_file: Annotated[
        Path, typer.Argument(metavar="SOLUTION", help="JSON that solve --output wrote.")
    ],
    certificate: Annotated[
        Path | None, typer.Option(help="Proof that solve --certificate wrote.")
    ] = None,
    demands: DemandFlags = DemandFlags(),
    symmetrise: Symmetrise = None,
    threshold: Threshold = None,
    missing: Missing = None,
    file_format: Format = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check a solution: its partition, its value and, with a certificate, its bound.

    The demands come from the solution file, or from the flags if the file has none. Repeat
    --symmetrize, --threshold and --missing: the proof is for the graph as it was read.
    The exit code is 1 if a claim is false, and 2 if something cannot be read.

    Example: coalitions verify examples/data/three_domains.csv solution.json
    """
    from solvers.proofs.certificate import Certificate
    from solvers.proofs.verification import verify

    reading: dict[str, Any] = {"symmetrise": symmetrise, "missing": missing, "threshold": threshold}
    graph = read_graph(graph_file, file_format=file_format, quiet=quiet, **reading)
    document = read_document(solution_file)
    structure = structure_of(document, graph, solution_file)
    check_reading(document, graph.value(structure), reading, solution_file)
    recorded = links_of(document, graph, solution_file)
    links: dict[str, Any] = {}
    links |= _links(recorded, demands.links(graph.labels), graph, solution_file)
    recorded_sizes = sizes_of(document, graph, solution_file)
    sizes = _sizes(recorded_sizes, demands.sizes(graph.labels), graph, solution_file)
    proof = None if certificate is None else Certificate.read(certificate)
    checked = verify(graph, structure, proof, **links, **sizes)
    _compare(document, "value", checked.value, checked.positive_weight, solution_file)
    if checked.bound is not None:
        _compare(document, "bound", checked.bound, checked.positive_weight, solution_file)
    statement = _statement(checked, graph, sizes)
    if json_output:
        print_json(checked.to_dict() | sizes | {"statement": statement})
        return
    console = stdout()
    console.print(f"partition   {structure.n_players} players in {len(structure)} coalitions, ok")
    console.print(f"value       {figure(checked.value)}, ok")
    if checked.bound is None:
        console.print("bound       bound not checked: give the proof with --certificate")
        return
    console.print(
        f"bound       {figure(checked.bound)}, ok: {visible(statement or '')}",
        soft_wrap=bool(checked.must_link or checked.cannot_link or sizes),  # names stay in one line
    )


def _links(
    recorded: dict[str, Pairs], flags: dict[str, Pairs], graph: SynergyGraph, path: Path
) -> dict[str, Pairs]:
    """Return the demands of the file, or of the flags if it has none; they must not differ."""
    from solvers.proofs.proof_demands import Links

    if not any(flags.values()):
        return recorded
    if any(recorded.values()):
        n, names = graph.n_players, graph.labels
        own, asked = (
            Links.of(n, links["must_link"], links["cannot_link"]) for links in (recorded, flags)
        )
        extra, missing = own.beyond(asked, names), asked.beyond(own, names)
        if extra is not None:
            raise InvalidInputError(
                f"{path}: was made to keep {extra}, which the flags do not demand; repeat all"
                " demands, or none"
            )
        if missing is not None:
            raise InvalidInputError(f"{path}: was not made to keep {missing}, as the flags demand")
    return flags


def _sizes(
    recorded: dict[str, Any], flags: dict[str, Any], graph: SynergyGraph, path: Path
) -> dict[str, Any]:
    """Return the demands on coalitions of the file, or of the flags if it has none."""
    from solvers.proofs.proof_demands import TeamDemands

    if not flags:
        return recorded
    if recorded:
        own, asked = (TeamDemands.of(graph, **sizes) for sizes in (recorded, flags))
        difference = own.unlike(asked, graph.labels) or asked.unlike(own, graph.labels)
        if difference is not None:
            raise InvalidInputError(
                f"{path}: the file and the flags do not demand the same ({difference}); repeat all"
                " demands, or none"
            )
    return flags


def _statement(checked: Verification, graph: SynergyGraph, sizes: dict[str, Any]) -> str | None:
    """Return what was proven, in words; None if no bound was checked."""
    if checked.bound is None:
        return None
    from solvers.drawing.solution_tables import structures_in_words

    among = structures_in_words(graph.labels, checked.must_link, checked.cannot_link, **sizes)
    if among is None:
        return "the structure is optimal" if checked.optimal else "not closed: a gap remains"
    return f"optimal among {among}" if checked.optimal else f"a gap remains among {among}"


def _compare(
    document: dict[str, Any], key: str, found: float, positive_weight: float, path: Path
) -> None:
    """Refuse a solution that claims another value, or a smaller bound, than was found."""
    from solvers.optimality import OPTIMALITY_TOLERANCE

    claimed = number_of(document, key, path)
    if claimed is None:
        return
    # The one scale on which value and bound are compared, and a rounding of the floats themselves.
    tolerance = OPTIMALITY_TOLERANCE * positive_weight + 2 * math.ulp(found)
    wrong = abs(claimed - found) > tolerance if key == "value" else claimed < found - tolerance
    if wrong:
        raise RefusedError(
            f"{path}: claims the {key} {spoken(claimed)}, but {spoken(found)} is what the graph"
            " gives"
        )


COMMANDS = {"verify": verify_command}
