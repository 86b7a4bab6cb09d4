r"""The clique-partition program, written once; back-ends translate it.

One binary variable :math:`x_{ij}` per pair of players says that they are together:

.. math::

    \max \sum_{i<j} s_{ij} x_{ij} \quad\text{s.t.}\quad x_{ij} + x_{jk} - x_{ik} \le 1 .

``full`` has this row for every pair i < k and every third player j [Groetschel1989]_. ``rp-star``
keeps only the rows with :math:`s_{ij} > 0` or :math:`s_{jk} > 0`; an optimum of it need not be
transitive, but the components of its positive pairs with :math:`x_{ij} = 1` (the step "pp") are an
optimal structure [Miyauchi2018]_.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import FloatMatrix, FloatVector, IntVector
from coalitions.graph import SynergyGraph
from solvers.demands import Sizes
from solvers.optimality import rounded_up
from solvers.reductions import components, integer_weights

if TYPE_CHECKING:
    from scipy import sparse

Formulation = Literal["rp-star", "full"]
FORMULATIONS: tuple[Formulation, ...] = ("rp-star", "full")

MAX_ROWS = 10_000_000
BYTES_PER_ROW = 400
"""What a row costs a back-end, roughly: three entries in our matrix, in its model and presolved."""

INTEGER_LIMIT = 10**7
"""Weights up to this size are handed over as integers, so that a back-end can round its bound."""

FLOAT_SCALE = 2.0**20
"""Other weights are scaled to this size: back-ends stop at absolute tolerances near 1e-6."""

PRICE_TOLERANCE = 1e-7
"""By how much the reduced weight of a variable may have the wrong sign in an optimal relaxation:
HiGHS, CBC and Gurobi take 1e-7 or 1e-6, and a variable goes from 0 to 1."""


@dataclass(frozen=True)
class Program:
    """A binary program in the pairs of a graph: maximise c·x with lower ≤ A·x ≤ upper.

    Attributes
    ----------
    n_players
        Number of players.
    i, j
        The pair of each variable, i < j; variables after the pairs are auxiliary.
    objective
        The scaled weight of each variable; of the graph's weights it is ``weights / unit``.
    integral
        Whether the objective is integral, so that a bound on it can be rounded down.
    rows
        The rows A (CSR).
    lower, upper
        Limits of the rows.
    weights
        The graph's own weights of the pairs.
    unit
        What one unit of the objective is worth on the graph.
    slack
        What the graph's weights may add up to beyond ``unit * objective``.
    """

    n_players: int
    i: IntVector
    j: IntVector
    objective: FloatVector
    integral: bool
    rows: sparse.csr_array
    lower: FloatVector
    upper: FloatVector
    weights: FloatVector
    unit: Fraction
    slack: float
    transitive: bool

    @property
    def n_variables(self) -> int:
        """Number of variables, auxiliary ones included."""
        return len(self.objective)

    def decode(self, point: FloatVector) -> IntVector:
        """Return the label of each player: components of the pairs that are together.

        In ``rp-star`` only pairs of positive weight count (the step pp).
        """
        together = point[: len(self.i)] > 0.5
        if not self.transitive:
            together &= self.weights > 0
        return components(self.n_players, self.i[together], self.j[together])

    def encode(self, labels: IntVector) -> FloatVector:
        """Return the point of a structure; an auxiliary variable says who is a block's first."""
        together: FloatVector = (labels[self.i] == labels[self.j]).astype(np.float64)
        if self.n_variables == len(together):
            return together
        first = np.zeros(self.n_players)
        first[np.unique(labels, return_index=True)[1]] = 1.0
        return np.concatenate((together, first))

    def graph_bound(self, objective_bound: float) -> float:
        """Return the bound on the graph that a back-end's bound on the objective implies.

        It may be too low by what prices may be off, and by the rounding of sums. A whole objective
        has no values in between, so that costs nothing there.
        """
        if not math.isfinite(objective_bound):
            return math.inf
        off = PRICE_TOLERANCE * self.n_variables + 1e-12 * abs(objective_bound)
        if self.integral:
            objective_bound = math.floor(objective_bound + min(0.5, 1e-4 + off))
        else:
            objective_bound += off
        return rounded_up(Fraction(objective_bound) * self.unit + Fraction(self.slack))


