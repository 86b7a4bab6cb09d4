"""`coalitions solve`: the best coalition structure of a synergy graph, with a proof."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.games._demands import DemandFlags, takes_demands
from cli.games._game_file import read_graph
from cli.terminal.completion import completion
from cli.terminal.output import (
    WRITTEN,
    Format,
    GraphFile,
    Json,
    Missing,
    Quiet,
    Seed,
    Symmetrise,
    Threshold,
    Verbose,
    check_output,
    figure,
    print_json,
    stderr,
    stdout,
    visible,
)
from coalitions.errors import InvalidInputError
from coalitions.formatting import listed
from solvers.solution_file import (
    read_structure,
    save_solution,
    solution_document,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coalitions.graph import SynergyGraph
    from solvers.solution import Solution
    from solvers.solver import SearchProgress


@takes_demands
def solve_command(
    file: GraphFile,
    solver: Annotated[
        str,
        typer.Option(
            help="Method; `coalitions solvers` lists them.", autocompletion=completion("solvers")
        ),
    ] = "auto",
    formulation: Annotated[
        str | None, typer.Option(help="rp-star or full, for cbc, cp-sat, highs and gurobi.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds of wall time; the best so far is the answer.")
    ] = None,
    gap: Annotated[float, typer.Option(help="Relative gap at which to stop.")] = 0.0,
    seed: Seed = 0,
    threads: Annotated[int | None, typer.Option(help="Threads the solver may use.")] = None,
    warm_start: Annotated[
        Path | None, typer.Option(help="JSON of an earlier solution to start from.")
    ] = None,
    demands: DemandFlags = DemandFlags(),
    n_best: Annotated[
        int | None,
        typer.Option(metavar="N", help="List the N best structures in order, proven complete."),
    ] = None,
    all_optimal: Annotated[
        bool, typer.Option("--all-optimal", help="List all structures that are optimal.")
    ] = False,
    canonical: Annotated[
        bool,
        typer.Option(
            "--canonical",
            help="If several structures are optimal, always return the same one.",
        ),
    ] = False,
    symmetrise: Symmetrise = None,
    threshold: Threshold = None,
    missing: Missing = None,
    file_format: Format = None,
    output: Annotated[
        Path | None,
        WRITTEN,
        typer.Option(
            metavar="FILE.json|.csv|.xlsx|.md|.html",
            help="Write the solution; the ending says how. Only .json is read again.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        WRITTEN,
        typer.Option(
            metavar="FILE.html|.png|.svg|.pdf", help="Draw the graph and its matrix, by coalition."
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        WRITTEN,
        typer.Option(help="Write the proof of the bound, for `coalitions verify`."),
    ] = None,
    json_output: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Find the best coalition structure of a synergy graph, with a proof.

    Example: coalitions solve examples/data/three_domains.csv --output solution.json
    """
    from solvers import solve

    check_output(output)
    if plot is not None:
        from solvers.drawing.solution_picture import check_plot_path, draw_solution

        check_plot_path(plot)
    reading: dict[str, Any] = {"symmetrise": symmetrise, "missing": missing, "threshold": threshold}
    graph = read_graph(file, file_format=file_format, quiet=quiet, **reading)
    sizes = demands.sizes(graph.labels)
    options: dict[str, Any] = {} if formulation is None else {"formulation": formulation}
    with _ProgressLine(quiet=quiet, verbose=verbose) as line:
        solution = solve(
            graph,
            solver,
            time_limit=time_limit,
            gap=gap,
            warm_start=None if warm_start is None else read_structure(warm_start, graph),
            seed=seed,
            threads=threads,
            **demands.links(graph.labels),
            n_best=n_best,
            all_optimal=all_optimal,
            canonical=canonical,
            certificate=certificate is not None,
            progress=line.update,
            **sizes,
            **options,
        )
    line.end(solution)
    made = {name: setting for name, setting in reading.items() if setting is not None}
    document = solution_document(solution) | made
    # Printed first: what cannot be written after all is not lost.
    if json_output:
        print_json(document)
    else:
        print_solution(document, solution.stats.get("model"))
        if all_optimal or n_best is not None:
            _print_others(graph, solution, all_optimal=all_optimal)
    if canonical and not solution.stats["canonical"] and not quiet:
        stderr().print("it is not proven that this is the canonical structure", soft_wrap=True)
    if "others" in solution.stats and not quiet:
        stderr().print(visible(solution.stats["others"]), soft_wrap=True)
    if certificate is not None:
        if solution.certificate is None:
            raise InvalidInputError(
                "--certificate: the proof grew beyond 1 GB, so no certificate was written"
            )
        solution.certificate.write(certificate)
    if output is not None:
        save_solution(solution, output, document)
    if plot is not None:
        draw_solution(graph, solution, plot)
    if solution.stats.get("interrupted"):
        raise typer.Exit(130)  # what was found until Ctrl-C is printed all the same


