"""`--plot` of values: bars with intervals, or a network of interactions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.terminal.output import check_writable

if TYPE_CHECKING:
    from coalitions.sampling.estimator import Estimate
    from coalitions.values.interaction_result import Interactions

Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.html|.png|.svg|.pdf",
        help="Draw the values as bars with 95 % intervals, interactions as a network.",
    ),
]


def check_plot(path: Path | None, *, network: bool = False) -> None:
    """Refuse a name under which nothing can be drawn; asked before a long run."""
    if path is not None:
        from coalitions.results.page import check_values_path

        check_writable(path, "--plot")
        check_values_path(path, network=network)


def draw(values: Estimate | Interactions, path: Path | None) -> None:
    """Draw values if there is a path."""
    if path is not None:
        from coalitions.results.page import draw_values

        draw_values(values, path)
