"""Interactions as a network: players on a circle, lines and areas for what they are together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from coalitions.characters import fitting
from coalitions.drawing.pictures import check_picture_path, new_figure, plain_style, save
from coalitions.errors import InvalidInputError, shown
from coalitions.extras import needed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    if path is not None:
        check_picture_path(Path(path))
    needed("matplotlib")
    with plain_style():
        figure = draw_network(interactions, labels, title)
    if path is not None:
        save(figure, Path(path))
    return figure


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
