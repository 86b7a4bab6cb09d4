"""A solution as a page that can be zoomed and works offline, by plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coalitions.drawing.document import plotly_page, words
from coalitions.extras import needed
from solvers.drawing.layout import (
    NAMED_PLAYERS,
    SHOWN_PLAYERS,
    Discs,
    cells_of,
    in_a_cell,
    pairs_to_draw,
    place_players,
    title_of,
)

if TYPE_CHECKING:
    from coalitions.graph import SynergyGraph
    from solvers.solution import Solution


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
