"""The other solution concepts, ours and coopgame-py's on the same work.

Run ``python benchmarks/concepts.py``. Times are CPU seconds of one thread, the best of several
runs, compilation excluded; both sides start from the 2^n values in their own representation.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np

from coalitions import (
    TableGame,
    banzhaf,
    interactions,
    nucleolus,
    verify_nucleolus,
)
from coalitions import myerson as our_myerson


def main() -> None:
    myerson()
    nucleoli()
    sampling()


def best(work: Callable[[], object], repeats: int = 5) -> tuple[float, object]:
    """Return the least CPU time of several runs after a first one, and the last result."""
    result = work()
    times = []
    for _ in range(repeats):
        start = time.process_time_ns()
        result = work()
        times.append((time.process_time_ns() - start) / 1e9)
    return min(times), result


def myerson() -> None:
    import coopgame

    print("Myerson value, exact, from a table\n")
    print(f"{'n':>3} {'graph':<22} {'ours ms':>9} {'coopgame ms':>12} {'ratio':>7} {'max diff':>9}")
    rng = np.random.default_rng(0)
    for n in (14, 16, 18):
        table = rng.random(1 << n)
        table[0] = 0
        ours, theirs = TableGame(table), coopgame.Game(table[1:].tolist())
        for name, links in graphs(n, rng):
            our_time, our_value = best(lambda ours=ours, links=links: our_myerson(ours, links))
            their_time, their_value = best(
                lambda theirs=theirs, links=links: coopgame.myerson(theirs, links)
            )
            difference = np.abs(np.array(our_value) - np.array(their_value)).max()
            print(
                f"{n:>3} {name:<22} {our_time * 1e3:>9.3f} {their_time * 1e3:>12.3f}"
                f" {their_time / our_time:>7.1f} {difference:>9.1e}"
            )


def graphs(n: int, rng: np.random.Generator) -> list[tuple[str, list[tuple[int, int]]]]:
    pairs = [(i, j) for j in range(n) for i in range(j)]
    return [
        ("path", [(i, i + 1) for i in range(n - 1)]),
        ("random, 15 % of pairs", [pair for pair in pairs if rng.random() < 0.15]),
        ("random, 30 % of pairs", [pair for pair in pairs if rng.random() < 0.30]),
        ("complete", pairs),
    ]


def nucleoli() -> None:
    import coopgame

    print("\nNucleolus of 12 and 16 players, with certificate\n")
    print(f"{'n':>3} {'game':<10} {'ours s':>8} {'verify s':>9} {'coopgame s':>11} {'max diff':>9}")
    rng = np.random.default_rng(1)
    for n in (12, 16):
        bits = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
        weights = rng.integers(1, 9, n)
        costs = np.sort(rng.integers(1, 40, n))
        upper = np.triu(rng.integers(0, 6, (n, n)), 1)
        tables = {
            "random": np.append(rng.random((1 << n) - 1), n),
            "voting": (bits @ weights > weights.sum() / 2).astype(float),
            "pairs": ((bits @ upper) * bits).sum(axis=1).astype(float),
            "airport": (bits @ costs - (bits * costs).max(axis=1)).astype(float),
        }
        for name, table in tables.items():
            table[0] = 0
            ours, theirs = TableGame(table), coopgame.Game(table[1:].tolist())
            our_time, found = best(lambda ours=ours: nucleolus(ours), 2)
            check_time, verdict = best(
                lambda ours=ours, found=found: verify_nucleolus(ours, found), 2
            )
            assert verdict.holds, verdict.reason
            their_time, answer = best(lambda theirs=theirs: coopgame.nucleolus(theirs), 2)
            difference = np.abs(found.payoff - np.array(answer["allocation"])).max()
            print(
                f"{n:>3} {name:<10} {our_time:>8.3f} {check_time:>9.3f} {their_time:>11.3f}"
                f" {difference:>9.1e}"
            )


class Unknown:
    """A game that hides its table."""

    def __init__(self, table: np.ndarray) -> None:
        self._game = TableGame(table)
        self.n_players = self._game.n_players

    def __call__(self, coalitions: np.ndarray) -> np.ndarray:
        """Look the values up."""
        return self._game(coalitions)


def sampling() -> None:
    """Compare the ways to sample, by their root mean squared error over players or pairs."""
    print(
        "\nSampling: root mean squared error over 30 seeds (5 of shapiq, portfolio), 14 players\n"
    )
    n = 14
    bits = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
    rng = np.random.default_rng(2)
    weights = rng.integers(1, 21, n)
    upper = np.triu(rng.normal(size=(n, n)), 1)
    tables = {
        "voting": (bits @ weights > weights.sum() / 2).astype(float),
        "concave": np.sqrt(bits @ rng.random(n)),
        "pairs and sine": ((bits @ upper) * bits).sum(axis=1) + np.sin(bits @ rng.random(n)),
    }
    print(f"{'index':<22} {'method':<21} {'budget':>6}  " + "".join(f"{t:>16}" for t in tables))
    for budget in (800, 3000):
        for method in ("msr", "regression", "star", "portfolio"):
            errors = [
                rms(
                    [
                        banzhaf(Unknown(t), method=method, budget=budget, seed=s).values
                        - banzhaf(TableGame(t)).values
                        for s in range(5 if method == "portfolio" else 30)
                    ]
                )
                for t in tables.values()
            ]
            print(row("Banzhaf value", method, budget, errors))
        for index, method in (
            ("banzhaf", "msr"),
            ("banzhaf", "regression"),
            ("banzhaf", "portfolio"),
            ("shapley", "chains"),
            ("shapley", "stratified"),
            ("shapley", "portfolio"),
            ("shapley", "shapiq SVARM-IQ"),
            ("shapley", "shapiq KernelSHAP-IQ"),
        ):
            errors = []
            for table in tables.values():
                truth = interactions(TableGame(table), index, coalitions="pairs").values
                seeds = range(5 if "shapiq" in method or method == "portfolio" else 30)
                errors.append(rms([pairs(table, index, method, budget, s) - truth for s in seeds]))
            print(row(f"{index} interaction", method, budget, errors))


def pairs(table: np.ndarray, index: str, method: str, budget: int, seed: int) -> np.ndarray:
    """Return the sampled interactions of all pairs, by our methods or shapiq's."""
    game = Unknown(table)
    if "shapiq" not in method:
        found = interactions(
            game, index, coalitions="pairs", method=method, budget=budget, seed=seed
        )
        return found.values
    import shapiq

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        approximator = {
            "shapiq SVARM-IQ": shapiq.SVARMIQ,
            "shapiq KernelSHAP-IQ": shapiq.KernelSHAPIQ,
        }[method](n=game.n_players, max_order=2, index="SII", random_state=seed)
        return approximator.approximate(budget, game).get_n_order_values(2)[
            np.triu_indices(game.n_players, 1)
        ]


def rms(differences: list[np.ndarray]) -> float:
    return float(np.sqrt(np.mean(np.square(differences))))


def row(index: str, method: str, budget: int, errors: list[float]) -> str:
    return f"{index:<22} {method:<21} {budget:>6}  " + "".join(f"{e:>16.2g}" for e in errors)


if __name__ == "__main__":
    main()
