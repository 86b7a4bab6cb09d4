"""Values and interactions as figures: bars, waterfall, line of forces, network, page to zoom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coalitions.drawing.document import plotly_page, words
from coalitions.drawing.pictures import check_picture_path, drawn_to_file, new_figure
from coalitions.errors import InvalidInputError, UnknownNameError, did_you_mean, shown
from coalitions.extras import needed
from coalitions.files.writing import write_whole
from coalitions.formatting import figure as written
from coalitions.formatting import fitting
from coalitions.game import FloatVector, IntVector
from coalitions.values.estimate import Estimate, Interactions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# ----------------------------------------------------------------------------------------
# Interactions: players on a circle, lines and areas for what they gain together

GAIN, LOSS = "#4477AA", "#CC3311"

SHOWN_SETS = 300
"""Lines and areas; the strongest are drawn."""

FAINT = 0.02
"""Sets with less than this share of the largest |value| are not drawn."""

NAMED_PLAYERS = 60


def interaction_network(
    interactions: Mapping[tuple[int, ...], float],
    labels: Sequence[str],
    title: str = "",
    path: str | Path | None = None,
) -> Figure:
    """Return a matplotlib figure of interactions of any order.

    Players stand on a circle. What one player has by itself is the size of its node; a pair is a
    line, three and more an area between them. Blue is more than the sum of the parts, red less;
    the wider and darker, the stronger.

    Parameters
    ----------
    interactions
        Numbers of the players of a set → its interaction.
    labels
        Names of the players.
    title
        A line above.
    path
        Where to write the picture as well: ``.png``, ``.svg`` or ``.pdf``.

    Examples
    --------
    >>> figure = interaction_network({(0,): 1.0, (0, 1): 2.0, (0, 1, 2): -1.0}, ["a", "b", "c"])
    >>> len(figure.axes)
    1
    """
    return drawn_to_file(lambda: draw_network(interactions, labels, title), path)


def draw_network(
    interactions: Mapping[tuple[int, ...], float], labels: Sequence[str], title: str
) -> Figure:
    """Return the figure, in the style that is set."""
    from matplotlib.patches import Polygon

    n = len(labels)
    for players in interactions:
        if not all(0 <= player < n for player in players):
            raise InvalidInputError(
                f"{shown(players)} is no set of the players 0 … {n - 1}, which the labels name"
            )
    angles = np.pi / 2 - 2 * np.pi * np.arange(n) / max(1, n)
    places = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    figure = new_figure(7, 7)
    axes = figure.subplots()
    together = {key: value for key, value in interactions.items() if len(key) > 1}
    top = max(map(abs, together.values()), default=0.0)
    strongest = sorted(together.items(), key=lambda item: (-abs(item[1]), item[0]))[:SHOWN_SETS]
    # The faintest first, so that what matters lies on top; areas below lines.
    for players, value in sorted(strongest, key=lambda item: (-len(item[0]), abs(item[1]))):
        strength = abs(value) / top if top else 0.0
        if strength < FAINT:
            continue
        paint, corners = GAIN if value > 0 else LOSS, places[list(players)]
        if len(players) == 2:
            axes.plot(
                *corners.T, color=paint, linewidth=0.5 + 6 * strength, alpha=0.25 + 0.6 * strength,
                solid_capstyle="round", zorder=2,
            )  # fmt: skip
        else:
            axes.add_patch(
                Polygon(corners, color=paint, alpha=0.05 + 0.25 * strength, linewidth=0, zorder=1)
            )
    alone = np.array([interactions.get((player,), 0.0) for player in range(n)])
    most = float(np.abs(alone).max(initial=0.0)) or 1.0
    colours = [GAIN if value > 0 else LOSS if value < 0 else "#9A9A9A" for value in alone]
    sizes = 30 + 370 * np.abs(alone) / most
    axes.scatter(
        places[:, 0], places[:, 1], s=sizes, c=colours, zorder=3, edgecolors="white", linewidths=0.8
    )
    if n <= NAMED_PLAYERS:
        for name, (x, y) in zip(labels, places, strict=True):
            axes.annotate(
                fitting(str(name), 24), (1.12 * x, 1.12 * y), va="center", fontsize=9,
                ha="center" if abs(x) < 0.2 else "left" if x > 0 else "right",
            )  # fmt: skip
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.35, 1.35), aspect="equal")
    axes.axis("off")
    axes.set_title(title, fontsize=10)
    return figure


# ----------------------------------------------------------------------------------------
# Values: bars with intervals, a waterfall, one line of forces

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
    return drawn({"bar": bar, "waterfall": waterfall, "force": force}, kind, path, estimate)


def drawn(kinds: Any, kind: str | None, path: str | Path | None, what: Any) -> Figure:  # noqa: ANN401
    """Return the figure of a kind, the first if none is named, and write it if there is a path."""
    chosen = next(iter(kinds)) if kind is None else kind
    if chosen not in kinds:
        raise UnknownNameError(
            f"there is no plot named {chosen!r} for this; {did_you_mean(str(chosen), kinds)}there"
            f" are: {', '.join(kinds)}"
        )
    return drawn_to_file(lambda: kinds[chosen](what), path)


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


# ----------------------------------------------------------------------------------------
# Values as a page of bars that can be zoomed and works offline, by plotly

BAR_HEIGHT = 28
"""Pixels of a bar and the space around it."""


def check_values_path(path: Path, *, network: bool = False) -> None:
    """Raise unless bars, or a network, can be drawn under this name; ask before a long run."""
    if network and path.suffix.lower() == ".html":
        raise InvalidInputError(
            f"{path.name} ends in .html; interactions are drawn as a network, in a .png, .svg or"
            " .pdf file"
        )
    check_picture_path(path, pages=not network)
    needed("plotly" if path.suffix.lower() == ".html" else "matplotlib")


def draw_values(values: Estimate | Interactions, path: Path) -> None:
    """Draw values to a file: ``.png``, ``.svg``, ``.pdf``, or of players ``.html``."""
    if path.suffix.lower() == ".html" and isinstance(values, Estimate):
        write_whole(path, bars_page(values).encode())
    else:
        values.plot(path=path)


def bars_page(estimate: Estimate) -> str:
    """Return a page with a bar for each player, the largest on top, with 95 % intervals."""
    needed("plotly")
    import plotly.graph_objects as go

    order = np.argsort(-np.abs(estimate.values), kind="stable")
    values, names = estimate.values[order], [words(estimate.names[k]) for k in order]
    sampled = bool(estimate.stderr.any())
    reach = estimate.standard_errors(0.95) * estimate.stderr[order]
    places = list(range(len(names)))  # two long names may begin alike, and still are two players
    bars = go.Bar(
        x=values,
        y=places,
        orientation="h",
        marker_color=[MORE if value >= 0 else LESS for value in values],
        error_x={"type": "data", "array": reach, "visible": sampled},
        customdata=np.stack([np.array(names, object), reach], axis=1),
        hovertemplate="%{customdata[0]}: %{x:.6g}"
        + (" ± %{customdata[1]:.2g}" if sampled else "")
        + "<extra></extra>",
    )
    title = title_of(estimate)
    figure = go.Figure(bars)
    figure.update_layout(
        title=title,
        template="plotly_white",
        xaxis_title="value, 95 % intervals" if sampled else "value",
        yaxis={"tickvals": places, "ticktext": names, "autorange": "reversed", "automargin": True},
        height=160 + BAR_HEIGHT * len(names),
    )
    return plotly_page(title, figure)