def estimated_rows(graph: SynergyGraph, formulation: Formulation) -> int:
    """Return how many triangle rows a program would have, without building it."""
    n = graph.n_players
    if formulation == "full":
        return n * (n - 1) * (n - 2) // 2
    i, j, weight = graph.edges
    liked = (weight > 0).astype(np.float64)
    degree = (np.bincount(i, liked, n) + np.bincount(j, liked, n)).astype(np.int64)
    # Centre j has C(n-1, 2) pairs of others, less those in which it likes neither of the two.
    indifferent = n - 1 - degree
    return int(((n - 1) * (n - 2) // 2 - indifferent * (indifferent - 1) // 2).sum())


def refuse_if_too_large(graph: SynergyGraph, formulation: Formulation) -> None:
    """Raise if the program would not fit; say how large it would be, and what to use instead."""
    rows = estimated_rows(graph, formulation)
    if not fits(rows):
        memory, available = rows * BYTES_PER_ROW, _available_memory()
        raise InvalidInputError(
            f"the {formulation} program of {graph.n_players} players would have {rows:,} rows"
            f" (about {memory / 2**30:.1f} GiB; at most {MAX_ROWS:,} rows and"
            f" {available / 2**30:.1f} GiB here); use the solver branch-and-cut"
        )


def fits(rows: int) -> bool:
    """Tell whether a program of so many rows fits the memory that is free."""
    return rows <= MAX_ROWS and rows * BYTES_PER_ROW <= _available_memory()


def _available_memory() -> float:
    import os

    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return float("inf")


def build(
    graph: SynergyGraph,
    formulation: Formulation,
    sizes: Sizes | None = None,
    check: Callable[[], None] = lambda: None,
) -> Program:
    """Return the program of a graph, with rows for the sizes of coalitions if they are asked for.

    Parameters
    ----------
    graph
        Players and synergies.
    formulation
        ``"rp-star"`` or ``"full"``.
    sizes
        Demands on coalitions; they need the full formulation, whose points are transitive.
    check
        Called often; it may raise an exception.
    """
    if sizes is not None and formulation != "full":
        raise InvalidInputError(f"sizes of coalitions need the formulation full, not {formulation}")
    refuse_if_too_large(graph, formulation)
    n = graph.n_players
    i, j = np.triu_indices(n, 1)
    weights = np.ascontiguousarray(graph.matrix[i, j])
    objective, unit, slack, integral = _scaled(weights)
    rows, upper = _triangle_rows(graph.matrix, formulation, check)
    program = Program(
        n_players=n,
        i=i.astype(np.int64),
        j=j.astype(np.int64),
        objective=objective,
        integral=integral,
        rows=rows,
        lower=np.full(len(upper), -np.inf),
        upper=upper,
        weights=weights,
        unit=unit,
        slack=slack,
        transitive=formulation == "full",
    )
    return program if sizes is None else _with_sizes(program, sizes)


def _scaled(weights: FloatVector) -> tuple[FloatVector, Fraction, float, bool]:
    scaled = integer_weights(weights)
    if np.abs(scaled.integers).max(initial=0) <= INTEGER_LIMIT:
        return scaled.integers.astype(np.float64), scaled.unit, scaled.slack, True
    exponent = int(np.frexp(np.abs(weights).max())[1])
    factor = np.ldexp(FLOAT_SCALE, -exponent)  # a power of two: the scaling itself is exact
    return weights * factor, 1 / Fraction(float(factor)), 0.0, False


def _triangle_rows(
    matrix: FloatMatrix, formulation: Formulation, check: Callable[[], None]
) -> tuple[sparse.csr_array, FloatVector]:
    from scipy import sparse

    n = len(matrix)
    number = np.zeros((n, n), np.int64)
    upper_i, upper_j = np.triu_indices(n, 1)
    number[upper_i, upper_j] = number[upper_j, upper_i] = np.arange(len(upper_i))
    positive = matrix > 0
    blocks: list[Any] = []
    for centre in range(n):
        check()
        others = np.delete(np.arange(n), centre)
        a, b = np.triu_indices(n - 1, 1)
        i, k = others[a], others[b]
        if formulation == "rp-star":
            kept = positive[i, centre] | positive[centre, k]
            i, k = i[kept], k[kept]
        blocks.append(np.stack((number[i, centre], number[centre, k], number[i, k]), axis=1))
    columns = np.concatenate(blocks) if blocks else np.zeros((0, 3), np.int64)
    m = len(columns)
    rows = sparse.csr_array(
        (
            np.tile(np.array([1.0, 1.0, -1.0]), m),
            columns.ravel().astype(np.int32),
            np.arange(0, 3 * m + 1, 3, dtype=np.int32),
        ),
        shape=(m, len(upper_i)),
    )
    return rows, np.ones(m)


def _with_sizes(program: Program, sizes: Sizes) -> Program:
    r"""Add rows for the number of coalitions, for what each must keep to, and for pairs apart.

    With :math:`m_i` players behind node i, the coalition of i has
    :math:`m_i + \sum_j m_j x_{ij}` players; its load and its members of a role are counted alike.
    With a binary :math:`y_i` that says "i is the first of its coalition",
    :math:`y_i \le 1 - x_{ji}` for j < i and :math:`y_i \ge 1 - \sum_{j<i} x_{ji}`, the number of
    coalitions is :math:`\sum_i y_i`.
    """
    from scipy import sparse

    n, n_pairs = program.n_players, len(program.i)
    counted = sizes.fewest > 1 or sizes.most < n
    width = n_pairs + (n if counted else 0)
    rows: list[tuple[list[int], list[float], float, float]] = []
    number = np.zeros((n, n), np.int64)
    number[program.i, program.j] = number[program.j, program.i] = np.arange(n_pairs)
    sums = [(sizes.players.astype(float), float(sizes.min_size), float(sizes.max_size))]
    if len(sizes.loads):
        sums.append((sizes.loads.astype(float), -np.inf, float(sizes.max_load)))
    sums += [(np.isin(np.arange(n), role).astype(float), 1.0, np.inf) for role in sizes.roles]
    for player in range(n):
        others = np.delete(np.arange(n), player)
        for counts, low, high in sums:
            own, most = float(counts[player]), float(counts.sum())
            if own < low or high < most:
                counting = others[counts[others] != 0]
                rows.append(
                    (
                        number[player, counting].tolist(),
                        counts[counting].tolist(),
                        low - own,
                        high - own,
                    )
                )
        if counted:
            first = n_pairs + player
            earlier = [int(number[before, player]) for before in range(player)]
            rows += [([first, pair], [1.0, 1.0], -np.inf, 1.0) for pair in earlier]
            rows.append(([first, *earlier], [1.0] * (player + 1), 1.0, np.inf))
    rows += [([int(number[a, b])], [1.0], -np.inf, 0.0) for a, b in sizes.apart]
    if counted:
        heads = list(range(n_pairs, width))
        rows.append((heads, [1.0] * n, float(sizes.fewest), float(sizes.most)))
    lengths = [len(columns) for columns, *_ in rows]
    extra = sparse.csr_array(
        (
            np.array([value for _, values, *_ in rows for value in values]),
            np.array([column for columns, *_ in rows for column in columns], np.int32),
            np.concatenate(([0], np.cumsum(lengths))).astype(np.int32),
        ),
        shape=(len(rows), width),
    )
    triangles = sparse.csr_array(
        (program.rows.data, program.rows.indices, program.rows.indptr),
        shape=(program.rows.shape[0], width),
    )
    return Program(
        n_players=n,
        i=program.i,
        j=program.j,
        objective=np.concatenate((program.objective, np.zeros(width - n_pairs))),
        integral=program.integral,
        rows=sparse.vstack([triangles, extra], format="csr"),
        lower=np.concatenate((program.lower, [low for *_, low, _ in rows])),
        upper=np.concatenate((program.upper, [high for *_, high in rows])),
        weights=program.weights,
        unit=program.unit,
        slack=program.slack,
        transitive=True,
    )
