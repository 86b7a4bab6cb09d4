"""solve_game against the enumeration of all partitions, and against solve on graphs."""

from __future__ import annotations

import sys
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coalitions import (
    CoalitionStructure,
    InvalidInputError,
    NoSolutionError,
    SynergyGraph,
    TableGame,
    partition_labels,
)
from solvers import solve, solve_game
from tests.strategies import synergy_graphs

VALUES = {
    "ties": st.integers(-1, 2).map(float),
    "integers": st.integers(-50, 50).map(float),
    "decimals": st.integers(-30, 30).map(lambda k: k / 10),
    "floats": st.floats(-1e3, 1e3, allow_subnormal=False),
    "huge and tiny": st.sampled_from([1e30, -1e30, 1e-30, -1e-30, 0.0, 1.0]),
    "negative": st.integers(-9, -1).map(float),
}


@st.composite
def tables(draw, max_players=6):
    n = draw(st.integers(1, max_players))
    kind = draw(st.sampled_from(sorted(VALUES)))
    return np.array(draw(st.lists(VALUES[kind], min_size=1 << n, max_size=1 << n)))


def best_by_enumeration(table):
    n = len(table).bit_length() - 1
    best = -np.inf
    for labels in partition_labels(n):
        masks = [sum(1 << i for i in np.flatnonzero(labels == c)) for c in set(labels.tolist())]
        best = max(best, sum(table[mask] for mask in masks))
    return best


def worth(table, structure):
    return sum(table[sum(1 << i for i in block)] for block in structure.coalitions)


@settings(max_examples=80)
@given(table=tables())
@example(table=np.array([7.0, -1.0]))
@example(table=np.zeros(8))
def test_it_finds_the_best_of_all_partitions(table):
    solution = solve_game(TableGame(table))
    scale = np.abs(table[1:]).max()
    assert solution.value == pytest.approx(best_by_enumeration(table), abs=1e-12 * scale, rel=1e-12)
    assert solution.value == pytest.approx(worth(table, solution.structure), abs=1e-12 * scale)
    assert solution.bound >= solution.value
    assert solution.optimal


def test_eight_players_with_negative_values(rng):
    for _ in range(3):
        table = rng.integers(-20, 8, 256).astype(float)
        solution = solve_game(TableGame(table))
        assert solution.value == best_by_enumeration(table) == solution.bound


def test_the_empty_coalition_never_counts(rng):
    table = rng.normal(size=64)
    table[0] = 1e6
    with_bonus = solve_game(TableGame(table))
    table[0] = -1e6
    assert solve_game(TableGame(table)).value == with_bonus.value < 100


@settings(max_examples=60)
@given(graph=synergy_graphs(max_players=7))
def test_on_induced_subgraph_games_it_agrees_with_solve(graph):
    tolerance = 1e-9 * np.abs(graph.edges.weight).sum()
    solution = solve_game(graph.game())
    assert solution.value == pytest.approx(solve(graph, "brute-force").value, abs=tolerance)
    assert graph.value(solution.structure) == pytest.approx(solution.value, abs=tolerance)


def test_fourteen_players_agree_with_branch_and_cut(rng):
    matrix = np.triu(rng.integers(-9, 10, (14, 14)).astype(float), 1)
    graph = SynergyGraph(matrix + matrix.T)
    assert solve_game(graph.game()).value == solve(graph, "branch-and-cut").value


def test_relabelled_players_have_the_same_best_value(rng):
    table = rng.integers(-9, 10, 1 << 9).astype(float)
    order = rng.permutation(9)
    masks = np.arange(1 << 9)
    moved = sum((masks >> i & 1) << order[i] for i in range(9))
    relabelled = np.empty_like(table)
    relabelled[moved] = table
    assert solve_game(TableGame(table)).value == solve_game(TableGame(relabelled)).value


def test_forbidden_coalitions_do_not_blur_the_others(rng):
    table = rng.integers(0, 90, 1 << 8) / 7
    table[0] = 0
    forbidden = rng.random(1 << 8) < 0.5
    forbidden[[1 << i for i in range(8)]] = False
    table[forbidden] = -1e15
    solution = solve_game(TableGame(table))
    assert solution.value == pytest.approx(best_by_enumeration(table), rel=1e-14)
    assert solution.bound == pytest.approx(solution.value, rel=1e-14)


def test_a_superadditive_game_keeps_everybody_together():
    sizes = np.array([bin(mask).count("1") for mask in range(1 << 10)])
    solution = solve_game(TableGame(sizes**2.0))
    assert solution.structure == CoalitionStructure.grand(10)
    assert solution.value == 100


def exactly(table, rows=None):
    """Return the exact values of the structures of a game: all of them, or those given."""
    n = len(table).bit_length() - 1
    numbers = [Fraction(v) for v in table.tolist()]
    return [
        sum(numbers[sum(1 << i for i in np.flatnonzero(labels == c))] for c in set(labels.tolist()))
        for labels in (partition_labels(n) if rows is None else rows)
    ]


def nevers(rng, m):
    """Return small values beside huge negative ones, also for players alone."""
    huge = -(10.0 ** rng.choice([3, 9, 12, 16, 100], m))
    return np.where(rng.random(m) < rng.choice([0.2, 0.5, 0.8]), huge, rng.integers(-5, 6, m) / 10)


