"""A grid as a picture: the metric against each option that was swept."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalitions.errors import InvalidInputError

if TYPE_CHECKING:
    from cli.report.charts import Lines

ENDINGS = (".svg", ".png", ".pdf")

_WIDE = 20
"""Numbers whose largest is so many times the smallest stand on a logarithmic axis."""


def check_figure(path: Path | None, swept: bool) -> None:
    """Refuse before the first run what could only fail after the last."""
    if path is None:
        return
    if not swept:
        raise InvalidInputError("--figure draws the metric against what --sweep varies; give one")
    if path.suffix.lower() not in ENDINGS:
        raise InvalidInputError(f"--figure {path}: end its name in {', '.join(ENDINGS)}")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInputError(f"--figure {path}: there is no file to write to in {path.parent}")
    import matplotlib  # noqa: F401 (said now if it is not installed)


def save_figure(document: Mapping[str, Any], path: Path) -> None:
    """Write the picture of a comparison: a panel for each option, a curve for each row."""
    from coalitions.drawing.pictures import plain_style

    with plain_style():
        _save(document, path)


def _save(document: Mapping[str, Any], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from cli.report.static import draw
    from coalitions.files.writing import atomic_write

    options = list(dict.fromkeys(each["option"] for each in document["swept"]))
    figure = Figure(figsize=(6.5 * len(options), 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    for option, place in zip(
        options, figure.subfigures(1, len(options), squeeze=False)[0], strict=True
    ):
        values = _values(document, option)
        draw(chart_of(document, option), place)
        axes = place.axes[0]
        numbers = _numbers(values)
        if numbers is None:
            axes.set_xticks(range(len(values)), values)
        elif min(numbers) > 0 and max(numbers) >= _WIDE * min(numbers):
            axes.set_xscale("log")
    with atomic_write(path) as file:
        # Without a date the same comparison gives the same file.
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else {}
        kind = path.suffix.lower().removeprefix(".")
        figure.savefig(file, format=kind, dpi=150, metadata=metadata)


def chart_of(document: Mapping[str, Any], option: str) -> Lines:
    """Return the metric against an option; rows that were not swept are level lines.

    A curve is the mean over seeds, with their range; the other options that its row was swept by
    are in its name.
    """
    from cli.report.charts import Curve, Lines

    values = _values(document, option)
    numbers = _numbers(values)
    place = dict(zip(values, range(len(values)) if numbers is None else numbers, strict=True))
    rows = document["algorithms"]
    swept = [each for each in document["swept"] if each["option"] == option]
    lines: dict[str, list[tuple[float, str]]] = {}
    for each in swept:
        for value, cells in zip(each["values"], each["cells"], strict=True):
            for cell in cells:
                lines.setdefault(_rest(document, each["row"], cell, option), []).append(
                    (place[value], cell)
                )
    taken = {cell for line in lines.values() for _, cell in line}
    ends = (min(place.values()), max(place.values()))
    for name in rows:
        if name not in taken:
            lines[name] = [(x, name) for x in dict.fromkeys(ends)]
    curves = []
    for number, (name, points) in enumerate(lines.items()):
        points = sorted(points)
        seeds = [rows[cell]["per_seed"] for _, cell in points]
        curves.append(
            Curve(
                number,
                name,
                [x for x, _ in points],
                [rows[cell]["mean"] for _, cell in points],
                *([list(map(end, seeds)) for end in (min, max)] if len(seeds[0]) > 1 else ()),
            )
        )
    return Lines(option, f"{document['metric']} by {option}", option, document["metric"], curves)


def _rest(document: Mapping[str, Any], row: str, cell: str, option: str) -> str:
    """Return the name of a swept row, with the values of the other options that it was swept by."""
    told = [
        f"{each['option']}={value}"
        for each in document["swept"]
        if each["row"] == row and each["option"] != option
        for value, cells in zip(each["values"], each["cells"], strict=True)
        if cell in cells
    ]
    return " ".join([row, *told])


def _values(document: Mapping[str, Any], option: str) -> list[str]:
    found = [each["values"] for each in document["swept"] if each["option"] == option]
    return list(dict.fromkeys(value for values in found for value in values))


def _numbers(values: Sequence[str]) -> list[float] | None:
    """Return the values as numbers; None if one is a word."""
    try:
        return [float(value) for value in values]
    except ValueError:
        return None
