"""Sampled Shapley values on thirty games: ``method="auto"`` and all of shapiq 1.8.

Run ``OMP_NUM_THREADS=1 python -m benchmarks.values FOLDER [--seeds 8] [--coverage | --table]``.
Games and errors are kept in FOLDER, and what is there already is not run again: the program may be
stopped at any time. ``--keep FILE`` begins a new FOLDER with the runs of FILE, and writes all runs
there at the end; ``--seeds 0`` runs nothing. Those in docs/measured/shapley.md are in
docs/measured/shapley-errors.jsonl. The peers' errors come from ``benchmarks.value_peers``, which
wants an environment of its own; without them only ours are printed. Errors are mean squared errors
over the variance of the true values, at least 1e-10. Budgets of 2^n and more are left out.
``--against OLDER`` compares the runs with those in another folder, which this file made in a
checkout of an older commit.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.value_games import BUILDERS, Case, case
from benchmarks.value_kept import entries, read_kept, write_kept
from coalitions import FunctionGame, shapley

WANTED = {100: 0.6, 500: 0.6, 2000: 0.8, 10_000: 0.8}
FLOOR = 1e-10


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--seeds", type=int, default=8)
    options.add_argument("--budgets", type=int, nargs="*", default=list(WANTED))
    options.add_argument("--games", nargs="*", default=list(BUILDERS), help="those that run")
    options.add_argument("--keep", type=Path, help="a small file with the errors of all runs")
    options.add_argument("--coverage", action="store_true", help="print the table of intervals")
    options.add_argument("--table", action="store_true", help="print the table of the docs")
    options.add_argument("--first-call", metavar="GAME", help="only time a first and a second call")
    options.add_argument("--against", type=Path, metavar="OLDER", help="compare with this folder")
    chosen = options.parse_args()
    if chosen.first_call:
        print_first_call(case(chosen.first_call, chosen.folder), chosen.budgets[0])
        return
    if chosen.keep:
        read_kept(chosen.folder, chosen.keep)
    if chosen.seeds:
        games = [case(name, chosen.folder) for name in chosen.games]
        measure(games, chosen.folder / "ours.jsonl", chosen.budgets, chosen.seeds)
    if chosen.keep:
        write_kept(chosen.folder, chosen.keep)
    if chosen.coverage:
        print_coverage(chosen.folder, chosen.budgets)
    elif chosen.against:
        print_pairs(chosen.folder, chosen.against, chosen.budgets)
    elif chosen.table:
        print_table(chosen.folder, chosen.budgets)
    else:
        print_errors(chosen.folder, chosen.budgets)


def measure(games: list[Case], path: Path, budgets: list[int], seeds: int) -> None:
    """Append a line for each run that is not there yet."""
    done = {(e["game"], e["budget"], e["seed"]) for e in entries(path)}
    for seed in range(seeds):
        for budget in budgets:
            for game in games:
                fits = budget < 1 << len(game.values)
                if fits and (game.name, budget, seed) not in done:
                    with path.open("a") as file:
                        file.write(json.dumps(run(game, budget, seed)) + "\n")


def run(game: Case, budget: int, seed: int) -> dict:
    """Return error, coverage of the 95 % intervals, and CPU seconds of one estimate."""
    start = time.process_time()
    result = shapley(game.game, budget=budget, seed=seed)
    seconds = time.process_time() - start
    assert result.evaluations <= budget
    low, high = result.interval(0.95)
    some = result.stderr > 0
    covered = (low <= game.values) & (game.values <= high)
    return {
        "game": game.name,
        "budget": budget,
        "seed": seed,
        "error": float(((result.values - game.values) ** 2).mean() / game.values.var()),
        "covered": float(covered[some].mean()) if some.any() else None,
        "stderr": float((result.stderr**2).mean() / game.values.var()),
        "seconds": seconds,
    }


def print_first_call(game: Case, budget: int) -> None:
    """Print the CPU seconds of the first two estimates of this process, the game's left out."""
    played = 0.0

    def timed(rows: np.ndarray) -> np.ndarray:
        nonlocal played
        start = time.process_time()
        values = game.game(rows)
        played += time.process_time() - start
        return values

    for name in ("first", "second"):
        start, played = time.process_time(), 0.0
        shapley(FunctionGame(timed, len(game.values)), budget=budget)
        print(f"{name} call: {time.process_time() - start - played:.2f} CPU seconds")


