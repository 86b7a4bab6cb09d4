"""`coalitions solvers`: which methods there are, and which can run here."""

from __future__ import annotations

from cli.terminal.output import Json, print_json, stdout


def solvers_command(json_output: Json = False) -> None:
    """List the solvers, and what to install for those that cannot run yet.

    Example: coalitions solvers --json
    """
    from solvers import available
    from solvers.solver import SOLVERS

    states = available()
    if json_output:
        print_json(states)
        return
    from rich.table import Table

    table = Table("solver", "", "here", "", box=None, pad_edge=False)
    for name, state in states.items():
        kind = SOLVERS[name]
        summary = (kind.__doc__ or "").strip().splitlines()[0].split(" [")[0]
        table.add_row(
            name,
            "exact" if kind.exact else "heuristic",
            "yes" if state is True else str(state),
            summary,
        )
    stdout().print(table)


COMMANDS = {"solvers": solvers_command}
