"""Where a picture of a solution has its players, lines and cells; no library draws here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coalitions.drawing.pictures import colour
from coalitions.formatting import figure
from coalitions.game import FloatMatrix, FloatVector, IntVector

if TYPE_CHECKING:
    from coalitions.graph import SynergyGraph
    from solvers.solution import Solution

SHOWN_PLAYERS = 500
"""Above this many players a picture shows coalitions, not players."""

SHOWN_COALITIONS = 60
"""Rows of the matrix of coalitions; smaller ones share the last row."""

NAMED_PLAYERS = 60
"""Up to this many players their names are written next to them."""

NUMBERED_CELLS = 16
"""Up to this many rows the cells of a matrix have their numbers in them."""

SHOWN_PAIRS = 1500
"""Lines of each kind in the graph; the strongest are drawn."""

FAINT = 0.15
"""Pairs with less than this share of the largest |synergy| are not drawn as lines."""

ALONE = "#9A9A9A"
GAIN, LOSS = "#4477AA", "#CC3311"
"""Pairs inside coalitions: positive and negative synergy."""


@dataclass(frozen=True)
class Discs:
    """Where the players of a graph are drawn: each coalition fills a disc.

    Attributes
    ----------
    order
        The players, coalition by coalition, the largest first.
    starts
        Where in `order` each coalition starts; one more at the end.
    positions
        Coordinates of the players [n, 2].
    colours
        Colour of each player; those alone are grey.
    centres, radii
        The discs of the coalitions [m, 2] and [m], in the order of `starts`.
    """

    order: IntVector
    starts: IntVector
    positions: FloatMatrix
    colours: list[str]
    centres: FloatMatrix
    radii: FloatVector


def title_of(graph: SynergyGraph, solution: Solution) -> str:
    """Return one line on what was found and proven."""
    blocks = len(solution.structure)
    proof = "optimal" if solution.optimal else f"bound {figure(solution.bound)}"
    players = f"{graph.n_players} player{'s' * (graph.n_players != 1)}"
    coalitions = f"{blocks} coalition{'s' * (blocks != 1)}"
    return f"{players} in {coalitions}, value {figure(solution.value)}, {proof}"


def place_players(solution: Solution) -> Discs:
    """Return a place for every player, without a look at the synergies.

    A disc is filled in sunflower order, and discs are put, the largest first, as near to the centre
    as they fit.
    """
    blocks = sorted(solution.structure, key=len, reverse=True)
    order = np.array([player for block in blocks for player in block])
    starts = np.cumsum([0, *map(len, blocks)])
    positions = np.empty((len(order), 2))
    colours = [ALONE] * len(order)
    radii = np.array([math.sqrt(len(block)) + 0.6 for block in blocks])
    centres = _packed(radii)
    for number, (block, centre) in enumerate(zip(blocks, centres, strict=True)):
        k = np.arange(len(block))
        radius, angle = np.sqrt(k + 0.5 * (len(block) > 1)), k * math.pi * (3 - math.sqrt(5))
        spread = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
        positions[list(block)] = centre + 0.9 * spread
        if len(block) > 1:
            for player in block:
                colours[player] = colour(number)
    return Discs(order, starts, positions, colours, centres, radii)


def _packed(radii: FloatVector) -> FloatMatrix:
    """Return centres of discs that do not overlap, each as near to the origin as a spiral finds."""
    centres = np.zeros((len(radii), 2))
    turn = 0.0
    for k in range(1, len(radii)):
        # The spiral goes on from where the last disc of this size found room.
        turn = 0.0 if radii[k] < radii[k - 1] else turn
        while True:
            centre = 0.12 * turn * np.array([math.cos(turn), math.sin(turn)])
            gaps = np.hypot(*(centres[:k] - centre).T) - radii[:k] - radii[k]
            if gaps.min() >= 0:
                break
            turn += 0.3 / (1 + 0.12 * turn)
        centres[k] = centre
    return centres


def block_means(graph: SynergyGraph, solution: Solution) -> tuple[FloatMatrix, list[str]]:
    """Return the mean synergy of the pairs between and inside coalitions, and the rows' names.

    Coalitions come by size and are named after their first players; those beyond the largest 60
    are one row together.
    """
    blocks = sorted(solution.structure, key=len, reverse=True)
    rows = min(len(blocks), SHOWN_COALITIONS)
    row = np.empty(graph.n_players, np.int64)
    for number, block in enumerate(blocks):
        row[list(block)] = min(number, rows - 1)
    i, j, weight = graph.edges
    sums = np.zeros((rows, rows))
    np.add.at(sums, (row[i], row[j]), weight)
    sums += np.triu(sums, 1).T + np.tril(sums, -1).T
    sizes = np.bincount(row, minlength=rows).astype(float)
    pairs = np.outer(sizes, sizes)
    np.fill_diagonal(pairs, sizes * (sizes - 1) / 2)
    names = [
        graph.labels[block[0]] + (f" + {len(block) - 1}" if len(block) > 1 else "")
        for block in blocks[:rows]
    ]
    if len(blocks) > rows:
        names[-1] = f"{len(blocks) - rows + 1} more coalitions"
    return sums / np.maximum(pairs, 1), names


def pairs_to_draw(
    graph: SynergyGraph, solution: Solution
) -> list[tuple[str, str, float, IntVector]]:
    """Return the pairs to draw as (name, colour, opacity, pairs [m, 2]), the faintest first."""
    labels = solution.structure.labels
    i, j, weight = graph.edges
    inside = labels[i] == labels[j]
    clear = np.abs(weight) >= FAINT * np.abs(weight).max(initial=0.0)
    kinds = [
        ("synergy given up", ALONE, 0.25, clear & ~inside & (weight > 0)),
        ("synergy inside", GAIN, 0.5, clear & inside & (weight > 0)),
        ("conflict inside", LOSS, 0.6, clear & inside & (weight < 0)),
    ]
    lines = []
    for name, paint, opacity, chosen in kinds:
        pairs = np.flatnonzero(chosen)
        pairs = pairs[np.argsort(-np.abs(weight[pairs]), kind="stable")[:SHOWN_PAIRS]]
        lines.append((name, paint, opacity, np.stack([i[pairs], j[pairs]], 1)))
    return lines


@dataclass(frozen=True)
class Cells:
    """The matrix beside the graph.

    Attributes
    ----------
    title
        What the cells are.
    matrix
        The numbers, rows ordered by coalition.
    names
        Names of the rows.
    cuts
        Rows before which another coalition begins.
    """

    title: str
    matrix: FloatMatrix
    names: list[str]
    cuts: list[int]

    @property
    def top(self) -> float:
        """The largest |number|, or 1: where the scale of colours ends."""
        return float(np.abs(self.matrix).max()) or 1.0

    @property
    def numbered(self) -> bool:
        """Whether cells have their numbers in them."""
        return len(self.names) <= NUMBERED_CELLS


def cells_of(graph: SynergyGraph, solution: Solution) -> Cells:
    """Return the synergies ordered by coalition, or the means of coalitions if there are many."""
    if graph.n_players > SHOWN_PLAYERS:
        matrix, names = block_means(graph, solution)
        return Cells("mean synergy of a pair, by coalition", matrix, names, [])
    discs = place_players(solution)
    return Cells(
        "synergies, ordered by coalition",
        graph.matrix[np.ix_(discs.order, discs.order)],
        [graph.labels[player] for player in discs.order],
        discs.starts[1:-1].tolist(),
    )


def in_a_cell(number: float) -> str:
    """Return a number that fits into a cell.

    Examples
    --------
    >>> in_a_cell(31.74), in_a_cell(-0.25), in_a_cell(0.0), in_a_cell(123456.0)
    ('31.7', '-0.25', '0', '1.2e5')
    """
    text = f"{number:.3g}"
    return f"{number:.1e}".replace("e+0", "e").replace("e-0", "e-") if "e" in text else text
