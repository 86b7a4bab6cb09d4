"""Pictures of solutions in files, whose ending says which kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from coalitions.drawing.pictures import check_picture_path, picture
from coalitions.errors import InvalidInputError
from coalitions.extras import needed
from coalitions.files.writing import write_whole
from solvers.drawing.figure import solution_figure
from solvers.drawing.page import solution_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from coalitions.graph import SynergyGraph
    from solvers.solution import Solution


def check_plot_path(path: Path) -> None:
    """Raise unless a picture can be written under this name; ask before a long run."""
    check_picture_path(path, pages=True)
    needed("plotly" if path.suffix.lower() == ".html" else "matplotlib")


def draw_solution(graph: SynergyGraph, solution: Solution, path: Path) -> None:
    """Draw a solution to a file: ``.png``, ``.svg``, ``.pdf``, or ``.html`` that can be zoomed."""
    check_plot_path(path)
    if path.suffix.lower() == ".html":
        write_whole(path, solution_page(graph, solution).encode())
    else:
        write_whole(path, picture(solution_figure(graph, solution), path.suffix.lower()[1:]))


def plotted(solution: Solution, path: str | Path | None) -> Figure:
    """Return the figure of a solution, written to a file as well if there is a path."""
    if solution.graph is None:
        raise InvalidInputError("a solution of a game has no graph that could be drawn")
    if path is not None:
        check_plot_path(Path(path))
    figure = solution_figure(solution.graph, solution)
    if path is not None:
        draw_solution(solution.graph, solution, Path(path))
    return figure
