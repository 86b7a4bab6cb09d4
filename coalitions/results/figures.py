"""Values as matplotlib figures: bars with intervals, a waterfall, one line of forces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coalitions.characters import figure as written
from coalitions.characters import fitting
from coalitions.drawing.pictures import check_picture_path, new_figure, plain_style, save
from coalitions.errors import UnknownNameError, did_you_mean
from coalitions.extras import needed
from coalitions.game import FloatVector, IntVector
from coalitions.results.network import draw_network
from coalitions.sampling.estimator import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

MORE, LESS, OTHERS = "#4477AA", "#CC3311", "#9A9A9A"
"""Colours of what adds, of what takes away, and of players that share a bar."""

MOST_BARS = 30
"""Players with a bar of their own, the largest; the others have one together."""

NAMED_FORCES = 0.04
"""Forces with at least this share of the line have their names below it."""


class Bars(NamedTuple):
    """The players to draw, the largest first, and how many others share the last bar."""

    order: IntVector
    others: int


def estimate_figure(estimate: Estimate, kind: str | None, path: str | Path | None) -> Figure:
    """Return the figure of an estimate; see `Estimate.plot`."""
    pairs = estimate.values.ndim == 2
    kinds: dict[str, Callable[[Estimate], Figure]] = (
        {"network": _network} if pairs else {"bar": bar, "waterfall": waterfall, "force": force}
    )
    return drawn(kinds, kind, path, estimate)


def drawn(kinds: Any, kind: str | None, path: str | Path | None, what: Any) -> Figure:  # noqa: ANN401
    """Return the figure of a kind, the first if none is named, and write it if there is a path."""
    chosen = next(iter(kinds)) if kind is None else kind
    if chosen not in kinds:
        raise UnknownNameError(
            f"there is no plot named {chosen!r} for this; {did_you_mean(str(chosen), kinds)}there"
            f" are: {', '.join(kinds)}"
        )
    if path is not None:
        check_picture_path(Path(path))
    needed("matplotlib")
    with plain_style():
        figure: Figure = kinds[chosen](what)
    if path is not None:
        save(figure, Path(path))
    return figure


def bar(estimate: Estimate) -> Figure:
    """Return a bar for each player, the largest on top, with 95 % intervals."""
    order, others = largest(estimate.values)
    values, names = estimate.values[order], [fitting(estimate.names[k]) for k in order]
    low, high = estimate.interval()
    places = np.arange(len(order))
    figure = new_figure(7, 1.2 + 0.3 * (len(order) + (others > 0)))
    axes = figure.subplots()
    axes.barh(places, values, color=_colours(values), height=0.7)
    if estimate.stderr.any():
        reach = np.stack([values - low[order], high[order] - values])
        axes.errorbar(values, places, xerr=reach, fmt="none", ecolor="black", capsize=2.5)
    if others:
        rest = float(np.delete(estimate.values, order).sum())
        names.append(f"{others} others together")
        axes.barh([len(order)], [rest], color=OTHERS, height=0.7)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    bars = "" if not estimate.stderr.any() else ", 95 % intervals"
    _plain(axes, f"value{bars}", title_of(estimate))
    return figure


def waterfall(estimate: Estimate) -> Figure:
    """Return the way from the value of nobody to that of all, the largest step last."""
    order, others = largest(estimate.values)
    steps = list(estimate.values[order][::-1])
    names = [fitting(estimate.names[k]) for k in order[::-1]]
    colours = _colours(np.array(steps))
    if others:
        steps.insert(0, float(np.delete(estimate.values, order).sum()))
        names.insert(0, f"{others} others together")
        colours.insert(0, OTHERS)
    start = estimate.base or 0.0
    ends = start + np.cumsum([0.0, *steps])
    figure = new_figure(7, 1.4 + 0.34 * len(steps))
    axes = figure.subplots()
    places = np.arange(len(steps))
    axes.barh(places, steps, left=ends[:-1], color=colours, height=0.7)
    for k, step in enumerate(steps):
        if k + 1 < len(steps):
            axes.plot([ends[k + 1]] * 2, [k - 0.35, k + 1.35], color="black", linewidth=0.5)
        axes.annotate(
            f"{'+' if step >= 0 else '−'}{written(abs(step), 3)}", (max(ends[k], ends[k + 1]), k),
            xytext=(4, 0), textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    axes.set_yticks(places, names)
    axes.use_sticky_edges = False
    axes.margins(x=0.12, y=0.02)
    axes.axvline(start, color="black", linewidth=0.8, linestyle=":")
    _plain(axes, _from_to(estimate, start, float(ends[-1])), title_of(estimate))
    return figure


def force(estimate: Estimate) -> Figure:
    """Return one line: what pushes up ends where what pulls down begins, at the value of all."""
    start = estimate.base or 0.0
    end = start + float(estimate.values.sum())
    span = float(np.abs(estimate.values).sum()) or 1.0
    order = np.argsort(-np.abs(estimate.values), kind="stable")
    figure = new_figure(10, 2.6)
    axes = figure.subplots()
    for sign, paint in ((1, MORE), (-1, LESS)):
        at = end  # ups lie left of the end, downs right of it: the largest next to it
        for player in order[np.sign(estimate.values[order]) == sign]:
            width = abs(float(estimate.values[player]))
            left = at - width if sign > 0 else at
            axes.barh(
                [0], [width], left=left, height=0.5, color=paint, edgecolor="white", linewidth=1.0
            )
            if width >= NAMED_FORCES * span:
                axes.annotate(
                    fitting(estimate.names[player], 24), (left + width / 2, -0.3), rotation=30,
                    ha="right", va="top", fontsize=8, annotation_clip=False,
                )  # fmt: skip
            at -= sign * width
    for place, name in ((start, "nobody"), (end, "all")):
        axes.plot([place] * 2, [-0.3, 0.45], color="black", linewidth=1.0)
        axes.annotate(
            f"{name}: {written(place, 4)}", (place, 0.5), ha="center", va="bottom", fontsize=9
        )
    axes.set(ylim=(-1.6, 0.9), yticks=[])
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.set_title(title_of(estimate), fontsize=10)
    return figure


def _network(estimate: Estimate) -> Figure:
    n = len(estimate.names)
    pairs: dict[tuple[int, ...], float] = {
        (i, j): float(estimate.values[i, j]) for i in range(n) for j in range(i + 1, n)
    }
    return draw_network(pairs, estimate.names, title_of(estimate))


def largest(values: FloatVector) -> Bars:
    """Return the players with the largest |value| that get a bar of their own."""
    order = np.argsort(-np.abs(values), kind="stable")
    shown = len(order) if len(order) <= MOST_BARS else MOST_BARS - 1
    return Bars(order[:shown], len(order) - shown)


def title_of(estimate: Estimate) -> str:
    """Return one line on where the values come from."""
    stopped = f", {estimate.stopped}" if estimate.stopped else ""
    cost = f", {estimate.evaluations} evaluations{stopped}" if estimate.evaluations else ""
    return f"{len(estimate.names)} players; {estimate.method}{cost}"


def _from_to(estimate: Estimate, start: float, end: float) -> str:
    first = "nobody" if estimate.base is not None else "start"
    return f"from {written(start, 4)} ({first}) to {written(end, 4)} (all)"


def _colours(values: FloatVector) -> list[str]:
    return [MORE if value >= 0 else LESS for value in values]


def _plain(axes: Any, below: str, above: str) -> None:  # noqa: ANN401 (matplotlib's Axes)
    axes.set_xlabel(below)
    axes.set_title(above, fontsize=10)
    axes.spines[["right", "top"]].set_visible(False)
