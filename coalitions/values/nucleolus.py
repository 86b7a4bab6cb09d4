"""The nucleolus: the shares that leave the unhappiest coalitions as happy as can be.

It comes with its proof, a chain of tight coalitions, that `verify_nucleolus` checks without
solving anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from coalitions.checks import GameLike, as_game
from coalitions.enumeration import member_sums
from coalitions.errors import InfeasibleError, InvalidInputError, with_keywords
from coalitions.game import BoolMatrix, FloatMatrix, FloatVector, labels_of
from coalitions.results import PublicResult, Row
from coalitions.runtime import one_blas_thread
from coalitions.values.core import (
    first_rows,
    members,
    minimize_excess,
    named_players,
    scale_of,
    zero_normalised_table,
)
from coalitions.values.estimate import Estimate

Domain = Literal["imputations", "preimputations"]

SPAN_TOLERANCE = 1e-7
"""A 0/1 vector whose distance from a span is below this lies in it (n ≤ 25 keeps them apart)."""


@dataclass(frozen=True)
class NucleolusStage:
    """One level of the nucleolus and why it cannot be lower.

    Attributes
    ----------
    excess
        The largest excess among the coalitions that the stages before leave open.
    coalitions, weights
        Coalitions at that excess, with positive weights.
    floor_players, floor_weights
        Players who get exactly what they are worth alone, with positive weights.
    """

    excess: float
    coalitions: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]
    floor_players: tuple[int, ...]
    floor_weights: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Nucleolus(Estimate):
    """Shares and the chain of stages that proves them to be the nucleolus.

    Attributes
    ----------
    stages
        The proof; see `verify_nucleolus`.
    domain
        ``"imputations"``, or ``"preimputations"`` for the prenucleolus.
    """

    stages: tuple[NucleolusStage, ...] = ()
    domain: Domain = "imputations"

    @property
    def payoff(self) -> FloatVector:
        """A share for each player [n]."""
        return self.values

    def to_dict(self) -> dict[str, Any]:
        """Return the shares and the stages that prove them, players by name."""
        stages = [
            {
                "excess": stage.excess,
                "coalitions": [list(named_players(c, self.names)) for c in stage.coalitions],
                "coalition_weights": list(stage.weights),
                "at_own_worth": list(named_players(stage.floor_players, self.names)),
                "own_worth_weights": list(stage.floor_weights),
            }
            for stage in self.stages
        ]
        return super().to_dict() | {"domain": self.domain, "stages": stages}


@dataclass(frozen=True)
class Verdict(PublicResult):
    """Whether a proof holds, and in one sentence why not."""

    holds: bool
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return whether it holds, and why not."""
        return {"holds": self.holds, "reason": self.reason}

    def _rows(self) -> list[Row]:
        return [self.to_dict()]


