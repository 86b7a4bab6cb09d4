"""A solution as a picture: a figure by matplotlib, or a page that can be zoomed and works offline.

Both show the graph, coloured by coalition, and the matrix beside it. The ending of the file says
which kind of picture is wanted.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coalitions.drawing.document import plotly_page, words
from coalitions.drawing.pictures import check_picture_path, new_figure, picture, plain_style
from coalitions.errors import InvalidInputError
from coalitions.extras import needed
from coalitions.files.writing import write_whole
from coalitions.formatting import fitting
from coalitions.game import FloatMatrix
from solvers.drawing.solution_layout import (
    NAMED_PLAYERS,
    NUMBERED_CELLS,
    SHOWN_PLAYERS,
    Cells,
    Discs,
    cells_of,
    in_a_cell,
    pairs_to_draw,
    place_players,
    title_of,
)

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


# ----------------------------------------------------------------------------------------
# The figure, by matplotlib.

CLEAR = 2.0
"""Points between a node and its name."""

TYPE, FINE = 13.0, 11.0
"""Size of names, and at most of numbers, where there are few players: read on a phone, too."""

MATRIX_WIDTH = 350.0
"""Points across the matrix of few players, about."""

WIDTH, HEIGHT = 0.62, 1.25
"""Size of a letter in its font size, rather too large than too small."""


def solution_figure(graph: SynergyGraph, solution: Solution) -> Figure:
    """Return a figure of a solution, which belongs to no window.

    Up to 500 players it shows the graph, one disc of players for each coalition, next to the
    matrix of synergies ordered by coalition; of 16 players or fewer, the graph stands above the
    matrix, in larger type. Above 500, it shows the mean synergy between coalitions.

    Raises
    ------
    MissingDependencyError
        matplotlib is not installed.
    """
    needed("matplotlib")
    with plain_style():
        return _drawn(graph, solution)


def _drawn(graph: SynergyGraph, solution: Solution) -> Figure:
    detailed, cells = graph.n_players <= SHOWN_PLAYERS, cells_of(graph, solution)
    upright = detailed and cells.numbered
    if upright:  # as broad as a phone
        figure = new_figure(6.5, 11)
        network, heat = figure.subplots(2, 1, height_ratios=[4, 5])
    elif detailed:
        figure = new_figure(15, 7)
        network, heat = figure.subplots(1, 2)
    else:
        figure = new_figure(9, 8)
        network, heat = None, figure.subplots()
    _draw_cells(figure, heat, cells)
    figure.suptitle(title_of(graph, solution), fontsize=TYPE + 1 if upright else None)
    if network is not None:
        _draw_network(figure, network, graph, solution)
    return figure


def _draw_cells(figure: Figure, axes: Any, cells: Cells) -> None:  # noqa: ANN401 (matplotlib's Axes)
    for cut in cells.cuts:
        axes.axhline(cut - 0.5, color="black", linewidth=0.6)
        axes.axvline(cut - 0.5, color="black", linewidth=0.6)
    axes.set_title(cells.title, fontsize=TYPE if cells.numbered else None)
    picture = axes.imshow(
        cells.matrix, cmap="RdBu", vmin=-cells.top, vmax=cells.top, interpolation="nearest"
    )
    if not cells.numbered:  # else the numbers tell
        figure.colorbar(picture, ax=axes, shrink=0.8)
    names = list(map(fitting, cells.names))
    if len(names) <= NAMED_PLAYERS:
        size = _type_size(len(names))
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=size)
        axes.set_yticks(range(len(names)), names, fontsize=size)
    else:
        axes.set(xticks=[], yticks=[])
    if cells.numbered:
        longest = max(len(in_a_cell(number)) for number in cells.matrix.flat)
        size = min(FINE, MATRIX_WIDTH / len(names) / (WIDTH * longest))
        for (row, column), number in np.ndenumerate(cells.matrix):
            paint = "white" if abs(number) > 0.6 * cells.top else "black"
            axes.text(
                column, row, in_a_cell(number), ha="center", va="center", fontsize=size, color=paint
            )


def _type_size(n_names: int) -> float:
    """Return the size of names of which there are so many."""
    return TYPE if n_names <= NUMBERED_CELLS else 8.0 if n_names <= 30 else 6.0


def _draw_network(
    figure: Figure,
    axes: Any,  # noqa: ANN401 (matplotlib's Axes)
    graph: SynergyGraph,
    solution: Solution,
) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Circle

    discs = place_players(solution)
    for start, centre, radius in zip(discs.starts[:-1], discs.centres, discs.radii, strict=True):
        paint = discs.colours[discs.order[start]]
        axes.add_patch(Circle(tuple(centre), radius, color=paint, alpha=0.12, linewidth=0))
    keys = []
    for name, paint, opacity, pairs in pairs_to_draw(graph, solution):
        if len(pairs):
            axes.add_collection(
                LineCollection(
                    list(discs.positions[pairs]), colors=paint, alpha=opacity, linewidths=0.8
                )
            )
            keys.append(Line2D([], [], color=paint, label=name))
    area = max(12.0, min(260.0, 6000 / graph.n_players))
    axes.scatter(
        *discs.positions.T, s=area, c=discs.colours, zorder=2, edgecolors="white", linewidths=0.5
    )
    few = graph.n_players <= NUMBERED_CELLS
    if keys and few:  # below, where it hides nobody
        axes.legend(
            handles=keys,
            fontsize=FINE,
            loc="upper center",
            bbox_to_anchor=(0.5, 0),
            ncols=len(keys),
        )
    elif keys:
        axes.legend(handles=keys, fontsize=8, loc="lower left")
    axes.set_title("players, one disc for each coalition", fontsize=TYPE if few else None)
    axes.set_aspect("equal")
    axes.margins(0.08)
    axes.axis("off")
    if graph.n_players <= NAMED_PLAYERS:
        figure.draw_without_rendering()  # only now it is known how far apart nodes are
        points = axes.transData.transform(discs.positions) * 72 / figure.dpi
        size = _type_size(graph.n_players)
        names = list(map(fitting, graph.labels))
        places = name_places(points, names, size, math.sqrt(area) / 2)
        for name, position, place in zip(names, discs.positions, places, strict=True):
            axes.annotate(
                name, tuple(position), xytext=tuple(place), textcoords="offset points",
                ha="center", va="center", fontsize=size, zorder=3,
            )  # fmt: skip


def name_places(
    points: FloatMatrix, names: list[str], font_size: float, radius: float
) -> FloatMatrix:
    """Return where the middle of each name stands, from its node: it touches no node if it can.

    Above, below, on the right, on the left: the first place that is free of nodes and of names
    that have theirs, else the one that is free of most.

    Parameters
    ----------
    points
        Where the nodes are, in points.
    names
        What is written.
    font_size, radius
        Of the letters, and of a node, in points.
    """
    places = np.empty_like(points)
    half = np.array([[WIDTH * len(name) / 2, HEIGHT / 2] for name in names]) * font_size
    taken = np.empty((0, 4))
    for k, point in enumerate(points):
        away = radius + CLEAR + half[k]
        choices = np.array([[0, away[1]], [0, -away[1]], [away[0], 0], [-away[0], 0]])
        crowds = []
        for choice in choices:
            low, high = point + choice - half[k], point + choice + half[k]
            gap = np.maximum(np.maximum(low - points, points - high), 0)
            nodes = np.count_nonzero(np.hypot(*gap.T) < radius)
            names_hit = np.count_nonzero(
                (taken[:, :2] < high).all(axis=1) & (taken[:, 2:] > low).all(axis=1)
            )
            crowds.append(nodes * 1000 + names_hit)
        places[k] = choices[int(np.argmin(crowds))]
        low, high = point + places[k] - half[k], point + places[k] + half[k]
        taken = np.vstack([taken, [*low, *high]])
    return places


# ----------------------------------------------------------------------------------------
# The page, by plotly.


def solution_page(graph: SynergyGraph, solution: Solution) -> str:
    """Return a page with the graph, one disc for each coalition, and the matrix beside it."""
    needed("plotly")
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    cells = cells_of(graph, solution)
    detailed = graph.n_players <= SHOWN_PLAYERS
    titles = ["players, one disc for each coalition"] * detailed
    figure = make_subplots(1, 1 + detailed, subplot_titles=[*titles, cells.title])
    column = 1 + detailed
    if detailed:
        discs = place_players(solution)
        for shape in _disc_shapes(discs):
            figure.add_shape(shape, row=1, col=1)
        for trace in _network_traces(graph, solution, discs):
            figure.add_trace(trace, 1, 1)
        figure.update_xaxes(visible=False, row=1, col=1)
        figure.update_yaxes(visible=False, scaleanchor="x", row=1, col=1)
    names = list(map(words, cells.names))
    numbers = [[in_a_cell(number) for number in row] for row in cells.matrix.tolist()]
    heat = go.Heatmap(
        z=cells.matrix, zmin=-cells.top, zmax=cells.top, colorscale="RdBu", zmid=0,
        hovertemplate="%{customdata}: %{z:.6g}<extra></extra>",
        customdata=[[f"{a} – {b}" for b in names] for a in names],
        **({"text": numbers, "texttemplate": "%{text}"} if cells.numbered else {}),
    )  # fmt: skip
    figure.add_trace(heat, 1, column)
    for cut in cells.cuts:  # after the matrix: plotly draws no lines where there is nothing yet
        line = {"width": 1, "color": "black"}
        figure.add_vline(cut - 0.5, line=line, row=1, col=column)
        figure.add_hline(cut - 0.5, line=line, row=1, col=column)
    few = len(names) <= NAMED_PLAYERS
    ticks = {"tickvals": list(range(len(names))), "ticktext": names} if few else {}
    figure.update_xaxes(showticklabels=few, row=1, col=column, **ticks)
    figure.update_yaxes(showticklabels=few, autorange="reversed", row=1, col=column, **ticks)
    title = title_of(graph, solution)
    figure.update_layout(title=title, template="plotly_white", legend={"orientation": "h"})
    return plotly_page(title, figure)


def _disc_shapes(discs: Discs) -> list[dict[str, Any]]:
    shapes = []
    for start, (x, y), radius in zip(
        discs.starts[:-1].tolist(), discs.centres.tolist(), discs.radii.tolist(), strict=True
    ):
        box = {"x0": x - radius, "x1": x + radius, "y0": y - radius, "y1": y + radius}
        paint = discs.colours[discs.order[start]]
        shapes.append(
            {"type": "circle", **box, "fillcolor": paint, "opacity": 0.12, "line": {"width": 0},
             "layer": "below"}
        )  # fmt: skip
    return shapes


def _network_traces(graph: SynergyGraph, solution: Solution, discs: Discs) -> list[Any]:
    import plotly.graph_objects as go

    traces: list[Any] = []
    for name, paint, opacity, pairs in pairs_to_draw(graph, solution):
        # None lifts the pen between two lines.
        x = [p for a, b in pairs for p in (discs.positions[a, 0], discs.positions[b, 0], None)]
        y = [p for a, b in pairs for p in (discs.positions[a, 1], discs.positions[b, 1], None)]
        traces.append(
            go.Scatter(
                x=x,
                y=y,
                mode="lines",
                name=name,
                opacity=opacity,
                hoverinfo="skip",
                line={"color": paint, "width": 1},
                showlegend=len(pairs) > 0,
            )
        )
    n = graph.n_players
    names = list(map(words, graph.labels))
    labels = solution.structure.labels
    sizes = np.bincount(labels)
    traces.append(
        go.Scatter(
            x=discs.positions[:, 0],
            y=discs.positions[:, 1],
            showlegend=False,
            mode="markers+text" if n <= NAMED_PLAYERS else "markers",
            marker={
                "color": discs.colours,
                "size": max(5, min(18, 500 / n)),
                "line": {"color": "white", "width": 1},
            },
            text=names,
            textposition="top center",
            hovertext=[
                f"{name}: in a coalition of {sizes[label]}"
                for name, label in zip(names, labels, strict=True)
            ],
            hoverinfo="text",
        )
    )
    return traces
