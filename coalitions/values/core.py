"""The core and the least core: shares that leave no coalition better off on its own.

All concepts here see the zero-normalised game v(S) − v(∅); it is the game itself
if the empty coalition is worth nothing. The linear program is that of the nucleolus, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coalitions.checks import GameLike, as_game, one_number_each
from coalitions.enumeration import member_sums, value_table
from coalitions.errors import InfeasibleError, InvalidInputError, NoSolutionError, with_keywords
from coalitions.formatting import figure
from coalitions.game import (
    BoolMatrix,
    FloatMatrix,
    FloatVector,
    Game,
    IntVector,
    labels_of,
    players_of,
)
from coalitions.results import PublicResult, Row
from coalitions.values.estimate import Estimate

TOLERANCE = 1e-9
"""What counts as equal, relative to the largest value of the game."""

MOST_PLAYERS = 24
"""Games of more players are refused: a table of theirs and its copies would fill the memory."""


@dataclass(frozen=True)
class CoreMembership(PublicResult):
    """Whether shares are in the core, and if not, who objects.

    Attributes
    ----------
    member
        Whether the shares add up to the grand coalition's value and no coalition objects.
    blocking
        The coalition that loses most, or None if no coalition loses.
    excess
        What the worst-off proper coalition would gain on its own, max v(S) − x(S);
        negative if every coalition gets more than it is worth. 0 for a single player.
    surplus
        v(N) − x(N): what the shares leave (positive) or overspend (negative).
    labels
        Names of the players.
    """

    member: bool
    blocking: tuple[int, ...] | None
    excess: float
    surplus: float
    labels: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def named(self) -> tuple[str, ...]:
        """The players who object, by name; nobody if no coalition loses."""
        return named_players(self.blocking or (), self.labels)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer with the coalition that objects by name."""
        return {
            "member": self.member,
            "blocking": None if self.blocking is None else list(self.named),
            "excess": self.excess,
            "surplus": self.surplus,
        }

    def _rows(self) -> list[Row]:
        return [self.to_dict()]


@dataclass(frozen=True, eq=False)
class LeastCore(Estimate):
    """A point of the least core with the proof that no smaller ε exists: shares, and more.

    Attributes
    ----------
    epsilon
        The least ε for which x(S) ≥ v(S) − ε is possible for all proper coalitions;
        the core is empty exactly if it is positive. 0 for a single player.
    core_is_empty
        Whether ε is positive by more than rounding.
    coalitions, weights
        A balanced collection: with these weights every player is covered once, so the weighted
        sum of x(S) ≥ v(S) − ε bounds ε from below by `epsilon`.
    """

    epsilon: float = 0.0
    core_is_empty: bool = False
    coalitions: tuple[tuple[int, ...], ...] = ()
    weights: FloatVector = field(default_factory=lambda: np.empty(0))

    @property
    def payoff(self) -> FloatVector:
        """The point: a share for each player [n]."""
        return self.values

    def to_dict(self) -> dict[str, Any]:
        """Return the shares by name, ε and the coalitions that prove it."""
        return super().to_dict() | {
            "epsilon": self.epsilon,
            "core_is_empty": self.core_is_empty,
            "coalitions": [list(named_players(c, self.names)) for c in self.coalitions],
            "coalition_weights": self.weights.tolist(),
        }

    def _below(self) -> str:
        return f"ε {figure(self.epsilon, 6)}; {super()._below()}"


def named_players(players: Iterable[int], labels: Sequence[str]) -> tuple[str, ...]:
    """Return players by name, or by number if they have no names."""
    return tuple(labels[player] if labels else str(player) for player in players)


def zero_normalised_table(game: Game) -> FloatVector:
    """Return v(S) − v(∅) for all coalitions [2^n]."""
    if players_of(game) > MOST_PLAYERS:
        raise InvalidInputError(
            f"the core and the nucleolus look at all 2^n coalitions; {game.n_players} players are"
            f" too many, {MOST_PLAYERS} are the most"
        )
    table = value_table(game)
    if not np.isfinite(table).all():
        raise InvalidInputError("the game has values that are not finite numbers")
    normalised: FloatVector = table - table[0]
    return normalised


def scale_of(table: FloatVector) -> float:
    """Return the unit in which tolerances are meant: the largest |v(S)|, or 1 if all are 0."""
    return float(np.abs(table).max()) or 1.0


