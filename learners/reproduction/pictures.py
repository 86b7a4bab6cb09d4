"""Figures of experiments; matplotlib comes with the extra ``[report]``."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from coalitions.drawing.pictures import colour, plain_style
from learners.reproduction.claims import Measured
from learners.reproduction.printed import PaperTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = 4
"""At most so many columns of a table stand side by side."""


@plain_style()
def dots(found: Measured, printed: PaperTable | None, title: str) -> Figure:
    """Return a panel for every column, a line for every row: its seeds, mean ± sd, the paper's.

    Dots, not bars: what tells methods apart is often a point or two of ninety.
    """
    from matplotlib.figure import Figure

    rows = list(found.rows)
    down = math.ceil(len(found.columns) / PANELS)
    across = math.ceil(len(found.columns) / down)
    size = (max(6.0, 2.4 + 2.1 * across), 1.2 + down * (0.8 + 0.24 * len(rows)))
    figure = Figure(figsize=size)
    figure.set_layout_engine("constrained")
    panels = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    for axes, column in zip(panels, found.columns, strict=False):
        _dots(axes, found, printed, column)
        axes.set_title(textwrap.fill(column, 24), fontsize="medium")
        axes.set_xlabel(found.unit, fontsize="small")
    for axes in panels[len(found.columns) :]:
        axes.set_visible(False)
    panels[0].set(yticks=range(len(rows)), yticklabels=rows)
    panels[0].set_ylim(len(rows) - 0.5, -0.5)  # the first row on top, as in the table
    _entitle(figure, title)
    handles = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=3, fontsize="small")
    return figure


def _dots(axes: Axes, found: Measured, printed: PaperTable | None, column: str) -> None:
    """Draw a column: every seed, the mean with its standard deviation, what the paper prints."""
    there = [
        (place, values)
        for place, row in enumerate(found.rows)
        if (values := found.get(row, column)) is not None
    ]
    places = [place for place, _ in there]
    if any(len(values) > 1 for _, values in there):
        seeds = [(value, place) for place, values in there for value in values]
        axes.plot(*zip(*seeds, strict=True), ".", color=colour(0), alpha=0.3, label="a seed")
    means = [statistics.fmean(values) for _, values in there]
    spread = [statistics.stdev(values) if len(values) > 1 else 0.0 for _, values in there]
    axes.errorbar(means, places, xerr=spread, fmt="o", color=colour(0), label="here, mean ± sd")
    said = [printed.get(row, column) if printed else None for row in found.rows]
    marks = [(each.mean, place) for place, each in enumerate(said) if each]
    if marks:
        axes.plot(*zip(*marks, strict=True), "D", color="black", fillstyle="none", label="paper")
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)


def _entitle(figure: Figure, title: str) -> None:
    """Write a title over as many lines as it needs."""
    figure.suptitle(textwrap.fill(title, int(10 * figure.get_figwidth())))


@plain_style()
def curves(
    lines: Mapping[str, Sequence[Sequence[float]]], title: str, x_label: str, y_label: str
) -> Figure:
    """Return a curve for every name: the mean over seeds, the seeds as thin lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 4.2))
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    for number, (name, seeds) in enumerate(lines.items()):
        rounds = range(1, len(seeds[0]) + 1)
        for each in seeds:
            axes.plot(rounds, each, color=colour(number), linewidth=0.6, alpha=0.4)
        axes.plot(rounds, np.mean(seeds, axis=0), color=colour(number), linewidth=2, label=name)
    axes.set(xlabel=x_label, ylabel=y_label)
    _entitle(figure, title)
    axes.legend(fontsize="small")
    return figure


@plain_style()
def bars(
    lengths: NDArray[np.float64],
    names: Sequence[str],
    marked: NDArray[np.bool_],
    title: str,
    x_label: str,
) -> Figure:
    """Return a bar for every name, those that are marked in another colour."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 1.4 + 0.28 * len(names)))
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    axes.barh(range(len(names)), lengths, color=[colour(int(each)) for each in marked])
    axes.set_yticks(range(len(names)), names, fontsize="small")
    axes.invert_yaxis()
    axes.set_xlabel(x_label)
    _entitle(figure, title)
    return figure


@plain_style()
def matrices(panels: Mapping[str, NDArray[np.float64]], title: str) -> Figure:
    """Return matrices side by side, each in its own colours: from zero, or around it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.0, 3.2 * len(panels)), 3.6))
    figure.set_layout_engine("constrained")
    for axes, (name, matrix) in zip(
        np.atleast_1d(figure.subplots(1, len(panels))), panels.items(), strict=True
    ):
        reach = float(np.nanmax(np.abs(matrix), initial=0.0)) or 1.0
        if np.nanmin(matrix, initial=0.0) < 0:
            image = axes.imshow(matrix, cmap="RdBu_r", vmin=-reach, vmax=reach)
        else:
            image = axes.imshow(matrix, cmap="Reds", vmin=0.0, vmax=reach)
        axes.set_title(name, fontsize="small")
        n_rows, n_columns = matrix.shape
        axes.set_xticks(range(n_columns), range(n_columns), fontsize="x-small")
        axes.set_yticks(range(n_rows), range(n_rows), fontsize="x-small")
        figure.colorbar(image, ax=axes, shrink=0.7)
    _entitle(figure, title)
    return figure


@plain_style()
def coalitions_by_round(labels: NDArray[np.int64], clients: Sequence[str], title: str) -> Figure:
    """Return who is with whom, by colours: a line for each client, a column for each round."""
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    n_clients, n_rounds = labels.shape
    figure = Figure(figsize=(6.0, 1.2 + 0.26 * n_clients))
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    colours = ListedColormap([colour(number) for number in range(labels.max() + 1)])
    axes.pcolormesh(labels, cmap=colours, vmin=-0.5, vmax=labels.max() + 0.5, edgecolor="white")
    axes.set_xticks(
        np.arange(n_rounds) + 0.5, [str(number) for number in range(n_rounds)], fontsize="small"
    )
    axes.set_yticks(np.arange(n_clients) + 0.5, clients, fontsize="small")
    axes.set_xlabel("round")
    axes.invert_yaxis()
    _entitle(figure, title)
    return figure