ODD = {
    "1e308": lambda rng, m: rng.uniform(-1.7, 1.7, m) * 1e308,
    "1e308 and small": lambda rng, m: rng.choice([1e308, -1e308, 3.0, -2.0, 1e-320], m),
    "denormals": lambda rng, m: rng.integers(-9, 10, m) * 5e-324,
    "negative denormals": lambda rng, m: rng.integers(-9, 0, m) * 5e-324,
    "never": nevers,
    "negative never": lambda rng, m: -np.abs(nevers(rng, m)),
    "40 decades": lambda rng, m: rng.normal(-0.3, 1, m) * 10.0 ** rng.uniform(-20, 20, m),
}


@pytest.mark.parametrize("kind", ODD)
def test_values_of_any_size_against_all_partitions_exactly(kind, rng):
    refused = 0
    for _ in range(60):
        n = int(rng.integers(2, 6))
        table = ODD[kind](rng, 1 << n)
        table[0] = 0.0
        best = max(exactly(table))
        try:
            solution = solve_game(TableGame(table))
        except InvalidInputError:
            assert sum(map(abs, map(Fraction, table.tolist()))) > Fraction(sys.float_info.max)
            refused += 1
            continue
        (worth,) = exactly(table, [solution.structure.labels])
        assert solution.value == float(worth)
        lost = sum(-Fraction(v) for v in blocks_of(table, solution.structure) if v < 0)
        at_stake = max(0, Fraction(table.max())) + lost
        assert best - worth <= Fraction(1, 10**9) * at_stake
        assert solution.bound >= float(best)
        assert solution.optimal
    assert refused < 50


def blocks_of(table, structure):
    return [float(table[sum(1 << i for i in block)]) for block in structure.coalitions]


def test_never_alone_does_not_blur_the_others():
    # Only pairs are allowed: 0.3 and 0.2 are better than 0.25 and 0.1.
    table = np.full(16, -1e16)
    table[[0b0011, 0b1100, 0b0101, 0b1010]] = 0.25, 0.1, 0.3, 0.2
    solution = solve_game(TableGame(table))
    assert solution.structure.coalitions == ((0, 2), (1, 3))
    assert solution.value == 0.5
    assert solution.optimal


def test_a_sum_beyond_the_floats_is_refused_in_a_sentence():
    with pytest.raises(InvalidInputError, match="add up to more than a float can be"):
        solve_game(TableGame([0.0, 1e308, 1e308, 0.0]))


class Uncooperative:
    """A game without a table that counts how often it is asked."""

    n_players = 6

    def __init__(self, answer):
        self.answer = answer
        self.asked = 0

    def __call__(self, coalitions):
        self.asked += len(coalitions)
        return self.answer(coalitions)


def test_every_coalition_is_evaluated_once(rng):
    game = Uncooperative(lambda rows: rows.sum(1) ** 0.5)
    assert solve_game(game).structure == CoalitionStructure.singletons(6)
    assert game.asked == 64


def test_bad_games_are_told_in_one_sentence():
    with pytest.raises(InvalidInputError, match=r"coalition \[0\] is nan"):
        solve_game(Uncooperative(lambda rows: np.where(rows.any(1), np.nan, 0.0)))
    with pytest.raises(
        InvalidInputError, match=r"64 coalitions but answered with an array of shape"
    ):
        solve_game(Uncooperative(lambda rows: np.zeros(1)))
    game = Uncooperative(lambda rows: rows.sum(1))
    for table, sentence in (([0.0, 1.0], "shape"), ([0.0] * 63 + [np.inf], r"2, 3, 4, 5\] is inf")):
        game.table = np.array(table)
        with pytest.raises(InvalidInputError, match=sentence):
            solve_game(game)
    with pytest.raises(InvalidInputError, match="time_limit is 0"):
        solve_game(TableGame([0.0, 1.0]), time_limit=0)

    class Crowd:
        n_players = 40

        def __call__(self, coalitions):
            raise AssertionError("it must not be asked")

    with pytest.raises(InvalidInputError, match="40 players"):
        solve_game(Crowd())


def test_time_over_while_evaluating_says_so():
    class Slow:
        n_players = 18

        def __call__(self, coalitions):
            time.sleep(0.2)
            return np.zeros(len(coalitions))

    with pytest.raises(NoSolutionError, match="65536 of 262144"):
        solve_game(Slow(), time_limit=0.1)


def test_stopped_early_the_bound_still_holds(rng):
    # A game that needs the recursion: half of the large coalitions are worth one.
    n = 14
    sizes = np.array([bin(mask).count("1") for mask in range(1 << n)])
    table = np.where((sizes >= n // 3) & (rng.random(1 << n) < 0.3), 1.0, 0.0)
    optimum = solve_game(TableGame(table))
    stopped = solve_game(TableGame(table), time_limit=1e-6)
    assert optimum.optimal
    assert stopped.value <= optimum.value <= stopped.bound
    assert stopped.value == worth(table, stopped.structure)


@settings(max_examples=40)
@given(table=tables(), gap=st.sampled_from([0.01, 0.2, 0.9]))
def test_a_gap_is_where_it_may_stop(table, gap):
    best, near = solve_game(TableGame(table)), solve_game(TableGame(table), gap=gap)
    assert near.gap <= gap
    assert near.value <= best.value <= near.bound


def test_a_gap_saves_work_and_is_checked():
    values = np.random.default_rng(2).normal(size=1 << 14)
    values[0] = 0
    assert solve_game(TableGame(values), gap=0.99).stats["extended"] == 0
    assert solve_game(TableGame(values)).stats["extended"] > 0
    with pytest.raises(InvalidInputError, match="gap is 1; it must be at least 0"):
        solve_game(TableGame(values), gap=1)
