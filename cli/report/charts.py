"""What a report shows, as plain data: drawn by plotly on the page, by matplotlib in files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalitions.drawing.pictures import PALETTE


@dataclass(frozen=True)
class Curve:
    """One method's curve; `low` and `high` are the extremes over its seeds, if it has several."""

    method: int
    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@dataclass(frozen=True)
class Lines:
    """Curves over rounds, one for each method (or run).

    `y_range` is where the upright axis begins and ends; None if the curves decide.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    y_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class BarChart:
    """Lying bars: a group for each category, from the top, a bar for each series."""

    name: str
    title: str
    x_label: str
    categories: Sequence[str]
    series: Sequence[tuple[str, Sequence[float]]]


@dataclass(frozen=True)
class ColumnChart:
    """Standing bars: a group for each category, a bar for each method (or run)."""

    name: str
    title: str
    x_label: str
    y_label: str
    categories: Sequence[str]
    series: Sequence[tuple[int, str, Sequence[float | None]]]


@dataclass(frozen=True)
class ChartTable:
    """Numbers as shades, rows × columns; NaN is what nobody knows."""

    name: str
    title: str
    x_label: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Dots:
    """Counts as dots whose areas are the counts: labels × clients."""

    name: str
    title: str
    x_label: str
    y_label: str
    rows: Sequence[str]
    columns: Sequence[str]
    counts: NDArray[np.float64]


@dataclass(frozen=True)
class Heatmap:
    """A matrix per round, [rounds, n, n], with a slider; NaN is what nobody knows.

    `truth_is` says in words when a pair is true, or why nobody knows.
    """

    name: str
    title: str
    labels: Sequence[str]
    frames: NDArray[np.float64]
    rounds: Sequence[int]
    truth: NDArray[np.bool_] | None = None
    truth_is: str = ""


@dataclass(frozen=True)
class Memberships:
    """Each client's coalition over the rounds: rows are clients, columns rounds."""

    name: str
    title: str
    labels: Sequence[str]
    rounds: Sequence[int]
    coalitions: NDArray[np.int64]


@dataclass(frozen=True)
class NetworkChart:
    """A graph coloured by coalition, drawn where a spring layout puts its nodes."""

    name: str
    title: str
    labels: Sequence[str]
    weights: NDArray[np.float64]
    coalitions: NDArray[np.int64]


Chart = Lines | BarChart | ColumnChart | ChartTable | Dots | Heatmap | Memberships | NetworkChart

BANDS = 6
"""Up to so many curves have the range of their seeds shaded; more would hide each other."""

DASHES = ("solid", "dash", "dot", "dashdot")


def line_style(number: int) -> tuple[str, str]:
    """Return the colour and dash of a method's line: 32 that differ, bright enough at night."""
    return PALETTE[number % 8], DASHES[number // 8 % len(DASHES)]


def layout_positions(weights: NDArray[np.float64], seed: int = 0) -> NDArray[np.float64]:
    """Return positions [n, 2] that put players with high synergy near each other."""
    import networkx as nx

    n = len(weights)
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    i, j = np.nonzero(np.triu(weights, 1) > 0)
    top = float(weights.max()) or 1.0
    graph.add_weighted_edges_from(
        (int(a), int(b), float(weights[a, b]) / top) for a, b in zip(i, j, strict=True)
    )
    placed = nx.spring_layout(graph, seed=seed, iterations=60 if n <= 200 else 25)
    return np.array([placed[k] for k in range(n)])


def strongest_edges(weights: NDArray[np.float64], most: int = 600) -> list[tuple[int, int]]:
    """Return the positive pairs, the strongest ones if they are too many to be seen."""
    i, j = np.nonzero(np.triu(weights, 1) > 0)
    order = np.argsort(-weights[i, j], kind="stable")[:most]
    return [(int(i[k]), int(j[k])) for k in order]


def steady_numbers(structures: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Renumber coalitions so that one keeps its number from round to round.

    Each round's coalitions take, largest overlap first, the numbers of the coalitions of the
    round before that they share most clients with; what is left gets new numbers.

    Parameters
    ----------
    structures
        Labels [n] of each round.

    Returns
    -------
    Numbers [n, rounds].
    """
    before = structures[0]
    columns = [before]
    used = int(before.max(initial=-1)) + 1
    for labels in structures[1:]:
        overlaps = sorted(
            (
                (-int(((labels == new) & (before == old)).sum()), int(old), int(new))
                for new in np.unique(labels)
                for old in np.unique(before[labels == new])
            ),
        )
        numbers: dict[int, int] = {}
        for _, old, new in overlaps:
            if new not in numbers and old not in numbers.values():
                numbers[new] = old
        for new in np.unique(labels).tolist():
            if new not in numbers:
                numbers[new] = used
                used += 1
        before = np.array([numbers[int(label)] for label in labels])
        columns.append(before)
    return np.stack(columns, axis=1)
