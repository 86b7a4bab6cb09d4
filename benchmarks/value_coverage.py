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
from scipy.special import comb

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
from coalitions.games.function import FunctionGame
from coalitions.values.exact import shapley_of_table

Played = tuple[Function, np.ndarray]
"""A game without short cuts and its Shapley values."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--seeds", type=int, default=50)
    options.add_argument("--budgets", type=int, nargs="*", default=[100, 500])
    options.add_argument("--games", nargs="*", default=list(GAMES), help="those that run")
    options.add_argument("--attack", action="store_true", help="run the games of the attack")
    chosen = options.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    path = chosen.folder / "fresh.jsonl"
    cases = []
    chosen.games = list(ATTACK) if chosen.attack else chosen.games
    for name in chosen.games if chosen.seeds else []:
        function, values = (GAMES | ATTACK)[name]()
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


def voting(n: int, share: float, seed: int) -> VotingGame:
    votes = np.random.default_rng(seed).integers(1, 21, n)
    return VotingGame(votes, np.ceil(share * votes.sum()))


def closed(game: VotingGame | AirportGame | UnanimityGame) -> Played:
    return game, game.shapley_values()


def tabulated(function: Function, n: int) -> Played:
    return function, shapley_of_table(value_table(FunctionGame(function, n)))


def gloves(n: int) -> Played:
    """Return how many pairs there are of a left and a right glove; a third are left ones."""
    left = np.arange(n) < n // 3
    hands = np.array([left, ~left]).T * 1.0
    return tabulated(lambda rows: (rows @ hands).min(axis=1), n)


def root(n: int, seed: int) -> Played:
    weight = np.random.default_rng(seed).pareto(1.5, n) + 0.2
    return tabulated(lambda rows: np.sqrt(rows @ weight), n)


def noise(n: int, seed: int) -> Played:
    return of_table(np.random.default_rng(seed).normal(size=1 << n))


def of_table(table: np.ndarray) -> Played:
    n = len(table).bit_length() - 1
    return tabulated(lambda rows: table[rows @ (1 << np.arange(n))], n)


def parity(n: int, players: int) -> Played:
    """Return whether an odd number of the first players is there; these share it."""
    values = np.where(np.arange(n) < players, 1 / players, 0.0)
    return lambda rows: (rows[:, :players].sum(axis=1) % 2).astype(float), values


def outlier(n: int, size: float, seed: int) -> Played:
    """Return noise with a single value that is far off."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=1 << n)
    table[rng.integers(1 << n)] = size
    return of_table(table)


def high_order(n: int, terms: int, seed: int) -> Played:
    """Return a sum of a few terms of six to eight players."""
    rng = np.random.default_rng(seed)
    members = np.zeros((terms, n))
    for row in members:
        row[rng.permutation(n)[: rng.integers(6, 9)]] = 1.0
    weight, sizes = rng.normal(size=terms), members.sum(axis=1)
    values = (members * (weight / sizes)[:, None]).sum(axis=0)
    return lambda rows: (rows @ members.T >= sizes) @ weight, values


def largest(n: int, seed: int) -> Played:
    """Return the largest weight there, which is an airport's cost."""
    return closed(AirportGame(np.random.default_rng(seed).pareto(1.5, n)))


def sine(n: int, seed: int) -> Played:
    weight = np.random.default_rng(seed).random(n)
    return tabulated(lambda rows: np.sin(rows @ weight), n)


def of_two_kinds(first: int, second: int, worth: np.ndarray) -> Played:
    """Return a game of numbers of two kinds of players, worth[a, b] [first + 1, second + 1]."""
    n, kind = first + second, np.arange(first + second) < first
    each = []
    for more in (0, 1):
        a, b = np.ogrid[: first + more, : second + 1 - more]  # of the others who come before
        chance = comb(a.size - 1, a) * comb(b.size - 1, b) / (n * comb(n - 1, a + b))
        gain = worth[1:] - worth[:-1] if more == 0 else worth[:, 1:] - worth[:, :-1]
        each.append(float((chance * gain).sum()))
    values = np.where(kind, each[0], each[1])
    hands = np.array([kind, ~kind]).T.astype(int)
    return lambda rows: worth[tuple((rows @ hands).T)], values


def explained(n: int, seed: int) -> Played:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, n)) @ (np.eye(n) + 0.4 * rng.normal(size=(n, n)))
    return tabulated(_explained_variance(x, x @ rng.normal(0, 0.3, n) + rng.normal(0, 2, 60)), n)


ATTACK: dict[str, Callable[[], Played]] = {
    "airport of equal costs 20": lambda: closed(AirportGame(np.ones(20))),
    "gloves 12 and 18": lambda: of_two_kinds(12, 18, np.minimum(*np.ogrid[:13, :19]) * 1.0),
    "largest, Pareto 16": lambda: largest(16, 201),
    "one outlier 12": lambda: outlier(12, 1e4, 202),
    "parity, 5 of 12": lambda: parity(12, 5),
    "sine 14": lambda: sine(14, 203),
    "six to eight at once 14": lambda: high_order(14, 12, 204),
    "t(1.5) noise 12": lambda: of_table(np.random.default_rng(205).standard_t(1.5, 1 << 12)),
    "uniform noise 12": lambda: of_table(np.random.default_rng(206).random(1 << 12)),
    "veto and 20 of 29": lambda: of_two_kinds(
        1, 29, np.outer([0.0, 1.0], np.arange(30) >= 20).astype(float)
    ),
    "voting 16, nine tenths": lambda: closed(voting(16, 0.9, 207)),
}
"""The games of an attack on the intervals; nobody can cover the outlier before it is drawn."""

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
