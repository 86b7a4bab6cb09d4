"""Shapley values: ours and the released peers on the same work, in one run.

Run ``OMP_NUM_THREADS=1 python -m benchmarks.shapley [--quick | --large | --coverage]``. Times are
CPU seconds of one thread, the best of several runs; everything is called once before the clock
starts, so compilation is excluded. The peers are coopgame-py, shapley-numba and shapiq from PyPI.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np

warnings.simplefilter("ignore")  # the peers' own

from benchmarks.shapley_games import Case, cases  # noqa: E402
from coalitions import (  # noqa: E402
    AirportGame,
    BudgetError,
    TableGame,
    VotingGame,
    nucleolus,
    shapley,
)
from coalitions import myerson as our_myerson  # noqa: E402

Work = Callable[[], object]


def main() -> None:
    quick = "--quick" in sys.argv[1:]
    if "--large" in sys.argv[1:]:
        large_budgets()
        return
    if "--coverage" in sys.argv[1:]:
        coverage()
        return
    print(f"{'work':<44} {'ours':>10} {'peer':<14} {'peer s':>10} {'ratio':>8} {'at least':>9}")
    for line in speed(quick):
        print(line, flush=True)
    print()
    errors(quick)


def seconds(work: Work, repeats: int = 5, *, warm: bool = True) -> float:
    """Return the least CPU time of some runs."""
    if warm:
        work()
    best = np.inf
    for _ in range(repeats):
        start = time.process_time_ns()
        work()
        best = min(best, (time.process_time_ns() - start) / 1e9)
    return best


def line(work: str, ours: float, peer: str, theirs: float, at_least: float) -> str:
    return (
        f"{work:<44} {ours:>10.6f} {peer:<14} {theirs:>10.4f} {theirs / ours:>8.1f} {at_least:>9g}"
    )


def speed(quick: bool) -> Iterator[str]:
    yield from exact_from_a_table(quick)
    yield from exact_from_compiled_code(quick)
    yield from permutations(quick)
    yield from myerson(quick)
    game = TableGame(np.random.default_rng(0).random(1 << 12))
    ours = seconds(lambda: nucleolus(game), 2)
    yield line("nucleolus, n = 12", ours, "(one second)", 1.0, 1)


def exact_from_a_table(quick: bool) -> Iterator[str]:
    import coopgame
    import shapiq

    for n in (16,) if quick else (16, 18, 20):
        table = np.random.default_rng(n).normal(size=1 << n)
        table[0] = 0.0  # coopgame-py has no other
        game, theirs = TableGame(table), coopgame.Game(table[1:].tolist())
        work = f"exact from a table, n = {n}"
        np.testing.assert_allclose(shapley(game).values, coopgame.shapley(theirs), atol=1e-9)
        ours = seconds(lambda game=game: shapley(game), 20)
        peer = seconds(lambda theirs=theirs: coopgame.shapley(theirs), 3)
        yield line(work, ours, "coopgame-py", peer, 20)
        peer = seconds(
            lambda game=game, n=n: shapiq.ExactComputer(game, n_players=n)("SV", 1), 1, warm=False
        )
        yield line(work, ours, "shapiq", peer, 1000)


def compiled_peers() -> tuple[type, type]:
    """Return the voting and the airport game for shapley-numba, written as plain loops."""
    import numba
    from shapley_numba import numba_game

    @numba_game([("weights", numba.float64[:]), ("quota", numba.float64)])
    class Voting:
        def __init__(self, weights, quota):
            self.weights = weights
            self.quota = quota

        def value(self, subset):
            votes = 0.0
            for i in range(len(subset)):
                votes += subset[i] * self.weights[i]
            return np.float64(1.0 if votes >= self.quota else 0.0)

    @numba_game([("costs", numba.float64[:])])
    class Airport:
        def __init__(self, costs):
            self.costs = costs

        def value(self, subset):
            cost = 0.0
            for i in range(len(subset)):
                if subset[i] and self.costs[i] > cost:
                    cost = self.costs[i]
            return np.float64(cost)

    return Voting, Airport


class Compiled:
    """A game that offers its compiled code and nothing else: no closed form to fall back on."""

    def __init__(self, game: VotingGame | AirportGame) -> None:
        self.n_players = game.n_players
        self.kernel = game.kernel
        self._game = game

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return the values of the coalitions."""
        return self._game(rows)


