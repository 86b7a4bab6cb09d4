"""Pictures of a solution: the graph coloured by coalition, and the matrix ordered by it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cli.report.charts import colour
from cli.report.document import html_document, plotly_script, words
from cli.report.pictures import plain_style
from cli.terminal.text import fitting
from coalitions.errors import InvalidInputError
from coalitions.files.writing import atomic_write
from coalitions.game import FloatMatrix, IntVector

if TYPE_CHECKING:
    from coalitions.graph import SynergyGraph
    from solvers.solution import Solution

SHOWN_PLAYERS = 500
"""Above this many players a picture shows coalitions, not players."""

SHOWN_COALITIONS = 60
"""Rows of the matrix of coalitions; smaller ones share the last row."""

NAMED_PLAYERS = 60
"""Up to this many players their names are written next to them."""

SHOWN_PAIRS = 1500
"""Lines of each kind in the graph; the strongest are drawn."""

FAINT = 0.15
"""Pairs with less than this share of the largest |synergy| are not drawn as lines."""

ALONE = "#9A9A9A"
DRAW = """"use strict";
const figure = JSON.parse(document.getElementById("figure").textContent);
Plotly.newPlot("plot", figure.data, figure.layout, { responsive: true, displaylogo: false });
"""
"""The script of a picture that can be zoomed."""

GAIN, LOSS = "#4477AA", "#CC3311"
"""Pairs inside coalitions: positive and negative synergy."""


@dataclass(frozen=True)
class Discs:
    """Where the players of a graph are drawn: each coalition fills a disc.

    Attributes
    ----------
    order
        The players, coalition by coalition, the largest first.
    starts
        Where in `order` each coalition starts; one more at the end.
    positions
        Coordinates of the players [n, 2].
    colours
        Colour of each player; those alone are grey.
    """

    order: IntVector
    starts: IntVector
    positions: FloatMatrix
    colours: list[str]


def check_plot_path(path: Path) -> None:
    """Raise unless a picture can be written under this name; ask before a long run."""
    if path.suffix.lower() not in _WRITERS:
        raise InvalidInputError(
            f"--plot: {path.name} ends in {path.suffix or 'nothing'}; a picture is a .png or a"
            " .html file"
        )
    if not path.parent.is_dir():
        raise InvalidInputError(f"--plot: there is no folder {path.parent}")


def draw_solution(graph: SynergyGraph, solution: Solution, path: Path) -> None:
    """Draw a solution to a file: ``.png``, or ``.html`` that can be zoomed and works offline.

    Up to 500 players the picture shows the graph, one disc of players for each coalition, next to
    the matrix of synergies ordered by coalition. Above, it shows the mean synergy between
    coalitions.
    """
    check_plot_path(path)
    content = _WRITERS[path.suffix.lower()](graph, solution)
    with atomic_write(path) as file:
        file.write(content)


def title_of(graph: SynergyGraph, solution: Solution) -> str:
    """Return one line on what was found and proven."""
    blocks = len(solution.structure)
    proof = "optimal" if solution.optimal else f"bound {solution.bound:.6g}"
    players = f"{graph.n_players} player{'s' * (graph.n_players != 1)}"
    coalitions = f"{blocks} coalition{'s' * (blocks != 1)}"
    return f"{players} in {coalitions}, value {solution.value:.6g}, {proof}"


def place_players(solution: Solution) -> Discs:
    """Return a place for every player, without a look at the synergies.

    A disc is filled in sunflower order, and discs are put, the largest first, as near to the centre
    as they fit.
    """
    blocks = sorted(solution.structure, key=len, reverse=True)
    order = np.array([player for block in blocks for player in block])
    starts = np.cumsum([0, *map(len, blocks)])
    positions = np.empty((len(order), 2))
    colours = [ALONE] * len(order)
    radii = np.array([math.sqrt(len(block)) + 0.6 for block in blocks])
    for number, (block, centre) in enumerate(zip(blocks, _packed(radii), strict=True)):
        k = np.arange(len(block))
        radius, angle = np.sqrt(k + 0.5 * (len(block) > 1)), k * math.pi * (3 - math.sqrt(5))
        spread = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
        positions[list(block)] = centre + 0.9 * spread
        if len(block) > 1:
            for player in block:
                colours[player] = colour(number)
    return Discs(order, starts, positions, colours)


def _packed(radii: np.ndarray[Any, np.dtype[np.float64]]) -> FloatMatrix:
    """Return centres of discs that do not overlap, each as near to the origin as a spiral finds."""
    centres = np.zeros((len(radii), 2))
    turn = 0.0
    for k in range(1, len(radii)):
        # The spiral goes on from where the last disc of this size found room.
        turn = 0.0 if radii[k] < radii[k - 1] else turn
        while True:
            centre = 0.12 * turn * np.array([math.cos(turn), math.sin(turn)])
            gaps = np.hypot(*(centres[:k] - centre).T) - radii[:k] - radii[k]
            if gaps.min() >= 0:
                break
            turn += 0.3 / (1 + 0.12 * turn)
        centres[k] = centre
    return centres


def block_means(graph: SynergyGraph, solution: Solution) -> tuple[FloatMatrix, list[str]]:
    """Return the mean synergy of the pairs between and inside coalitions, and the rows' names.

    Coalitions come by size and are named after their first players; those beyond the largest 60
    are one row together.
    """
    blocks = sorted(solution.structure, key=len, reverse=True)
    rows = min(len(blocks), SHOWN_COALITIONS)
    row = np.empty(graph.n_players, np.int64)
    for number, block in enumerate(blocks):
        row[list(block)] = min(number, rows - 1)
    i, j, weight = graph.edges
    sums = np.zeros((rows, rows))
    np.add.at(sums, (row[i], row[j]), weight)
    sums += np.triu(sums, 1).T + np.tril(sums, -1).T
    sizes = np.bincount(row, minlength=rows).astype(float)
    pairs = np.outer(sizes, sizes)
    np.fill_diagonal(pairs, sizes * (sizes - 1) / 2)
    names = [
        graph.labels[block[0]] + (f" + {len(block) - 1}" if len(block) > 1 else "")
        for block in blocks[:rows]
    ]
    if len(blocks) > rows:
        names[-1] = f"{len(blocks) - rows + 1} more coalitions"
    return sums / np.maximum(pairs, 1), names


def pairs_to_draw(
    graph: SynergyGraph, solution: Solution
) -> list[tuple[str, str, float, IntVector]]:
    """Return the pairs to draw as (name, colour, opacity, pairs [m, 2]), the faintest first."""
    labels = solution.structure.labels
    i, j, weight = graph.edges
    inside = labels[i] == labels[j]
    clear = np.abs(weight) >= FAINT * np.abs(weight).max(initial=0.0)
    kinds = [
        ("synergy given up", ALONE, 0.25, clear & ~inside & (weight > 0)),
        ("synergy inside", GAIN, 0.5, clear & inside & (weight > 0)),
        ("conflict inside", LOSS, 0.6, clear & inside & (weight < 0)),
    ]
    lines = []
    for name, paint, opacity, chosen in kinds:
        pairs = np.flatnonzero(chosen)
        pairs = pairs[np.argsort(-np.abs(weight[pairs]), kind="stable")[:SHOWN_PAIRS]]
        lines.append((name, paint, opacity, np.stack([i[pairs], j[pairs]], 1)))
    return lines


@plain_style()
def _png(graph: SynergyGraph, solution: Solution) -> bytes:
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    detailed = graph.n_players <= SHOWN_PLAYERS
    figure = Figure(figsize=(15, 7) if detailed else (9, 8), layout="constrained")
    FigureCanvasAgg(figure)
    if detailed:
        network, heat = figure.subplots(1, 2)
        _draw_network(network, graph, solution)
        discs = place_players(solution)
        matrix = graph.matrix[np.ix_(discs.order, discs.order)]
        names = [fitting(graph.labels[player]) for player in discs.order]
        for start in discs.starts[1:-1]:
            heat.axhline(start - 0.5, color="black", linewidth=0.6)
            heat.axvline(start - 0.5, color="black", linewidth=0.6)
        heat.set_title("synergies, ordered by coalition")
    else:
        heat = figure.subplots()
        matrix, names = block_means(graph, solution)
        names = list(map(fitting, names))
        heat.set_title("mean synergy of a pair, by coalition")
    top = float(np.abs(matrix).max()) or 1.0
    picture = heat.imshow(matrix, cmap="RdBu", vmin=-top, vmax=top, interpolation="nearest")
    figure.colorbar(picture, ax=heat, shrink=0.8)
    if len(names) <= NAMED_PLAYERS:
        size = 8 if len(names) <= 30 else 6
        heat.set_xticks(range(len(names)), names, rotation=90, fontsize=size)
        heat.set_yticks(range(len(names)), names, fontsize=size)
    else:
        heat.set(xticks=[], yticks=[])
    figure.suptitle(title_of(graph, solution))
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=130)
    return file.getvalue()


def _draw_network(axes: Any, graph: SynergyGraph, solution: Solution) -> None:  # noqa: ANN401
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    discs = place_players(solution)
    keys = []
    for name, paint, opacity, pairs in pairs_to_draw(graph, solution):
        if len(pairs):
            axes.add_collection(
                LineCollection(
                    list(discs.positions[pairs]), colors=paint, alpha=opacity, linewidths=0.8
                )
            )
            keys.append(Line2D([], [], color=paint, label=name))
    n = graph.n_players
    axes.scatter(
        *discs.positions.T, s=max(12, min(260, 6000 / n)), c=discs.colours, zorder=2,
        edgecolors="white", linewidths=0.5,
    )  # fmt: skip
    if n <= NAMED_PLAYERS:
        for player, (x, y) in enumerate(discs.positions):
            axes.annotate(
                fitting(graph.labels[player]),
                (x, y),
                xytext=(0, 7),
                textcoords="offset points",
                ha="center",
                fontsize=8 if n <= 30 else 6,
                zorder=3,
            )
    if keys:
        axes.legend(handles=keys, fontsize=8, loc="lower left")
    axes.set_title("players, one disc for each coalition")
    axes.set_aspect("equal")
    axes.margins(0.08)
    axes.axis("off")


def _html(graph: SynergyGraph, solution: Solution) -> bytes:
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    detailed = graph.n_players <= SHOWN_PLAYERS
    if detailed:
        figure = make_subplots(
            1,
            2,
            subplot_titles=[
                "players, one disc for each coalition",
                "synergies, ordered by coalition",
            ],
        )
        discs = place_players(solution)
        for trace in _network_traces(graph, solution, discs):
            figure.add_trace(trace, 1, 1)
        figure.update_xaxes(visible=False, row=1, col=1)
        figure.update_yaxes(visible=False, scaleanchor="x", row=1, col=1)
        matrix = graph.matrix[np.ix_(discs.order, discs.order)]
        names = [words(graph.labels[player]) for player in discs.order]
        column = 2
        for start in discs.starts[1:-1].tolist():
            line = {"width": 1, "color": "black"}
            figure.add_vline(start - 0.5, line=line, row=1, col=2)
            figure.add_hline(start - 0.5, line=line, row=1, col=2)
    else:
        figure = make_subplots(1, 1, subplot_titles=["mean synergy of a pair, by coalition"])
        matrix, names = block_means(graph, solution)
        names = list(map(words, names))
        column = 1
    top = float(np.abs(matrix).max()) or 1.0
    heat = go.Heatmap(
        z=matrix, zmin=-top, zmax=top, colorscale="RdBu", zmid=0,
        hovertemplate="%{customdata}: %{z:.6g}<extra></extra>",
        customdata=[[f"{a} – {b}" for b in names] for a in names],
    )  # fmt: skip
    figure.add_trace(heat, 1, column)
    few = len(names) <= NAMED_PLAYERS
    ticks = {"tickvals": list(range(len(names))), "ticktext": names} if few else {}
    figure.update_xaxes(showticklabels=few, row=1, col=column, **ticks)
    figure.update_yaxes(showticklabels=few, autorange="reversed", row=1, col=column, **ticks)
    title = title_of(graph, solution)
    figure.update_layout(title=title, template="plotly_white", legend={"orientation": "h"})
    page = html_document(
        title,
        ['<div id="plot"></div>'],
        data={"figure": json.loads(figure.to_json())},
        scripts=[plotly_script(), DRAW],
        style="html, body, #plot { height: 100%; margin: 0; }",
    )
    return page.encode()


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


_WRITERS: dict[str, Callable[[SynergyGraph, Solution], bytes]] = {".png": _png, ".html": _html}
