"""A solution as a matplotlib figure: the graph, coloured by coalition, and the matrix beside it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from coalitions.characters import fitting
from coalitions.drawing.pictures import new_figure, plain_style
from coalitions.extras import needed
from coalitions.game import FloatMatrix
from solvers.drawing.layout import (
    NAMED_PLAYERS,
    NUMBERED_CELLS,
    SHOWN_PLAYERS,
    Cells,
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