@dataclass(frozen=True)
class Compared:
    """Our errors on a game and budget, and the best peer's mean, the number of its seeds."""

    errors: list[float]
    peer: str
    peer_error: float
    peer_seeds: int

    @property
    def mean(self) -> float:
        """Our error."""
        return max(FLOOR, float(np.mean(self.errors)))

    @property
    def ratio(self) -> float:
        """Our error over the best peer's."""
        return self.mean / self.peer_error


def compared(folder: Path) -> dict[tuple[int, str], Compared]:
    """Return ours and the best peer by budget and game; a peer's error is nan if none ran."""
    ours, theirs = defaultdict(list), defaultdict(lambda: defaultdict(list))
    for entry in entries(folder / "ours.jsonl"):
        ours[entry["budget"], entry["game"]].append(entry["error"])
    for entry in entries(folder / "peers.jsonl"):
        if entry["error"] is not None:
            theirs[entry["budget"], entry["game"]][entry["peer"]].append(entry["error"])
    found = {}
    for key, errors in ours.items():
        means = {peer: max(FLOOR, float(np.mean(some))) for peer, some in theirs[key].items()}
        best = min(means, key=lambda peer: means[peer]) if means else ""
        found[key] = Compared(errors, best, means.get(best, np.nan), len(theirs[key][best]))
    return found


def print_errors(folder: Path, budgets: list[int]) -> None:
    """Print our error beside the best peer's on each game, and the geometric mean of the ratios."""
    found = compared(folder)
    for budget in budgets:
        print(
            f"\n{budget} evaluations: errors, the worst, seeds in brackets; the best peer's; ratio"
        )
        for name, (aside, _) in BUILDERS.items():
            if (budget, name) in found:
                one = found[budget, name]
                line = f"{name:<23}{'kept aside' if aside else '':<11}{one.mean:>9.1e}"
                line += f"{max(one.errors):>9.1e} ({len(one.errors)})"
                if one.peer:
                    line += f"  {one.peer:<20}{one.peer_error:>9.1e} ({one.peer_seeds})"
                    line += f" {one.ratio:>7.2f}"
                print(line)
        ratios = ratios_at(found, budget)
        if ratios:
            aside = [ratio for name, ratio in ratios.items() if BUILDERS[name][0]]
            mean = geometric_mean(ratios.values())
            print(
                f"ours / the best on each game: geometric mean {mean:.2f} (wanted:"
                f" {WANTED.get(budget, 1)}), kept aside {geometric_mean(aside):.2f}, largest"
                f" {max(ratios.values()):.2f} (wanted: 1.5)"
            )
    print_growth({key: one.mean for key, one in found.items()})


def short(number: float) -> str:
    """Return a number with two digits: 3.7e-3."""
    digits, power = f"{number:.1e}".split("e")
    return f"{digits}e{int(power):+d}"


def ratios_at(found: dict[tuple[int, str], Compared], budget: int) -> dict[str, float]:
    return {name: one.ratio for (b, name), one in found.items() if b == budget and one.peer}


