"""The linear program behind the least core and the nucleolus, by constraint generation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coalitions.errors import NoSolutionError
from coalitions.game import BoolMatrix, FloatMatrix, FloatVector, IntVector
from coalitions.subset_sums import member_sums

ROWS_PER_ROUND = 32
"""How many of the most wronged coalitions join the program at once."""

FEASIBILITY = 1e-10
"""The tightest tolerance HiGHS takes; values are of order 1."""

POSITIVE = 1e-8
"""A multiplier above this is positive; those of the coalitions add up to 1."""


@dataclass(frozen=True)
class Optimum:
    """A solution of the program with its multipliers.

    Attributes
    ----------
    epsilon, payoff
        The least ε and shares that attain it.
    rows
        The coalitions the program ended with, as masks: a start for the next one.
    coalitions, weights
        The coalitions with a positive multiplier, as masks; they are tight in every optimum.
    floor_players, floor_weights
        The players whose floor has a positive multiplier; they get their floor in every optimum.
    """

    epsilon: float
    payoff: FloatVector
    rows: IntVector
    coalitions: IntVector
    weights: FloatVector
    floor_players: IntVector
    floor_weights: FloatVector


def first_rows(n_players: int) -> IntVector:
    """Return the single players and everybody but one: the rows to start from."""
    singles = 1 << np.arange(n_players)
    return np.unique(np.concatenate([singles, (1 << n_players) - 1 - singles]))


def minimise_excess(
    table: FloatVector,
    *,
    free: BoolMatrix,
    rows: IntVector,
    equations: FloatMatrix,
    totals: FloatVector,
    floor: FloatVector | None = None,
) -> Optimum:
    r"""Return shares that make the largest excess of the free coalitions as small as possible.

    .. math:: \min ε \quad\text{s.t.}\quad x(S) + ε \ge v(S) \;(S \text{ free}),\quad
        A x = b,\quad x \ge \text{floor}

    The program is solved on a few rows; the free coalitions that its solution wrongs most join
    it until there are none.

    Parameters
    ----------
    table
        Values of all coalitions [2^n], of order 1.
    free
        Which coalitions ε protects [2^n], at least one.
    rows
        Masks of free coalitions to start with; any others are left out.
    equations, totals
        A [r, n] and b [r].
    floor
        Least share of each player [n], or None.
    """
    rows = rows[free[rows]]
    if not len(rows):
        rows = np.flatnonzero(free)[:1]
    while True:
        optimum = _solve(table, rows, equations, totals, floor)
        excess = np.where(free, table - member_sums(optimum.payoff), -np.inf)
        excess[rows] = -np.inf
        worst = np.argpartition(excess, -min(ROWS_PER_ROUND, len(excess)))[-ROWS_PER_ROUND:]
        worst = worst[excess[worst] > optimum.epsilon + FEASIBILITY]
        if not len(worst):
            return optimum
        rows = np.concatenate([rows, np.sort(worst)])


def _solve(
    table: FloatVector,
    rows: IntVector,
    equations: FloatMatrix,
    totals: FloatVector,
    floor: FloatVector | None,
) -> Optimum:
    from scipy.optimize import linprog

    n = equations.shape[1]
    membership = (rows[:, None] >> np.arange(n)) & 1
    lowest = [None] * n if floor is None else floor.tolist()
    answer: Any = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=-np.column_stack([membership, np.ones(len(rows))]),
        b_ub=-table[rows],
        A_eq=np.column_stack([equations, np.zeros(len(equations))]),
        b_eq=totals,
        bounds=[(low, None) for low in [*lowest, None]],
        method="highs-ds",
        options={
            "primal_feasibility_tolerance": FEASIBILITY,
            "dual_feasibility_tolerance": FEASIBILITY,
        },
    )
    if answer.x is None:
        raise NoSolutionError(f"HiGHS could not solve a linear program: {answer.message}")
    duals = -np.asarray(answer.ineqlin.marginals)
    floor_duals = np.asarray(answer.lower.marginals)[:n]
    tight, at_floor = np.flatnonzero(duals > POSITIVE), np.flatnonzero(floor_duals > POSITIVE)
    return Optimum(
        epsilon=float(answer.x[n]),
        payoff=np.asarray(answer.x[:n]),
        rows=rows,
        coalitions=rows[tight],
        weights=duals[tight],
        floor_players=at_floor,
        floor_weights=floor_duals[at_floor],
    )
