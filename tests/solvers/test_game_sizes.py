"""solve_game under demands on coalitions, against all partitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from coalitions import (
    CoalitionStructure,
    InfeasibleError,
    InvalidInputError,
    NoSolutionError,
    SynergyGraph,
    TableGame,
)
from solvers import solve, solve_game
from tests.reliability.exact import partitions
from tests.reliability.team_proofs import question


def table(rng, n):
    """Return a game of any values, with a few that are written for "never"."""
    values = rng.normal(0.0, 1.0, 1 << n).round(2) * 2.0 ** rng.integers(0, 3)
    values[rng.random(1 << n) < 0.05] = -1e9
    values[0] = 0.0
    return values


def best(asked, values):
    """Return the best value of a structure that meets the demands; None if there is none."""
    fewest, most = asked.demands.get("n_groups", (1, len(asked.matrix)))
    worth = [
        sum(values[sum(1 << i for i in block)] for block in structure)
        for structure in map(CoalitionStructure.from_labels, partitions(len(asked.matrix)))
        if fewest <= len(structure) <= most and all(map(asked.allows, structure))
    ]
    return max(worth, default=None)


@pytest.mark.parametrize("seed", range(8))
def test_the_best_structure_under_demands_is_found_and_proven(seed):
    rng = np.random.default_rng([12, seed])
    outcomes = []
    for _ in range(15):
        n = int(rng.integers(2, 8))
        asked, values = question(rng, n), table(rng, n)
        optimum = best(asked, values)
        outcomes.append(optimum)
        game = TableGame(values)
        if optimum is None:
            with pytest.raises(InfeasibleError):
                solve_game(game, **asked.links, **asked.demands)
            continue
        solution = solve_game(game, **asked.links, **asked.demands)
        assert all(map(asked.allows, solution.structure))
        fewest, most = asked.demands.get("n_groups", (1, n))
        assert fewest <= len(solution.structure) <= most
        assert solution.value == pytest.approx(optimum, abs=1e-9)
        assert solution.optimal
    assert any(optimum is not None for optimum in outcomes)


def test_the_game_of_a_graph_has_the_teams_of_the_graph():
    rng = np.random.default_rng(0)
    upper = np.triu(rng.normal(0.1, 1.0, (12, 12)).round(2), 1)
    graph = SynergyGraph(upper + upper.T)
    for demands in ({"max_size": 3}, {"n_groups": 3}, {"min_size": 3, "n_groups": (3, 4)}):
        game = solve_game(graph.game(), **demands)
        assert game.value == pytest.approx(solve(graph, **demands).value, abs=1e-9)
        assert game.optimal


def test_a_count_that_sizes_imply_takes_no_table_for_each_number():
    # 22 players in pairs are eleven coalitions: more players than a count by itself would take.
    values = np.zeros(1 << 22)
    values[[3 << 2 * k for k in range(11)]] = 1.0
    assert solve_game(TableGame(values), min_size=2, max_size=2, n_groups=11).value == 11.0
    with pytest.raises(InvalidInputError, match="with n_groups, solve_game takes at most 20"):
        solve_game(TableGame(values), n_groups=5)


@pytest.mark.parametrize(
    ("demands", "words"),
    [
        ({"max_size": 2, "n_groups": 1}, "make 2 to 4 coalitions"),
        ({"n_groups": 1, "cannot_link": [(0, 1)]}, "no structure of the players"),
        ({"max_size": 1, "must_link": [(0, 1)]}, "must_link makes a group"),
        ({"min_size": 2, "cannot_link": list(itertools.combinations(range(4), 2))}, "player 0"),
    ],
)
def test_what_nobody_can_meet_is_said(demands, words):
    with pytest.raises(InfeasibleError, match=words):
        solve_game(TableGame(np.zeros(16)), **demands)


def test_no_time_for_a_structure_is_said():
    # Only 0 with 15, 1 with 14 …: nothing greedy comes to such a structure at once.
    n = 16
    rng = np.random.default_rng(1)
    values = rng.normal(size=1 << n)
    apart = [
        (a, b) for a, b in itertools.combinations(range(n), 2) if a + b not in (n - 1, n, n + 1)
    ]
    demands = {"min_size": 2, "max_size": 2, "cannot_link": apart}
    with pytest.raises(NoSolutionError, match="the time limit was over"):
        solve_game(TableGame(values), time_limit=1e-9, **demands)
    solution = solve_game(TableGame(values), **demands)
    assert solution.optimal
    assert {len(block) for block in solution.structure} == {2}
