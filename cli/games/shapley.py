"""`coalitions shapley`: each player's fair share, as numbers and as bars with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.games._game_file import read_game
from cli.terminal.completion import completion
from cli.terminal.output import (
    Format,
    GameFile,
    Json,
    Missing,
    Plot,
    Plugin,
    Quiet,
    Seed,
    Symmetrise,
    Threshold,
    check_plot,
    draw,
    figure,
    loudness,
    print_json,
    stdout,
    visible,
)
from cli.terminal.progress import EvaluationLine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coalitions.values.estimate import Estimate

BAR_WIDTH = 40
"""Characters of the plot, from the smallest to the largest end of an interval."""


def shapley_command(
    file: GameFile,
    method: Annotated[
        str,
        typer.Option(
            help="auto, exact, permutation, antithetic, truncated, stratified, kernel, leverage,"
            " svarm, owen, group-testing, gtg, gaussian-process or portfolio.",
            autocompletion=completion("estimators"),
        ),
    ] = "auto",
    budget: Annotated[
        int | None,
        typer.Option(help="Most coalitions to evaluate (all 2^n up to 16 players, else 100·n)."),
    ] = None,
    target_error: Annotated[
        float | None,
        typer.Option(help="Stop once no player's standard error is larger than this."),
    ] = None,
    seed: Seed = 0,
    symmetrise: Symmetrise = None,
    threshold: Threshold = None,
    missing: Missing = None,
    file_format: Format = None,
    plot: Plot = None,
    plugin: Plugin = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compute the Shapley values of a game or a synergy graph.

    Example: coalitions shapley examples/data/three_domains.csv
    """
    del plugin  # imported by its callback
    from coalitions.values.shapley import shapley

    loudness(quiet, verbose=False)
    check_plot(plot)
    game = read_game(
        file,
        file_format=file_format,
        symmetrise=symmetrise,
        missing=missing,
        threshold=threshold,
        quiet=quiet,
    )
    with EvaluationLine(quiet=quiet) as progress:
        found = shapley(
            game, method, budget, target_error=target_error, seed=seed, progress=progress
        )
    if json_output:
        print_json(
            {
                "values": dict(zip(game.labels, found.values.tolist(), strict=True)),
                "stderr": dict(zip(game.labels, found.stderr.tolist(), strict=True)),
                "evaluations": found.evaluations,
                "method": found.method,
                "reason": found.reason,
                **({"stopped": found.stopped} if found.stopped else {}),
            }
        )
    else:
        _print(found, game.labels)
    draw(found, plot)
    if found.stopped == "interrupted":
        typer.echo("interrupted: these are the estimates so far", err=True)
        raise typer.Exit(130)


def _print(found: Estimate, labels: Sequence[str]) -> None:
    from rich.table import Table

    exact = not found.stderr.any()
    low, high = found.interval()
    left = min(0.0, float(low.min()))
    span = max(0.0, float(high.max())) - left
    table = Table("player", "value", box=None, pad_edge=False)
    table.columns[1].justify = "right"
    if not exact:
        table.add_column("± standard error", justify="right")
    table.add_column("" if exact else "with 95 % interval")
    for k, name in enumerate(labels):
        error = () if exact else (f"{found.stderr[k]:.2g}",)
        ends = _place(low[k], left, span), _place(high[k], left, span)
        bar = _bar(_place(found.values[k], left, span), _place(0.0, left, span), ends)
        table.add_row(visible(name), figure(found.values[k], 6), *error, bar)
    console = stdout()
    console.print(table)
    console.print(
        f"\n{found.method}, {found.evaluations} evaluations: {found.reason}", soft_wrap=True
    )


def _place(number: float, left: float, span: float) -> int:
    """Return the column of a number."""
    return round((number - left) / span * (BAR_WIDTH - 1)) if span > 0 else 0


def _bar(value: int, zero: int, interval: tuple[int, int]) -> str:
    """Return a bar from zero to the value, with the interval drawn over it."""
    cells = [" "] * BAR_WIDTH
    for column in range(min(value, zero), max(value, zero) + 1):
        cells[column] = "█"
    low, high = interval
    if low < high:
        for column in range(low, high + 1):
            cells[column] = "▓" if cells[column] == "█" else "─"
        cells[low], cells[high] = "├", "┤"
    cells[zero] = "│" if cells[zero] in " ─" or value == zero else cells[zero]
    return "".join(cells).rstrip()


COMMANDS = {"shapley": shapley_command}
