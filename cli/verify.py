"""`coalitions verify`: check a solution, and the proof of its bound, without any solver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli._output import Format, Json, Symmetrise, print_json, stdout
from cli._solution_file import read_document, structure_of
from coalitions.errors import InvalidInputError


def verify_command(
    graph_file: Annotated[str, typer.Argument(metavar="GRAPH", help="The synergy graph.")],
    solution_file: Annotated[
        Path, typer.Argument(metavar="SOLUTION", help="JSON that solve --output wrote.")
    ],
    certificate: Annotated[
        Path | None, typer.Option(help="Proof that solve --certificate wrote.")
    ] = None,
    symmetrise: Symmetrise = None,
    file_format: Format = None,
    json_output: Json = False,
) -> None:
    """Check the partition, the value and, with a certificate, the bound of a solution.

    Example: coalitions verify graph.csv solution.json --certificate proof.json
    """
    from coalitions.graph import SynergyGraph
    from solvers.certificate import Certificate
    from solvers.verification import verify

    graph = SynergyGraph.read(graph_file, format=file_format, symmetrise=symmetrise)
    document = read_document(solution_file)
    structure = structure_of(document, graph, solution_file)
    proof = None if certificate is None else Certificate.read(certificate)
    checked = verify(graph, structure, proof)
    _compare(document, "value", checked.value, solution_file)
    if checked.bound is not None:
        _compare(document, "bound", checked.bound, solution_file)
    if json_output:
        print_json(
            {
                "partition": True,
                "value": checked.value,
                "bound": checked.bound,
                "bound_checked": checked.bound is not None,
                "optimal": checked.optimal,
            }
        )
        return
    console = stdout()
    console.print(f"partition   {structure.n_players} players in {len(structure)} coalitions, ok")
    console.print(f"value       {checked.value:.10g}, ok")
    if checked.bound is None:
        console.print("bound       bound not checked: give the proof with --certificate")
        return
    verdict = "the structure is optimal" if checked.optimal else "not closed: a gap remains"
    console.print(f"bound       {checked.bound:.10g}, ok: {verdict}")


def _compare(document: dict[str, object], key: str, found: float, path: Path) -> None:
    """Refuse a solution that claims another value, or a smaller bound, than was found."""
    claimed = document.get(key)
    if not isinstance(claimed, int | float):
        return
    tolerance = 1e-9 * max(1.0, abs(found))
    wrong = abs(claimed - found) > tolerance if key == "value" else claimed < found - tolerance
    if wrong:
        raise InvalidInputError(
            f"{path}: claims the {key} {claimed:.17g}, but {found:.17g} is what the graph gives"
        )


COMMANDS = {"verify": verify_command}
