"""Values as a page of bars that can be zoomed and works offline, by plotly."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from coalitions.drawing.document import plotly_page, words
from coalitions.drawing.pictures import check_picture_path
from coalitions.errors import InvalidInputError
from coalitions.extras import needed
from coalitions.files.writing import write_whole
from coalitions.results.figures import LESS, MORE, title_of
from coalitions.sampling.estimator import Estimate
from coalitions.values.interaction_result import Interactions

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
