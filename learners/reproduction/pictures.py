"""Figures of experiments; matplotlib comes with the extra ``[report]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from coalitions.drawing.colours import colour
from coalitions.drawing.pictures import plain_style
from learners.reproduction.measured import Measured
from learners.reproduction.printed import PaperTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_COLOURS = 14
"""So many rows can be told apart by their colours; where there are more, each has a line."""


@plain_style()
def bars(found: Measured, printed: PaperTable | None, title: str) -> Figure:
    """Return bars of every row in every column, what the paper prints as marks beside."""
    from matplotlib.figure import Figure

    rows, columns = list(found.rows), found.columns
    if len(rows) > MOST_COLOURS:
        return lying_bars(found, title)
    width = 0.8 / max(len(rows), 1)
    figure = Figure(figsize=(max(6.0, 1.2 + 0.28 * len(rows) * len(columns)), 4.5))
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    for number, row in enumerate(rows):
        places = np.arange(len(columns)) + (number - (len(rows) - 1) / 2) * width
        heights = [found.mean(row, column) for column in columns]
        spread = [np.std(found.get(row, column) or [0.0]) for column in columns]
        drawn = [np.nan if height is None else height for height in heights]
        axes.bar(places, drawn, width, yerr=spread, color=colour(number), label=row)
        said = [printed.get(row, column) if printed else None for column in columns]
        marks = [(x, each.mean) for x, each in zip(places, said, strict=True) if each]
        if marks:
            xs, ys = zip(*marks, strict=True)
            label = "paper" if number == len(rows) - 1 else None
            axes.plot(xs, ys, "_", color="black", markersize=9, label=label)
    axes.set_xticks(range(len(columns)), columns)
    axes.set(ylabel=found.unit, title=title)
    axes.legend(fontsize="small", ncols=2)
    return figure


@plain_style()
def lying_bars(found: Measured, title: str) -> Figure:
    """Return a panel for every column, with a line for each row that has something there."""
    from matplotlib.figure import Figure

    rows = list(found.rows)
    size = (3.4 + 1.6 * len(found.columns), 1.0 + 0.24 * len(rows))
    figure = Figure(figsize=size)
    figure.set_layout_engine("constrained")
    panels = figure.subplots(1, len(found.columns), sharey=True, squeeze=False)[0]
    for axes, column in zip(panels, found.columns, strict=True):
        there = [number for number, row in enumerate(rows) if found.get(row, column)]
        values = [found.get(rows[number], column) or [] for number in there]
        means, spread = [np.mean(each) for each in values], [np.std(each) for each in values]
        axes.barh(there, means, xerr=spread, color=colour(0))
        axes.set(title=column, yticks=range(len(rows)), yticklabels=rows)
    panels[0].set_ylim(len(rows) - 0.5, -0.5)  # the first row on top, as in the table
    figure.suptitle(title)
    figure.supxlabel(found.unit)
    return figure


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
    axes.set(xlabel=x_label, ylabel=y_label, title=title)
    axes.legend(fontsize="small")
    return figure


@plain_style()
def matrices(panels: Mapping[str, NDArray[np.float64]], title: str) -> Figure:
    """Return matrices side by side, each in its own colours around zero."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.0, 3.2 * len(panels)), 3.6))
    figure.set_layout_engine("constrained")
    for axes, (name, matrix) in zip(
        np.atleast_1d(figure.subplots(1, len(panels))), panels.items(), strict=True
    ):
        reach = float(np.nanmax(np.abs(matrix), initial=0.0)) or 1.0
        image = axes.imshow(matrix, cmap="RdBu_r", vmin=-reach, vmax=reach)
        axes.set_title(name, fontsize="small")
        n_rows, n_columns = matrix.shape
        axes.set_xticks(range(n_columns), range(n_columns), fontsize="x-small")
        axes.set_yticks(range(n_rows), range(n_rows), fontsize="x-small")
        figure.colorbar(image, ax=axes, shrink=0.7)
    figure.suptitle(title)
    return figure
