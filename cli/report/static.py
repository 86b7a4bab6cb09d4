"""Charts as PNG and SVG files, by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np

from cli.report.charts import (
    BANDS,
    BarChart,
    ChartTable,
    ColumnChart,
    Dots,
    Heatmap,
    Lines,
    Memberships,
    NetworkChart,
    layout_positions,
    line_style,
    strongest_edges,
)
from cli.report.contents import Section
from cli.terminal.output import fitting
from coalitions.drawing.pictures import colour, plain_style

LINESTYLES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}


@plain_style()
def save_figures(sections: Sequence[Section], folder: Path) -> list[Path]:
    """Write every chart as NAME.png and NAME.svg, titled with its run; return the paths."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    titled = [(chart, section.title) for section in sections for chart in section.charts]
    for chart, run in titled:
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        FigureCanvasAgg(figure)
        draw(chart, figure)
        figure.suptitle(fitting(f"{chart.title}: {run}" if run else chart.title, 100))
        for ending in ("png", "svg"):
            path = folder / f"{chart.name}.{ending}"
            # Without a date the same run gives the same file.
            metadata = {"Date": None} if ending == "svg" else {}
            figure.savefig(path, dpi=150, metadata=metadata)
            paths.append(path)
    return paths


@singledispatch
def draw(chart: Any, figure: Any) -> None:  # noqa: ANN401 (a chart, a matplotlib figure)
    """Draw a chart into a figure."""
    raise NotImplementedError(type(chart))


@draw.register
def _(chart: Lines, figure: Any) -> None:  # noqa: ANN401
    axes = figure.subplots()
    for curve in chart.curves:
        paint, dash = line_style(curve.method)
        marker = "o" if len(curve.x) <= 60 else None
        axes.plot(
            curve.x, curve.y, marker=marker, markersize=3, color=paint, label=fitting(curve.name),
            linestyle=LINESTYLES[dash],
        )  # fmt: skip
        if curve.low is not None and curve.high is not None and len(chart.curves) <= BANDS:
            axes.fill_between(curve.x, curve.low, curve.high, color=paint, alpha=0.15, linewidth=0)
    axes.set(xlabel=chart.x_label, ylabel=chart.y_label)
    if chart.y_range is not None:
        axes.set_ylim(*chart.y_range)
    axes.xaxis.get_major_locator().set_params(integer=True)  # there is no round 1.5
    axes.grid(alpha=0.3)
    _legend(axes, len(chart.curves))


def _legend(axes: Any, n: int, beside: bool = False) -> None:  # noqa: ANN401
    if n > 6 or (n > 1 and beside):  # beside the picture, where it hides nothing
        axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1.01, 0.5))
    elif n > 1:
        axes.legend(fontsize="small")


@draw.register
def _(chart: BarChart, figure: Any) -> None:  # noqa: ANN401
    figure.set_size_inches(7, 1.5 + 0.3 * len(chart.categories))
    axes = figure.subplots()
    places = np.arange(len(chart.categories))
    width = 0.8 / len(chart.series)
    for number, (name, values) in enumerate(chart.series):
        at = places - 0.4 + width * (number + 0.5)
        axes.barh(at, values, width, color=colour(number), label=fitting(name))
    axes.set_yticks(places, map(fitting, chart.categories))
    axes.invert_yaxis()
    axes.set_xlabel(chart.x_label)
    axes.grid(axis="x", alpha=0.3)
    _legend(axes, len(chart.series))