def print_table(folder: Path, budgets: list[int]) -> None:
    """Print error, that of the worst seed and ratio in Markdown, and the seeds of both."""
    found = compared(folder)
    print("| game, players | " + " | ".join(map(str, budgets)) + " |")
    print("|---" * (len(budgets) + 1) + "|")
    for name, (aside, _) in BUILDERS.items():
        cells = []
        for budget in budgets:
            one = found.get((budget, name))
            cells.append(
                "–" if one is None else f"{short(one.mean)} ({short(max(FLOOR, *one.errors))})"
            )
            if one is not None and one.peer:
                cells[-1] += f", {one.ratio:.{2 if one.ratio >= 0.01 else 4}f}"
        print(f"| {name}{' *' if aside else ''} | " + " | ".join(cells) + " |")
    ratios = [ratios_at(found, budget) for budget in budgets]
    asides = [[r for name, r in some.items() if BUILDERS[name][0]] for some in ratios]
    last = {
        "geometric mean of the ratios": [f"**{geometric_mean(r.values()):.2f}**" for r in ratios],
        "of the games kept aside": [f"{geometric_mean(some):.2f}" for some in asides],
        "largest ratio": [f"{max(some.values(), default=np.nan):.2f}" for some in ratios],
    }
    for name, cells in last.items():
        print(f"| {name} | " + " | ".join(cells) + " |")
    for budget in budgets:
        seeds = {
            name: (len(x.errors), x.peer_seeds) for (b, name), x in found.items() if b == budget
        }
        usual = max(Counter(seeds.values()).items(), key=lambda some: some[1], default=((0, 0), 0))
        others = {name: both for name, both in seeds.items() if both != usual[0]}
        print(f"\n{budget}: seeds of ours and of the best peer {usual[0]}, but {others}")
    print_growth({key: one.mean for key, one in found.items()})


def print_growth(errors: dict[tuple[int, str], float]) -> None:
    """Print the largest error relative to that at the budget before: 1 and more would be growth."""
    budgets = sorted({budget for budget, _ in errors})
    print()
    for less, more in pairwise(budgets):
        grown = {
            name: errors[more, name] / errors[less, name]
            for name in BUILDERS
            if (less, name) in errors and (more, name) in errors and errors[less, name] > FLOOR
        }
        if grown:
            worst = max(grown, key=lambda name: grown[name])
            print(f"error at {more} / at {less}: at most {grown[worst]:.2f} ({worst})")


def print_coverage(folder: Path, budgets: list[int]) -> None:
    """Print how many values lie in their 95 % intervals, and the CPU seconds of an estimate."""
    covered, seconds = defaultdict(list), defaultdict(list)
    for entry in entries(folder / "ours.jsonl"):
        seconds[entry["budget"]].append(entry["seconds"])
        if entry["covered"] is not None:
            covered[entry["game"], entry["budget"]].append(entry["covered"])
    print(f"{'':<23}" + "".join(f"{budget:>14}" for budget in budgets))
    for name in BUILDERS:
        cells = (covered.get((name, budget)) for budget in budgets)
        text = (f"{np.mean(cell):.2f} ({len(cell)})" if cell else "–" for cell in cells)
        print(f"{name:<23}" + "".join(f"{cell:>14}" for cell in text))
    for budget in budgets:
        if seconds[budget]:
            spent = seconds[budget]
            print(f"{budget}: CPU seconds {np.median(spent):.2f}, at most {max(spent):.2f}")


def print_pairs(folder: Path, older: Path, budgets: list[int]) -> None:
    """Print errors, coverage and standard errors of runs that both folders have, as ratios."""
    new, old = (
        {(e["game"], e["budget"], e["seed"]): e for e in entries(each / "ours.jsonl")}
        for each in (folder, older)
    )
    for budget in budgets:
        both = [key for key in new if key in old and key[1] == budget]
        print(f"{budget}: {len(both)} pairs")
        for name in ("error", "stderr"):
            ratios = {
                key: max(new[key][name], FLOOR) ** 0.5 / max(old[key][name], FLOOR) ** 0.5
                for key in both
            }
            if ratios:
                worst = max(ratios, key=lambda key: ratios[key])
                mean = geometric_mean(ratios.values())
                print(
                    f"  {name} after/before: {mean:.6f}, at most {ratios[worst]:.6f} ({worst[0]})"
                )
        rates = [(old[key]["covered"], new[key]["covered"]) for key in both]
        known = [rate for rate in rates if None not in rate]
        if known:
            before, after = np.mean(known, axis=0)
            fewer = sum(one > other for one, other in known)
            print(f"  covered: {before:.3f}, then {after:.3f}; less than before in {fewer} runs")


def geometric_mean(numbers: Iterable[float]) -> float:
    logs = np.log(list(numbers))
    return float(np.exp(logs.mean())) if len(logs) else np.nan


if __name__ == "__main__":
    main()
