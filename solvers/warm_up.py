"""Compile every kernel ahead, by small tasks that need them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from coalitions.game import FloatMatrix
from coalitions.graph import SynergyGraph

Task = Callable[[], object]


def warm_up() -> Iterator[str]:
    """Run the tasks one after the other; give what the next one is about before it runs."""
    for what, task in TASKS.items():
        yield what
        task()


def _weights(n_players: int, seed: int = 0) -> FloatMatrix:
    upper = np.triu(np.random.default_rng(seed).normal(size=(n_players, n_players)), 1)
    both: FloatMatrix = upper + upper.T
    return both


def _sparse(n_players: int) -> SynergyGraph:
    """Return a graph in which everybody knows six others."""
    rng = np.random.default_rng(0)
    i = np.repeat(np.arange(n_players), 3)
    j = (i + np.tile([1, 7, 40], n_players)) % n_players
    return SynergyGraph.from_edges(n_players, i, j, rng.normal(size=len(i)))


def _structures() -> None:
    from solvers._solve import solve

    solve(_weights(26))
    solve(_weights(26), time_limit=60.0)


def _certificates() -> None:
    from solvers._solve import solve

    solve(_weights(30, 1), certificate=True, time_limit=60.0)


def _local_search() -> None:
    from solvers._solve import solve

    for graph in (SynergyGraph(_weights(30)), SynergyGraph(_weights(160)), _sparse(400)):
        for method in ("greedy", "local-search"):
            solve(graph, method, time_limit=0.5)
    solve(_sparse(400), "multilevel", steps=10)


def _teams() -> None:
    from solvers._solve import solve

    for method in ("branch-and-price", "local-search"):
        solve(_weights(24), method, max_size=3, time_limit=10.0)


def _overlaps() -> None:
    from solvers.overlap.overlapping import solve_overlapping

    solve_overlapping(_weights(17), max_size=2)


def _games() -> None:
    from coalitions import TableGame
    from solvers.games import solve_game

    # Two of three win: no prices prove that, so all of the programme runs.
    majority = TableGame([0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    solve_game(majority)
    solve_game(majority, n_groups=2)


def _values() -> None:
    from coalitions import AirportGame, UnanimityGame, VotingGame
    from coalitions.compiling import compiled_add
    from coalitions.values.estimators.permutation import compiled_paths
    from coalitions.values.exact import shapley_of_kernel, shapley_of_table

    shapley_of_table(np.arange(2.0**13))
    voting = VotingGame([4, 3, 2, 1], quota=6).kernel
    shapley_of_kernel(voting, 4)
    compiled_paths(voting, 4, 2, antithetic=False, seed=0)
    groups = UnanimityGame(2, groups=[[0, 1]], dividends=[1.0])
    for game in (AirportGame([1.0, 2.0]), groups, SynergyGraph(_weights(3)).game()):
        assert game.kernel is not None
        compiled_add(game.kernel)


def _myerson() -> None:
    from coalitions import TableGame, myerson

    links = [(player, player + 1) for player in range(7)]
    myerson(SynergyGraph(_weights(8)).game(), links)
    myerson(TableGame(np.arange(2.0**8)), links)


def _stability() -> None:
    from coalitions import NOTIONS, CoalitionStructure, find_deviation

    graph = SynergyGraph(_weights(8))
    for notion in NOTIONS:
        find_deviation(graph, CoalitionStructure.singletons(8), notion)


TASKS: dict[str, Task] = {
    "structures": _structures,
    "certificates": _certificates,
    "local search": _local_search,
    "teams": _teams,
    "overlapping coalitions": _overlaps,
    "best structures of games": _games,
    "Shapley values": _values,
    "Myerson values": _myerson,
    "stability": _stability,
}