@draw.register
def _(chart: ColumnChart, figure: Any) -> None:  # noqa: ANN401
    axes = figure.subplots()
    places = np.arange(len(chart.categories))
    width = 0.8 / len(chart.series)
    for number, (method, name, values) in enumerate(chart.series):
        heights = [np.nan if value is None else value for value in values]
        at = places - 0.4 + width * (number + 0.5)
        axes.bar(at, heights, width, color=colour(method), label=fitting(name))
    step = max(1, len(places) // 20)
    axes.set_xticks(places[::step], map(fitting, chart.categories[::step]))
    axes.set(xlabel=chart.x_label, ylabel=chart.y_label)
    axes.grid(axis="y", alpha=0.3)
    _legend(axes, len(chart.series), beside=True)


@draw.register
def _(chart: ChartTable, figure: Any) -> None:  # noqa: ANN401
    figure.set_size_inches(7, 1.5 + 0.16 * len(chart.rows))
    axes = figure.subplots()
    image = axes.imshow(chart.values, aspect="auto", interpolation="nearest", cmap="cividis")
    axes.set_yticks(range(len(chart.rows)), map(fitting, chart.rows), fontsize="x-small")
    step = max(1, len(chart.columns) // 20)
    axes.set_xticks(range(0, len(chart.columns), step), map(fitting, chart.columns[::step]))
    axes.set_xlabel(chart.x_label)
    figure.colorbar(image, ax=axes, shrink=0.7)


@draw.register
def _(chart: Dots, figure: Any) -> None:  # noqa: ANN401
    axes = figure.subplots()
    rows, columns = np.nonzero(chart.counts)
    sizes = 160 * chart.counts[rows, columns] / max(1.0, float(chart.counts.max()))
    axes.scatter(columns, rows, s=sizes, color=colour(0))
    step = max(1, len(chart.columns) // 20)
    axes.set_xticks(
        range(0, len(chart.columns), step), map(fitting, chart.columns[::step]), rotation=90
    )
    row_step = max(1, len(chart.rows) // 20)
    axes.set_yticks(range(0, len(chart.rows), row_step), map(fitting, chart.rows[::row_step]))
    axes.set(xlabel=chart.x_label, ylabel=chart.y_label)


@draw.register
def _(chart: Heatmap, figure: Any) -> None:  # noqa: ANN401
    last = chart.frames[-1]
    grid = figure.subplots(1, 1 if chart.truth is None else 2, squeeze=False)[0]
    spread = float(np.nanmax(np.abs(last))) if np.isfinite(last).any() else 1.0
    low = float(np.nanmin(last)) if np.isfinite(last).any() else 0.0
    style = {"cmap": "PuOr", "vmin": -spread, "vmax": spread} if low < 0 else {"cmap": "cividis"}
    image = grid[0].imshow(last, interpolation="nearest", **style)
    grid[0].set(title=f"round {chart.rounds[-1]}", xlabel="client", ylabel="client")
    figure.colorbar(image, ax=grid[0], shrink=0.7)
    if chart.truth is not None:
        grid[1].imshow(chart.truth, interpolation="nearest", cmap="Greys", vmin=0, vmax=1)
        grid[1].set(title=f"truth: {chart.truth_is}", xlabel="client")


@draw.register
def _(chart: Memberships, figure: Any) -> None:  # noqa: ANN401
    from matplotlib.colors import to_rgb

    axes = figure.subplots()
    painted = np.array(
        [[to_rgb(colour(int(k))) if k >= 0 else (1, 1, 1) for k in row] for row in chart.coalitions]
    )
    axes.imshow(painted, aspect="auto", interpolation="nearest")
    step = max(1, len(chart.rounds) // 20)
    axes.set_xticks(range(0, len(chart.rounds), step), chart.rounds[::step])
    axes.set(xlabel="round", ylabel="client")


@draw.register
def _(chart: NetworkChart, figure: Any) -> None:  # noqa: ANN401
    axes = figure.subplots()
    at = layout_positions(chart.weights)
    top = float(chart.weights.max()) or 1.0
    for a, b in strongest_edges(chart.weights):
        strength = chart.weights[a, b] / top
        axes.plot(*at[[a, b]].T, color="0.6", linewidth=0.3 + 2 * strength, alpha=0.5, zorder=1)
    colours = [colour(int(k)) for k in chart.coalitions]
    axes.scatter(*at.T, c=colours, s=120 if len(at) <= 60 else 30, zorder=2)
    if len(at) <= 60:
        for (x, y), label in zip(at, map(fitting, chart.labels), strict=True):
            axes.annotate(
                label, (x, y), xytext=(0, 7), textcoords="offset points", fontsize=8, ha="center"
            )
    axes.set_axis_off()
