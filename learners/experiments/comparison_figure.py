"""A comparison as a picture: differences from the baseline, or the metric by what was swept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coalitions.drawing.pictures import colour, new_figure, plain_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOG_FROM = 20
"""Values whose largest is so many times the smallest get a logarithmic axis."""

BANDS = 6
"""Up to so many curves show the range over seeds; more bands would hide each other."""

DASHES = ("-", "--", ":", "-.")


@dataclass(frozen=True)
class SweepCurve:
    """The metric of a row by the values of an option: mean, lowest and highest seed."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def comparison_figure(document: Mapping[str, Any]) -> Figure:
    """Return the figure of a comparison.

    After a sweep it has a panel for each option that was swept, with a curve for each row.
    Otherwise it has a line for each row: its paired difference from the baseline, with the 95 %
    interval.

    Parameters
    ----------
    document
        The comparison as plain values.
    """
    with plain_style():
        return _swept(document) if document["swept"] else _differences(document)


def _differences(document: Mapping[str, Any]) -> Figure:
    rows = document["algorithms"]
    figure = new_figure(7, 1.4 + 0.35 * len(rows))
    axes = figure.subplots()
    axes.axvline(0, color="0.6", linewidth=1)
    for place, row in enumerate(rows.values()):
        gap = row["difference"]
        axes.plot(gap["mean"], place, "o", color=colour(0))
        if gap["low"] is not None:
            axes.plot([gap["low"], gap["high"]], [place, place], color=colour(0))
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.5, -0.5)  # the first row is on top
    better = "lower" if document["lower_is_better"] else "higher"
    axes.set_xlabel(f"{document['metric']} minus that of {document['baseline']} ({better}: better)")
    axes.grid(axis="x", alpha=0.3)
    return figure


def _swept(document: Mapping[str, Any]) -> Figure:
    options = list(dict.fromkeys(each["option"] for each in document["swept"]))
    figure = new_figure(6.5 * len(options), 4.5)
    for option, axes in zip(
        options, figure.subplots(1, len(options), squeeze=False)[0], strict=True
    ):
        curves = sweep_curves(document, option)
        for number, curve in enumerate(curves):
            paint = colour(number % 8)
            axes.plot(
                curve.x, curve.y, marker="o", markersize=3, color=paint, label=curve.name,
                linestyle=DASHES[number // 8 % len(DASHES)],
            )  # fmt: skip
            if len(document["seeds"]) > 1 and len(curves) <= BANDS:
                axes.fill_between(curve.x, curve.low, curve.high, color=paint, alpha=0.15, lw=0)
        axes.set(xlabel=option, ylabel=document["metric"])
        axes.grid(alpha=0.3)
        if len(curves) > BANDS:  # beside the picture, where it hides nothing
            axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1.01, 0.5))
        elif len(curves) > 1:
            axes.legend(fontsize="small")
        values = _values(document, option)
        numbers = _numbers(values)
        if numbers is None:
            axes.set_xticks(range(len(values)), values)
        elif min(numbers) > 0 and max(numbers) >= LOG_FROM * min(numbers):
            axes.set_xscale("log")
    return figure


def sweep_curves(document: Mapping[str, Any], option: str) -> list[SweepCurve]:
    """Return the metric by the values of an option; a row that was not swept has a level line.

    A curve is the mean over seeds, with their range. Its name has the other options by which its
    row was swept.
    """
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
    for name, points in lines.items():
        points = sorted(points)
        seeds = [rows[cell]["per_seed"] for _, cell in points]
        curves.append(
            SweepCurve(
                name,
                [x for x, _ in points],
                [rows[cell]["mean"] for _, cell in points],
                list(map(min, seeds)),
                list(map(max, seeds)),
            )
        )
    return curves


def _rest(document: Mapping[str, Any], row: str, cell: str, option: str) -> str:
    """Return the name of a swept row, with the values of the other options that it was swept by."""
    values_of_others = [
        f"{each['option']}={value}"
        for each in document["swept"]
        if each["row"] == row and each["option"] != option
        for value, cells in zip(each["values"], each["cells"], strict=True)
        if cell in cells
    ]
    return " ".join([row, *values_of_others])


def _values(document: Mapping[str, Any], option: str) -> list[str]:
    found = [each["values"] for each in document["swept"] if each["option"] == option]
    return list(dict.fromkeys(value for values in found for value in values))


def _numbers(values: Sequence[str]) -> list[float] | None:
    """Return the values as numbers; None if one is a word."""
    try:
        return [float(value) for value in values]
    except ValueError:
        return None