def pairs_of_games(n: int) -> list[tuple[str, VotingGame | AirportGame, object]]:
    rng = np.random.default_rng(n)
    peer_voting, peer_airport = compiled_peers()
    weights, costs = rng.integers(1, 21, n).astype(float), rng.random(n) * 10
    quota = float(weights.sum() // 2 + 1)
    return [
        ("voting", VotingGame(weights, quota), peer_voting(weights, quota)),
        ("airport", AirportGame(costs), peer_airport(costs)),
    ]


def exact_from_compiled_code(quick: bool) -> Iterator[str]:
    from shapley_numba.shapley import shapley as peer_shapley

    n = 16 if quick else 20
    for name, game, peer in pairs_of_games(n):
        ours = Compiled(game)
        np.testing.assert_allclose(shapley(ours, "exact", 1 << n).values, game.shapley_values())
        our_time = seconds(lambda ours=ours: shapley(ours, "exact", 1 << n))
        their_time = seconds(lambda peer=peer: peer_shapley(peer, n), 3)
        work = f"exact from compiled code, {name}, n = {n}"
        yield line(work, our_time, "shapley-numba", their_time, 4)


def permutations(quick: bool) -> Iterator[str]:
    import shapiq
    from shapley_numba.shapley import shapley_perm_mc

    marginals = 100_000 if quick else 1_000_000
    for n in (100,) if quick else (100, 200):
        paths = marginals // n
        budget = 2 + paths * (n - 1)  # both ends, and n−1 coalitions on each path
        for name, game, peer in pairs_of_games(n):
            ours = Compiled(game)
            work = f"{paths} permutations, {name}, n = {n}"
            our_time = seconds(lambda ours=ours, b=budget: shapley(ours, "permutation", b))
            their_time = seconds(
                lambda peer=peer, n=n, p=paths: shapley_perm_mc(peer, n, p, anthithetic=False), 3
            )
            yield line(work, our_time, "shapley-numba", their_time, 5)
            if n == 100:
                method = shapiq.approximator.PermutationSamplingSV(n=n, random_state=0)
                their_time = seconds(
                    lambda m=method, g=game, b=budget: m.approximate(b, g), 1, warm=False
                )
                yield line(work, our_time, "shapiq", their_time, 300)


def myerson(quick: bool) -> Iterator[str]:
    import coopgame

    for n in (14,) if quick else (14, 16, 18):
        rng = np.random.default_rng(n)
        table = rng.random(1 << n)
        table[0] = 0.0
        game, theirs = TableGame(table), coopgame.Game(table[1:].tolist())
        every = [(i, j) for i in range(n) for j in range(i)]
        some = [pair for pair in every if rng.random() < 0.3]
        for name, links in (("a tree", [(i, i // 2) for i in range(1, n)]), ("30 % links", some)):
            our_time = seconds(lambda game=game, links=links: our_myerson(game, links))
            their_time = seconds(
                lambda theirs=theirs, links=links: coopgame.myerson(theirs, links), 2
            )
            yield line(f"Myerson, {name}, n = {n}", our_time, "coopgame-py", their_time, 5)


def released() -> dict[str, Callable[[int, int], object]]:
    """Return the estimators that shapiq has released, by name."""
    from shapiq import approximator

    return {
        "KernelSHAP": lambda n, s: approximator.KernelSHAP(n, random_state=s),
        "kADD-SHAP 2": lambda n, s: approximator.kADDSHAP(n, max_order=2, random_state=s),
        "SVARM": lambda n, s: approximator.SVARM(n, random_state=s),
        "unbiased KernelSHAP": lambda n, s: approximator.UnbiasedKernelSHAP(n, random_state=s),
        "permutation": lambda n, s: approximator.PermutationSamplingSV(n, random_state=s),
        "Owen": lambda n, s: approximator.OwenSamplingSV(n, n_anchor_points=4, random_state=s),
        "stratified": lambda n, s: approximator.StratifiedSamplingSV(n, random_state=s),
    }


def errors(quick: bool) -> None:
    """Print mean squared errors at the same number of evaluations."""
    runs = {100: 20, 500: 10} if quick else {100: 40, 500: 20, 2000: 6, 10_000: 2}
    games = cases()
    limits = {100: 0.6, 500: 0.6, 2000: 1.0, 10_000: 1.0}
    for budget, n_runs in runs.items():
        print(f"mean squared error at {budget} evaluations, {n_runs} seeds")
        head = " ".join(f"{case.name:>17}" for case in games)
        print(f"{'':<22} {head} {'geometric mean':>15}")
        ours = errors_of(lambda case, seed, b=budget: our_values(case, b, seed), games, n_runs)
        print_row("ours (auto)", ours)
        table = {}
        for name, build in released().items():
            table[name] = errors_of(
                lambda case, seed, build=build, b=budget: their_values(case, b, seed, build),
                games,
                n_runs,
            )
            print_row(f"shapiq {name}", table[name])
        means = {
            name: geometric_mean(row) for name, row in table.items() if not np.isnan(row).any()
        }
        best = min(means, key=means.__getitem__)
        each = np.nanmin(np.array(list(table.values())), axis=0)
        print(
            f"ours / the best single one ({best}): {geometric_mean(ours) / means[best]:.2f};"
            f" ours / the best on each game: {geometric_mean(ours) / geometric_mean(each):.2f}"
            f" (at most {limits[budget]})\n",
            flush=True,
        )


def our_values(case: Case, budget: int, seed: int) -> np.ndarray:
    result = shapley(case.game, budget=budget, seed=seed)
    assert result.evaluations <= budget
    return result.values


def their_values(case: Case, budget: int, seed: int, build: Callable) -> np.ndarray:
    n = case.game.n_players
    found = build(n, seed).approximate(budget, case.game)
    return np.array([found[(i,)] for i in range(n)])


def errors_of(
    values: Callable[[Case, int], np.ndarray], games: list[Case], n_runs: int
) -> np.ndarray:
    row = []
    for case in games:
        try:
            found = [((values(case, s) - case.values) ** 2).mean() for s in range(n_runs)]
        except (ValueError, np.linalg.LinAlgError):
            found = [np.nan]  # the budget is too small for the method
        row.append(np.mean(found))
    return np.array(row)


def print_row(name: str, row: np.ndarray) -> None:
    cells = " ".join(f"{error:>17.2e}" for error in row)
    print(f"{name:<27.27}{cells[5:]} {geometric_mean(row):>15.2e}", flush=True)


def geometric_mean(row: np.ndarray) -> float:
    return float(np.exp(np.log(row).mean()))


def large_budgets() -> None:
    """Print the errors that the rule of ``method="auto"`` for large budgets rests on."""
    games = [case for case in cases() if case.game.n_players > 20]
    print(f"mean squared error, one seed; {', '.join(case.name for case in games)}")
    for budget in (50_000,):
        for method in ("portfolio", "gaussian-process", "leverage", "svarm", "antithetic"):
            row = errors_of(
                lambda case, seed, m=method, b=budget: shapley(case.game, m, b, seed=seed).values,
                games,
                1,
            )
            print(
                f"{budget:>7} {method:<18}",
                " ".join(f"{error:>10.2e}" for error in row),
                f"{geometric_mean(row):>10.2e}",
                flush=True,
            )


def coverage() -> None:
    """Print how often 95 % intervals hold the true value, all players of a game together."""
    games = cases()
    print(f"share of values in their 95 % intervals; {', '.join(case.name for case in games)}")
    for budget, n_runs in ((100, 20), (500, 8)):
        for method in ("portfolio", "gaussian-process", "leverage", "kernel", "antithetic"):
            row = []
            for case in games:
                inside = []
                for seed in range(n_runs):
                    try:
                        low, high = shapley(case.game, method, budget, seed=seed).interval()
                    except BudgetError:
                        break
                    inside.append((low <= case.values) & (case.values <= high))
                row.append(np.mean(inside) if inside else np.nan)
            print(
                f"{budget:>5} {method:<18}", " ".join(f"{share:>6.2f}" for share in row), flush=True
            )


if __name__ == "__main__":
    main()