@with_keywords()
def nucleolus(game: GameLike, *, domain: Domain = "imputations") -> Nucleolus:
    r"""Return the nucleolus with its certificate.

    The nucleolus [Schmeidler1969]_ is the imputation whose excesses
    :math:`e(S, x) = v(S) - x(S)`, sorted from the largest on, are lexicographically least. It is
    found level by level: a linear program makes the largest open excess as small as possible;
    the coalitions with positive multipliers are tight in every optimum, so their excess is
    settled, and with it that of all coalitions in the span of the settled ones. Each level
    settles a new dimension, so there are at most n − 1. [Potters1996]_ go
    through such levels in one prolonged simplex algorithm.

    Parameters
    ----------
    game
        Any game of up to 24 players: all 2^n coalitions are looked at.
    domain
        ``"imputations"`` gives everybody at least their own worth; ``"preimputations"`` asks for
        x(N) = v(N) only and gives the prenucleolus, which always exists.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> majority = TableGame([0, 0, 0, 1, 0, 1, 1, 1])
    >>> nucleolus(majority).payoff.round(6).tolist()
    [0.333333, 0.333333, 0.333333]
    """
    _check_domain(domain)
    game = as_game(game)
    values = zero_normalised_table(game)
    scale = scale_of(values)
    table = values / scale
    n = game.n_players
    floor = table[1 << np.arange(n)] if domain == "imputations" else None
    if floor is not None and floor.sum() > table[-1] + 1e-9:
        raise InfeasibleError(
            f"there is no imputation: alone the players get {floor.sum() * scale:g} in all,"
            f" together {values[-1]:g}; ask for preimputations"
        )
    rows, equations, totals = first_rows(n), np.ones((1, n)), table[-1:]
    stages: list[NucleolusStage] = []
    open_directions = _null_space(equations)
    # Shares may still move along the open directions; each level leaves at least one less.
    while open_directions.shape[1]:
        # Of all shares on what is settled, make the largest open excess as small as possible.
        optimum = minimize_excess(
            table,
            free=_outside_span(open_directions),
            rows=rows,
            equations=equations,
            totals=totals,
            floor=floor,
        )
        stages.append(
            NucleolusStage(
                optimum.epsilon,
                tuple(members(mask) for mask in optimum.coalitions.tolist()),
                tuple(optimum.weights.tolist()),
                tuple(optimum.floor_players.tolist()),
                tuple(optimum.floor_weights.tolist()),
            )
        )
        # What has a positive multiplier is tight in every optimum: x(S) = v(S) − ε, x_i = v(i).
        settled = _rows_of(stages[-1], n)
        worth = np.concatenate(
            [table[optimum.coalitions] - optimum.epsilon, table[1 << optimum.floor_players]]
        )
        equations, totals = _independent(equations, totals, settled, worth)
        open_directions = _null_space(equations)
        rows = optimum.rows
    # All levels at once, so that the errors of one program do not add to those of the next.
    payoff, levels = _solve_tight(table, stages)
    return Nucleolus.exact(
        scale * payoff,
        labels_of(game),
        1 << n,
        f"all 2^{n} coalitions were looked at",
        stages=tuple(
            NucleolusStage(
                scale * level,
                stage.coalitions,
                stage.weights,
                stage.floor_players,
                stage.floor_weights,
            )
            for level, stage in zip(levels.tolist(), stages, strict=True)
        ),
        domain=domain,
    )


@with_keywords()
def verify_nucleolus(game: GameLike, claim: Nucleolus, *, tolerance: float = 1e-7) -> Verdict:
    r"""Check a nucleolus by its stages, without solving a linear program.

    Let :math:`H_0` be the span of the grand coalition and :math:`H_k` that of :math:`H_{k-1}` and
    the coalitions (and floor players) of stage k. The claim holds if

    - x(N) = v(N), and for imputations nobody gets less than they are worth alone;
    - the coalitions of stage k have its excess, and no coalition outside :math:`H_{k-1}` has a
      larger one;
    - their positive weights add up to a vector of :math:`H_{k-1}`: lowering one of these excesses
      then raises another, so no shares do better at this stage, and all that do as well agree on
      :math:`H_k`;
    - the last span is everything, so only one point is left.

    This is Kohlberg's criterion [Kohlberg1971]_ read level by level.

    Parameters
    ----------
    game
        The game the claim is about.
    claim
        What `nucleolus` returned.
    tolerance
        Slack in every comparison of values, relative to the largest value of the game.
    """
    _check_domain(claim.domain)
    game = as_game(game)
    values = zero_normalised_table(game)
    scale = scale_of(values)
    table = values / scale
    n = game.n_players
    shares = np.asarray(claim.payoff, np.float64) / scale
    if shares.shape != (n,) or not np.isfinite(shares).all():
        return Verdict(False, f"the payoff is not one finite number for each of {n} players")
    if abs(shares.sum() - table[-1]) > tolerance:
        return Verdict(False, "the shares do not add up to the value of the grand coalition")
    alone = table[1 << np.arange(n)]
    if claim.domain == "imputations" and (shares < alone - tolerance).any():
        player = int((shares - alone).argmin())
        return Verdict(False, f"player {player} gets less than alone")
    excess = table - member_sums(shares)
    span = np.ones((1, n))
    for number, stage in enumerate(claim.stages):
        flaw = _flaw(stage, excess, shares - alone, span, scale, tolerance)
        if stage.floor_players and claim.domain != "imputations":
            flaw = "it uses floors, which preimputations do not have"
        if flaw:
            return Verdict(False, f"stage {number}: {flaw}")
        span = np.vstack([span, _rows_of(stage, n)])
    if _null_space(span).shape[1]:
        return Verdict(False, "the stages leave more than one point")
    return Verdict(True, "every stage is tight and the last one leaves a single point")