class _ProgressLine:
    """Value, bound, gap and seconds: one line that changes, on a terminal only.

    With --verbose it is a line for every change, wherever stderr goes, and what the solver counted.
    """

    def __init__(self, quiet: bool, verbose: bool) -> None:
        self._console = stderr()
        self._verbose = verbose
        self._shown = self._console.is_terminal and not quiet and not verbose
        self._status: Any = None
        self._last = ""

    def __enter__(self) -> _ProgressLine:
        if self._shown:
            self._status = self._console.status("solving …")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def update(self, progress: SearchProgress) -> None:
        """Show where the solver is."""
        if self._status is None and not self._verbose:
            return
        from solvers.solution import relative_gap

        gap = relative_gap(progress.value, progress.bound)
        news = (
            f"value {figure(progress.value, 6)}  bound {figure(progress.bound, 6)}  gap {gap:.2%}"
        )
        if self._status is not None:
            self._status.update(f"{news}  {progress.seconds:.1f} s")
        elif news != self._last:
            self._say(f"{news}  {progress.seconds:.3f} s")
            self._last = news

    def end(self, solution: Solution) -> None:
        """With --verbose, say who solved it and what was counted on the way."""
        if self._verbose:
            counted = "  ".join(f"{name} {figure}" for name, figure in solution.stats.items())
            self._say(f"{solution.solver}  {solution.seconds:.3f} s  {counted}")

    def _say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, markup=False)


def print_solution(document: Mapping[str, Any], model: str | None = None) -> None:
    """Print the table of a solution's document, and what is proven.

    Parameters
    ----------
    document
        As `solve --json` prints it.
    model
        A remark of the solver on its model.
    """
    from rich.table import Table

    from solvers.drawing.solution_tables import solution_shown

    shown = solution_shown(document, model)
    table = Table(*shown.heads, box=None, pad_edge=False)
    for column in table.columns[shown.n_left :]:
        column.justify = "right"
    for row in shown.rows:
        table.add_row(*row)
    stdout().print(table)
    # A statement about names stays in one line.
    stdout().print(f"\n{shown.below}", soft_wrap=" among " in shown.below)


def _print_others(graph: SynergyGraph, solution: Solution, *, all_optimal: bool) -> None:
    """Print the structures that follow, each by the coalitions that the best one has not."""
    from rich.table import Table

    from solvers.drawing.solution_tables import MOST_NAMES, MOST_ROWS
    from solvers.optimality import at_stake, is_optimal

    if not solution.others:
        alone = "no other structure is optimal" if all_optimal else "there is no other structure"
        stdout().print(alone if solution.optimal else "no other structure was found")
        return
    best = set(solution.structure)
    stake = at_stake(solution.positive_weight, solution.losses)
    equal = [other for other in solution.others if is_optimal(other.value, solution.value, stake)]
    table = Table("", "value", "less than the best", "proven", "instead", box=None, pad_edge=False)
    table.columns[1].justify = table.columns[2].justify = "right"
    for place, other in enumerate(solution.others[: MOST_ROWS - 1], 2):
        blocks = [block for block in other.structure if block not in best]
        instead = " | ".join(
            listed(graph.labels[player] for player in block[:MOST_NAMES])
            + (" …" if len(block) > MOST_NAMES else "")
            for block in blocks
        )
        less = "exactly as good" if other in equal else figure(solution.value - other.value)
        proven = "yes" if other.optimal else "no"
        table.add_row(str(place), figure(other.value), less, proven, visible(instead))
    stdout().print()
    stdout().print(table)
    if equal:
        ended = all_optimal or len(equal) < len(solution.others)
        sure = ended and solution.optimal and "others" not in solution.stats
        stdout().print(
            f"\n{'' if sure else 'at least '}{len(equal) + 1} structures are equally good;"
            " --canonical always gives the same one",
            soft_wrap=True,
        )


COMMANDS = {"solve": solve_command}