def members(mask: int) -> tuple[int, ...]:
    """Return the players of a coalition given by its bits."""
    return tuple(player for player in range(int(mask).bit_length()) if mask >> player & 1)


@with_keywords()
def core_membership(
    game: GameLike, payoff: ArrayLike, *, tolerance: float = TOLERANCE
) -> CoreMembership:
    r"""Tell whether `payoff` is in the core, and which coalition blocks it if not.

    .. math:: x(N) = v(N), \qquad x(S) \ge v(S) \quad \text{for all } S \subset N

    Parameters
    ----------
    game
        Any game of up to 24 players: all 2^n coalitions are looked at.
    payoff
        Share of each player [n].
    tolerance
        Slack, relative to the largest value of the game.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> glove = TableGame([0, 0, 0, 1, 0, 1, 0, 1])
    >>> core_membership(glove, [1, 0, 0]).member
    True
    >>> core_membership(glove, [0.5, 0.5, 0]).blocking
    (0, 2)
    """
    game = as_game(game)
    table = zero_normalised_table(game)
    shares = one_number_each(payoff, game.n_players, "the payoff")
    slack = tolerance * scale_of(table)
    surplus = float(table[-1] - shares.sum())
    if len(table) == 2:
        return CoreMembership(abs(surplus) <= slack, None, 0.0, surplus, labels_of(game))
    excesses = table - member_sums(shares)
    worst = int(excesses[1:-1].argmax()) + 1
    excess = float(excesses[worst])
    blocking = members(worst) if excess > slack else None
    member = blocking is None and abs(surplus) <= slack
    return CoreMembership(member, blocking, excess, surplus, labels_of(game))


def least_core(game: GameLike) -> LeastCore:
    r"""Return the least core's ε, one of its points, and a balanced collection that proves ε.

    .. math:: \min ε \quad\text{subject to}\quad x(N) = v(N),\;
        x(S) \ge v(S) - ε \text{ for all } \emptyset \ne S \subset N

    [Maschler1979]_. The program is solved on a few coalitions, and those that
    its solution wrongs most join it until there are none.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> majority = TableGame([0, 0, 0, 1, 0, 1, 1, 1])
    >>> round(least_core(majority).epsilon, 6)
    0.333333
    """
    game = as_game(game)
    table = zero_normalised_table(game)
    n = game.n_players
    reason = f"all 2^{n} coalitions were looked at"
    if n == 1:
        return LeastCore.exact(table[1:].copy(), labels_of(game), 2, reason)
    scale = scale_of(table)
    free = np.ones(len(table), np.bool_)
    free[[0, -1]] = False
    optimum = minimize_excess(
        table / scale,
        free=free,
        rows=first_rows(n),
        equations=np.ones((1, n)),
        totals=table[-1:] / scale,
    )
    # The multipliers cover every player equally often, the price of x(N) = v(N): scale it to 1.
    cover = optimum.weights @ ((optimum.coalitions & 1) > 0)
    weights = optimum.weights / cover
    gain = weights @ table[optimum.coalitions] - table[-1]
    epsilon = float(gain / weights.sum())
    return LeastCore.exact(
        scale * optimum.payoff,
        labels_of(game),
        1 << n,
        reason,
        epsilon=epsilon,
        core_is_empty=epsilon > TOLERANCE * scale,
        coalitions=tuple(members(mask) for mask in optimum.coalitions.tolist()),
        weights=weights,
    )


def core_point(game: GameLike) -> LeastCore:
    """Return shares in the core, the least core's; raise if the core is empty.

    Raises
    ------
    InfeasibleError
        If the core is empty; the message names the balanced coalitions that prove it, which cover
        every player once by their weights and are worth more than everybody together.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> core_point(TableGame([0, 0, 0, 1, 0, 1, 0, 1])).values.round(6) + 0.0
    array([1., 0., 0.])
    """
    found = least_core(game)
    if found.core_is_empty:
        proof = ", ".join(
            f"{weight:.4g} × {{{', '.join(named_players(coalition, found.names))}}}"
            for coalition, weight in zip(found.coalitions, found.weights, strict=True)
        )
        raise InfeasibleError(
            f"the core is empty: any shares leave some coalition {found.epsilon:.6g} short; proven"
            f" by {proof}"
        )
    return found


# ----------------------------------------------------------------------------------------
# The linear program of the largest excess, by constraint generation

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


def minimize_excess(
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