def _flaw(
    stage: NucleolusStage,
    excess: FloatVector,
    above_floor: FloatVector,
    span: FloatMatrix,
    scale: float,
    tolerance: float,
) -> str | None:
    """Return what is wrong with a stage after those that span `span`, or None."""
    n = span.shape[1]
    level = stage.excess / scale
    if not stage.coalitions or len(stage.coalitions) != len(stage.weights):
        return "it does not have one weight for each of its coalitions"
    if len(stage.floor_players) != len(stage.floor_weights):
        return "it does not have one weight for each of its floor players"
    if not set(stage.floor_players).union(*stage.coalitions) <= set(range(n)):
        return "it names players who do not exist"
    weights = np.array([*stage.weights, *stage.floor_weights])
    if not (weights > 0).all():
        return "a weight is not positive"
    masks = [sum(1 << player for player in coalition) for coalition in stage.coalitions]
    if (np.abs(excess[masks] - level) > tolerance).any():
        return "one of its coalitions has another excess"
    if (np.abs(above_floor[list(stage.floor_players)]) > tolerance).any():
        return "one of its floor players gets more than alone"
    # Balanced: weighted, the rows add up to a vector of the span: no direction raises them all.
    directions = _null_space(span)
    if (np.abs((weights @ _rows_of(stage, n)) @ directions) > SPAN_TOLERANCE).any():
        return "its weights are not balanced"
    outside = _outside_span(directions)
    if excess[outside].max(initial=-np.inf) > level + tolerance:
        worst = int(np.where(outside, excess, -np.inf).argmax())
        return f"coalition {members(worst)} has a larger excess"
    return None


def _check_domain(domain: str) -> None:
    if domain not in ("imputations", "preimputations"):
        raise InvalidInputError(
            f"the domain is {domain!r}; it must be 'imputations' or 'preimputations'"
        )


def _rows_of(stage: NucleolusStage, n_players: int) -> FloatMatrix:
    """Return the coalitions and floor players of a stage as 0/1 rows."""
    everyone = [*stage.coalitions, *((player,) for player in stage.floor_players)]
    rows = np.zeros((len(everyone), n_players))
    for row, coalition in zip(rows, everyone, strict=True):
        row[list(coalition)] = 1.0
    return rows


@one_blas_thread()
def _null_space(rows: FloatMatrix) -> FloatMatrix:
    """Return an orthonormal basis [n, n − rank] of the directions orthogonal to all rows."""
    _, lengths, directions = np.linalg.svd(rows)
    rank = int((lengths > SPAN_TOLERANCE).sum())
    return np.ascontiguousarray(directions[rank:].T)


def _outside_span(directions: FloatMatrix) -> BoolMatrix:
    """Tell for all coalitions [2^n] whether they lie outside the span that leaves `directions`."""
    # S lies in the span if its 0/1 vector is orthogonal to all directions that are left.
    outside = np.zeros(1 << len(directions), np.bool_)
    for direction in directions.T:
        outside |= np.abs(member_sums(direction)) > SPAN_TOLERANCE
    return outside


def _independent(
    equations: FloatMatrix, totals: FloatVector, rows: FloatMatrix, values: FloatVector
) -> tuple[FloatMatrix, FloatVector]:
    """Return the equations with those of the new ones that do not follow from the others.

    An equation that follows would only add its rounding error as a contradiction.
    """
    for row, value in zip(rows, values, strict=True):
        directions = _null_space(equations)
        if (np.abs(row @ directions) > SPAN_TOLERANCE).any():
            equations = np.vstack([equations, row])
            totals = np.append(totals, value)
    return equations, totals


@one_blas_thread()
def _solve_tight(
    table: FloatVector, stages: list[NucleolusStage]
) -> tuple[FloatVector, FloatVector]:
    """Return the shares and levels from all tight equations at once.

    The linear programs are right up to their tolerance; the equations they found to be tight,
    x(S) + ε_k = v(S), determine x and ε up to rounding.
    """
    n = len(table).bit_length() - 1
    lines, right = [np.append(np.ones(n), np.zeros(len(stages)))], [table[-1]]
    # Unknowns are the n shares and the levels; floor players have no level in their equation.
    for number, stage in enumerate(stages):
        with_level = np.zeros(len(stages))
        with_level[number] = 1.0
        for place, row in enumerate(_rows_of(stage, n)):
            level = with_level if place < len(stage.coalitions) else np.zeros(len(stages))
            lines.append(np.concatenate([row, level]))
            right.append(table[int(row @ (1 << np.arange(n)))])
    solution = np.linalg.lstsq(np.array(lines), np.array(right))[0]
    return solution[:n], solution[n:]
