"""solve_game: the best coalition structure of any characteristic function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from coalitions.checks import GameLike, as_game
from coalitions.enumeration import coalitions_of_masks, value_table
from coalitions.errors import InfeasibleError, InvalidInputError, NoSolutionError, with_keywords
from coalitions.execution.progress import Evaluations, OnEvaluations
from coalitions.game import BoolVector, FloatVector, Game, IntMatrix, IntVector, labels_of, table_of
from coalitions.graph import SynergyGraph
from coalitions.runtime import clock, compile_figures, ready_seconds
from coalitions.structure import CoalitionStructure
from solvers.demands import Contraction, Count, Demands, Pairs, Roles, Weights
from solvers.optimality import at_stake, is_optimal, rounded_up
from solvers.solution import Solution, relative_gap
from solvers.solver import Limits, check_limits, is_ctrl_c

MAX_PLAYERS = 25
"""2^25 values and the tables beside them take about 0.7 GiB."""

SUM_BITS = 60
"""Sums of n scaled values stay below 2^60, so that they and their slacks fit in int64."""

PRICE_ROUNDS = 4
"""How many times each price is lowered as far as it goes."""

WORK_AT_ONCE = 10_000_000
"""Steps of the recursion between two glances at the clock."""


@with_keywords(
    solver="it has one method, an exact one",
    seed="it draws nothing, and the same game always has the same answer",
    threads="it works on one; `parallel(game)` evaluates the game with several processes",
    warm_start="it looks at all structures, wherever it starts",
)
def solve_game(
    game: GameLike,
    *,
    time_limit: float | None = None,
    gap: float = 0.0,
    must_link: Pairs = (),
    cannot_link: Pairs = (),
    n_groups: Count | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    weights: Weights | None = None,
    max_weight: float | None = None,
    at_least_one_of: Roles = (),
    progress: OnEvaluations | None = None,
) -> Solution:
    r"""Return the structure that maximises the sum of its coalitions' values.

    .. math:: \max_{\mathcal{C}} \sum_{C \in \mathcal{C}} v(C)

    over all partitions of the players; the value of the empty coalition never counts. All 2^n
    coalitions are evaluated, once each.

    Parameters
    ----------
    game
        Any game of up to 25 players, a table of 2^n values, or what makes a graph.
    time_limit
        Wall time in seconds; the answer is then the best structure so far with a valid bound.
    gap
        Relative gap at which to stop.
    must_link, cannot_link
        Pairs of players, by number or by name, that must, or must not, be in one coalition.
    n_groups, min_size, max_size
        Number of coalitions (or the least and the largest number), and how many players each may
        have. A number takes a table for each coalition: up to 20 players.
    weights, max_weight
        The load of each player, and what a coalition can bear.
    at_least_one_of
        Sets of players: every coalition has a member of each.
    progress
        Called with the coalitions that are evaluated, `done` of `total`, now and then.

    Raises
    ------
    InvalidInputError
        There are too many players, a value is not finite, values add up to more than a float, or a
        demand is wrong.
    InfeasibleError
        No structure meets the demands.
    NoSolutionError
        The time was over before all coalitions were evaluated, or a structure was found that meets
        the demands.

    Notes
    -----
    Any prices p of the players with :math:`p(C) \ge v(C)` for all C prove the bound p(N), and say
    how far each coalition falls short of it: :math:`s(C) = p(C) - v(C)`. Coalitions that fall
    short by more than the best structure known are left out. On the others runs the recursion over
    subsets in which the first player's coalition goes first, so that every structure is looked at
    in one order only: at most :math:`3^{n-1}/2` steps, as in [Michalak2016]_, and far fewer where
    a coalition is worth no more than its parts. Values are whole multiples of a power of two,
    rounded up where they are not, so sums are exact.

    Examples
    --------
    >>> from coalitions import SynergyGraph
    >>> solution = solve_game(SynergyGraph([[0, 3, -2], [3, 0, -2], [-2, -2, 0]]).game())
    >>> solution.structure.coalitions, solution.value, solution.optimal
    (((0, 1), (2,)), 3.0, True)
    """
    started, waited = clock(), ready_seconds()
    game = as_game(game)
    n = int(game.n_players)
    if not 1 <= n <= MAX_PLAYERS:
        raise InvalidInputError(
            f"the game has {n} players; solve_game evaluates all 2^n coalitions and takes 1 to"
            f" {MAX_PLAYERS} players"
        )
    check_limits(time_limit, gap)
    limits = Limits(deadline=None if time_limit is None else started + time_limit, gap=gap)
    players = SynergyGraph.from_edges(n, [], [], [], labels_of(game))
    demands = Demands.of(
        players,
        must_link=must_link,
        cannot_link=cannot_link,
        n_groups=n_groups,
        min_size=min_size,
        max_size=max_size,
        weights=weights,
        max_weight=max_weight,
        at_least_one_of=at_least_one_of,
    )
    rules = rules_of(players, demands)
    values = _evaluated(game, limits, progress)
    # A coalition that is not allowed is worth nothing to anybody.
    values[~rules.allowed] = 0.0
    gain = max(0.0, float(values.max()))
    # Under demands nobody is free to leave, so no coalition is too bad to be formed.
    floor = _floor(values, n) if rules.free else -math.inf
    bound = math.inf
    blocks: IntVector | None = None
    while True:
        found, exact_bound, stats = _best_blocks(values, floor, n, limits, rules)
        bound = min(bound, rounded_up(exact_bound))
        if blocks is None or (
            found is not None and _exact_sum(values[found]) >= _exact_sum(values[blocks])
        ):
            blocks = found
        if blocks is None:
            raise NoSolutionError(
                "the time limit was over before a structure was found that meets the demands"
            )
        chosen = values[blocks]
        value, losses = _total(chosen), -_total(chosen[chosen < 0.0]) + 0.0
        # Any structure with a coalition below this is worth less than the one that was found.
        floor, last = -2.0 * (n * gain + losses), floor
        proven = is_optimal(value, bound, at_stake(gain, losses))
        near = relative_gap(value, max(bound, value)) <= gap
        if proven or near or limits.expired or floor <= max(last, float(values.min())):
            break
    members = coalitions_of_masks(blocks, n)
    return Solution(
        structure=CoalitionStructure(np.flatnonzero(row).tolist() for row in members),
        value=value,
        bound=max(bound, value),
        positive_weight=gain,
        losses=losses,
        labels=players.labels,
        seconds=clock() - started,
        solver="subset-dp",
        stats={**stats, **compile_figures(ready_seconds() - waited)},
    )


def _evaluated(game: Game, limits: Limits, progress: OnEvaluations | None) -> FloatVector:
    """Return the values of all coalitions, player i = bit i, with 0 for the empty one."""

    def between(done: int, size: int) -> None:
        if done and progress is not None:
            progress(Evaluations(done, size))
        if limits.expired and done < size:
            raise NoSolutionError(
                f"the time limit was over after {done} of {size} coalitions were evaluated;"
                " give more time, or a game that is faster to evaluate"
            )

    values = value_table(game, between=between)
    if table_of(game) is not None:
        values = values.copy()  # it is the game's own
    values[0] = 0.0
    return values


def _floor(values: FloatVector, n: int) -> float:
    """Return a value so low that nobody would form the coalition; lower ones may be raised to it.

    A coalition worth less than its players alone, and so less than the sum of all players'
    negative values, is in no best structure. Games forbid coalitions by values such as −1e9, which
    would otherwise set the scale on which values are rounded and compared.
    """
    alone: float = sum(np.minimum(values[1 << np.arange(n)], 0.0).tolist())
    return alone - (max(-alone, float(values.max())) or 1.0)


def _exact_sum(values: FloatVector) -> Fraction:
    return sum(map(Fraction, values.tolist()), Fraction(0))


def _total(values: FloatVector) -> float:
    """Return a sum, correctly rounded."""
    try:
        return float(_exact_sum(values))
    except OverflowError:
        raise InvalidInputError(
            "values of coalitions add up to more than a float can be (1.8e308); divide all of them"
            " by the same number, 1e10 for instance"
        ) from None


def _best_blocks(
    values: FloatVector, floor: float, n: int, limits: Limits, rules: GameRules
) -> tuple[IntVector | None, Fraction, dict[str, int]]:
    """Return the best structure found as bit sets, a bound, and what was counted.

    Values below `floor` count as that.

    Raises
    ------
    InfeasibleError
        No structure keeps to the rules.
    """
    from solvers import _game_kernels as dp

    scaled, unit = _whole_numbers(np.maximum(values, floor), n)
    scaled[~rules.allowed] = -dp.NONE
    prices = dp.best_shares(scaled, n)
    slack = scaled  # p(C) − v(C), in place
    dp.to_slack(slack, prices)
    for shift in range(PRICE_ROUNDS):
        for player in np.roll(np.arange(n), shift * n // PRICE_ROUNDS):
            if not limits.expired:
                dp.lower_price(slack, prices, player)
    slack[~rules.allowed] = dp.NOT_ALLOWED
    total = sum(prices.tolist())
    blocks: IntVector | None = None
    budget = int(dp.NOT_ALLOWED) - 1
    candidates = [np.array([len(slack) - 1])]
    for lead in range(n):
        candidates += [] if limits.expired else [dp.greedy_blocks(slack, n, lead)]
    for candidate in candidates:
        if rules.keeps_to(candidate):
            shortfall = int(slack[candidate].sum())
            if shortfall < budget:
                blocks, budget = candidate, shortfall
    stats = {"coalitions": len(values) - 1, "extended": 0}
    bound = unit * total
    near = blocks is not None and limits.gap > 0.0
    near = near and relative_gap(_total(values[blocks]), rounded_up(bound)) <= limits.gap
    if near:
        return blocks, bound, stats
    if budget == 0 or n == 1:
        return blocks, unit * (total - budget), stats
    most = rules.most if rules.counted else 0
    best = np.full((most + 1, 1 << (n - 1)), dp.NONE)
    best[0, 0] = 0
    try:
        for lead in range(n - 1, 0, -1):
            n_blocks = 1 << (n - 1 - lead)
            at_once = max(1, int(WORK_AT_ONCE / (most + 1) / 1.5 ** (n - 1 - lead)))
            for first in range(0, n_blocks, at_once):
                if limits.expired:
                    return blocks, bound, stats
                last = min(first + at_once, n_blocks)
                if rules.counted:
                    used = dp.extend_counted(slack, budget, n, best, lead, first, last)
                else:
                    used = dp.extend(slack, budget, n, best[0], lead, first, last)
                stats["extended"] += used
    except (KeyboardInterrupt, SystemError) as error:
        if not is_ctrl_c(error):
            raise
        limits.interrupted.set()
        return blocks, bound, stats
    improved = _traced(slack, best, n, rules)
    if improved is not None and int(slack[improved].sum()) < budget:
        blocks = improved
    if blocks is None:
        raise InfeasibleError("no structure of the players meets the demands")
    return blocks, unit * (total - int(slack[blocks].sum())), stats


def _traced(slack: IntVector, best: IntMatrix, n: int, rules: GameRules) -> IntVector | None:
    """Return the blocks of the best structure that the tables know; None if they know none."""
    from solvers import _game_kernels as dp

    left, found = (1 << n) - 1, []
    number = 0
    if rules.counted:
        totals = {
            k: int(dp.first_block_counted(slack, best, left, k)[1])
            for k in range(rules.fewest, rules.most + 1)
        }
        number = min(totals, key=lambda k: (totals[k], k))
    while left:
        if rules.counted:
            block = int(dp.first_block_counted(slack, best, left, number)[0])
            number -= 1
        else:
            block = int(dp.first_block(slack, best[0], left))
        found.append(block)
        left ^= block
    blocks = np.array(found)
    return blocks if rules.keeps_to(blocks) else None


def _whole_numbers(values: FloatVector, n: int) -> tuple[IntVector, Fraction]:
    """Return integers k and a unit u with v ≤ u·k, equal wherever v is a multiple of u.

    `values` is overwritten.
    """
    largest = float(np.abs(values).max())
    exponent = math.frexp(largest)[1] - SUM_BITS + n.bit_length() if largest else 0
    positive = values > 0.0
    np.ceil(np.ldexp(values, -exponent, out=values), out=values)
    integers = values.astype(np.int64)
    integers[positive & (integers == 0)] = 1  # where the quotient is below all floats
    return integers, Fraction(2) ** exponent


# ----------------------------------------------------------------------------------------
# Demands on the coalitions of a game: a mask over all 2^n of them, player i = bit i.

MAX_PLAYERS_COUNTED = 20
"""2^19 slacks for each number of coalitions take up to 80 MiB."""


@dataclass(frozen=True, eq=False)
class GameRules:
    """What a structure must keep to.

    Attributes
    ----------
    allowed
        Which coalitions may be formed [2^n]; not the empty one.
    fewest, most
        Number of coalitions.
    counted
        Whether that says more than what is allowed does.
    free
        Whether nothing is demanded.
    """

    allowed: BoolVector
    fewest: int
    most: int
    counted: bool
    free: bool

    def keeps_to(self, blocks: IntVector) -> bool:
        """Tell whether a structure keeps to the rules."""
        return bool(self.allowed[blocks].all()) and self.fewest <= len(blocks) <= self.most


def rules_of(players: SynergyGraph, demands: Demands) -> GameRules:
    """Return the rules that demands make for a game of these players.

    Raises
    ------
    InvalidInputError
        A number of coalitions is demanded of too many players.
    InfeasibleError
        It is plain that no structure meets the demands.
    """
    n = players.n_players
    nodes = Contraction.apply(players, demands)
    sizes = demands.on_nodes(nodes)
    allowed = np.ones(1 << n, np.bool_)
    allowed[0] = False
    if sizes is None and not nodes.must_link and not nodes.cannot_link:
        return GameRules(allowed, 1, n, counted=False, free=True)
    masks = np.arange(1 << n)
    for node in range(nodes.graph.n_players):
        together = int((1 << np.flatnonzero(nodes.group == node)).sum())
        if together & (together - 1):
            allowed &= np.isin(masks & together, (0, together))
    for a, b in nodes.cannot_link:
        allowed &= (masks >> a & masks >> b & 1) == 0
    if sizes is None:
        return GameRules(allowed, 1, n, counted=False, free=False)
    members = np.bitwise_count(masks)
    allowed &= (sizes.min_size <= members) & (members <= sizes.max_size)
    if len(sizes.loads):
        load = np.zeros(1, np.int64)
        first = np.unique(nodes.group, return_index=True)[1]
        for player in range(n):  # a node's load is counted with its first player
            own = sizes.loads[nodes.group[player]] if player in first else 0
            load = np.concatenate((load, load + own))
        allowed &= load <= sizes.max_load
    for role in sizes.roles:
        holders = int((1 << np.flatnonzero(np.isin(nodes.group, role))).sum())
        allowed &= masks & holders != 0
    for player in range(n):
        if not allowed.reshape(-1, 2, 1 << player)[:, 1].any():  # bit `player` is 1
            raise InfeasibleError(f"no coalition that player {player} could be in is allowed")
    uncounted = demands.without_count().on_nodes(nodes)
    implied = (1, n) if uncounted is None else (uncounted.fewest, uncounted.most)
    counted = implied != (sizes.fewest, sizes.most)
    if counted and n > MAX_PLAYERS_COUNTED:
        raise InvalidInputError(
            f"the game has {n} players; with n_groups, solve_game takes at most"
            f" {MAX_PLAYERS_COUNTED}"
        )
    return GameRules(allowed, sizes.fewest, sizes.most, counted=counted, free=False)
