"""How many Shapley values lie in their 95 % intervals, on games that nothing was tuned on.

Run ``OMP_NUM_THREADS=1 python -m benchmarks.value_coverage FOLDER [--seeds 50] [--budgets 100]``.
The kinds are those that intervals find hard: games that are nearly but not quite additive, jumps,
votes, noise; and smooth ones for comparison. Runs are kept in FOLDER, and what is there already is
not run again. The intervals of the thirty games: ``python -m benchmarks.values FOLDER --coverage``.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.value_games import (
    Case,
    Function,
    _bankruptcy,
    _bankruptcy_values,
    _explained_variance,
)
from benchmarks.value_kept import entries
from benchmarks.values import measure
from coalitions import AirportGame, UnanimityGame, VotingGame
from coalitions.enumeration import value_table
from coalitions.estimators.exact import exact_of_table
from coalitions.games.function import FunctionGame

Played = tuple[Function, np.ndarray]
"""A game without short cuts and its Shapley values."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--seeds", type=int, default=50)
    options.add_argument("--budgets", type=int, nargs="*", default=[100, 500])
    options.add_argument("--games", nargs="*", default=list(GAMES), help="those that run")
    chosen = options.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    path = chosen.folder / "fresh.jsonl"
    cases = []
    for name in chosen.games if chosen.seeds else []:
        function, values = GAMES[name]()
        cases.append(Case(name, True, FunctionGame(function, len(values)), values))
    measure(cases, path, chosen.budgets, chosen.seeds)
    found = defaultdict(list)
    for run in entries(path):
        found[run["game"], run["budget"]].append(run)
    print("| game | budget | seeds | error | covered | the worst seed |\n|---|---|---|---|---|---|")
    for (name, budget), runs in sorted(found.items()):
        covered = [run["covered"] for run in runs if run["covered"] is not None] or [np.nan]
        error = np.mean([run["error"] for run in runs])
        print(
            f"| {name} | {budget} | {len(runs)} | {error:.1e} |"
            f" {100 * np.mean(covered):.0f} % | {100 * np.min(covered):.0f} % |"
        )


def bankruptcy(n: int, share: float, seed: int) -> Played:
    claims = np.random.default_rng(seed).integers(1, 60, n).astype(float)
    estate = claims.sum() * share // 1
    return partial(_bankruptcy, claims, estate), _bankruptcy_values(claims, int(estate))


def cut(n: int, seed: int) -> Played:
    """Return what goes from S to the others: its odd part is additive."""
    rng = np.random.default_rng(seed)
    flow = np.where(rng.random((n, n)) < 0.3, rng.random((n, n)), 0.0)
    values = (flow.sum(axis=1) - flow.sum(axis=0)) / 2
    return lambda rows: np.einsum("ki,ij,kj->k", rows * 1.0, flow, 1.0 - rows), values


def coverage(n: int, places: int, seed: int) -> Played:
    """Return the weight of the places that some member reaches; those who reach it share it."""
    rng = np.random.default_rng(seed)
    reached = rng.random((places, n)) < 0.15
    reached[np.arange(places), rng.integers(0, n, places)] = True
    weight = rng.random(places)
    values = (reached * (weight / reached.sum(axis=1))[:, None]).sum(axis=0)
    return lambda rows: (rows * 1.0 @ reached.T > 0) @ weight, values


def closed(game: VotingGame | AirportGame | UnanimityGame) -> Played:
    return game, game.shapley_values()


def tabulated(function: Function, n: int) -> Played:
    return function, exact_of_table(value_table(FunctionGame(function, n)))


def gloves(n: int) -> Played:
    """Return how many pairs there are of a left and a right glove; a third are left ones."""
    left = np.arange(n) < n // 3
    hands = np.array([left, ~left]).T * 1.0
    return tabulated(lambda rows: (rows @ hands).min(axis=1), n)


def root(n: int, seed: int) -> Played:
    weight = np.random.default_rng(seed).pareto(1.5, n) + 0.2
    return tabulated(lambda rows: np.sqrt(rows @ weight), n)


def noise(n: int, seed: int) -> Played:
    table = np.random.default_rng(seed).normal(size=1 << n)
    return tabulated(lambda rows: table[rows @ (1 << np.arange(n))], n)


def explained(n: int, seed: int) -> Played:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, n)) @ (np.eye(n) + 0.4 * rng.normal(size=(n, n)))
    return tabulated(_explained_variance(x, x @ rng.normal(0, 0.3, n) + rng.normal(0, 2, 60)), n)


GAMES: dict[str, Callable[[], Played]] = {
    "airport 25": lambda: closed(AirportGame(np.random.default_rng(108).random(25))),
    "bankruptcy 25": lambda: bankruptcy(25, 0.5, 101),
    "bankruptcy 36": lambda: bankruptcy(36, 0.5, 102),
    "bankruptcy 40": lambda: bankruptcy(40, 0.5, 114),
    "bankruptcy 22, scarce": lambda: bankruptcy(22, 0.4, 103),
    "bankruptcy 28, nearly half": lambda: bankruptcy(28, 0.48, 104),
    "coverage 20": lambda: coverage(20, 60, 106),
    "cut 24": lambda: cut(24, 105),
    "cut 35": lambda: cut(35, 115),
    "explained variance 13": lambda: explained(13, 113),
    "gloves 11": lambda: gloves(11),
    "gloves 14": lambda: gloves(14),
    "gloves 17": lambda: gloves(17),
    "noise 13": lambda: noise(13, 112),
    "square root 14": lambda: root(14, 110),
    "unanimity 24": lambda: closed(UnanimityGame.random(24, 40, seed=109, max_size=4)),
    "unanimity 36": lambda: closed(UnanimityGame.random(36, 30, seed=116, max_size=5)),
    "voting 25": lambda: closed(VotingGame(np.random.default_rng(107).integers(1, 21, 25), 130)),
    "voting 40, two thirds": lambda: closed(
        VotingGame(np.random.default_rng(117).integers(1, 21, 40), 280)
    ),
}

if __name__ == "__main__":
    main()
