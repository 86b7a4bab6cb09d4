"""Sampled Shapley values on thirty games: ``method="auto"`` and all of shapiq 1.8.

Run ``OMP_NUM_THREADS=1 python -m benchmarks.values FOLDER [--seeds 8] [--coverage]``. Games and
errors are kept in FOLDER, and what is there already is not run again. The peers' errors come from
``benchmarks.value_peers``, which wants an environment of its own; without them only ours are
printed. Errors are mean squared errors over the variance of the true values, at least 1e-10.
Budgets of 2^n and more are left out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.value_games import BUILDERS, Case, case
from coalitions import shapley

WANTED = {100: 0.6, 500: 0.6, 2000: 0.8, 10_000: 0.8}
FLOOR = 1e-10


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--seeds", type=int, default=8)
    options.add_argument("--budgets", type=int, nargs="*", default=list(WANTED))
    options.add_argument("--coverage", action="store_true", help="print the table of intervals")
    chosen = options.parse_args()
    games = [case(name, chosen.folder) for name in BUILDERS]
    measure(games, chosen.folder / "ours.jsonl", chosen.budgets, chosen.seeds)
    if chosen.coverage:
        print_coverage(chosen.folder, chosen.budgets)
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
        "seconds": seconds,
    }


def entries(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def print_errors(folder: Path, budgets: list[int]) -> None:
    """Print our error beside the best peer's on each game, and the geometric mean of the ratios."""
    ours, theirs = defaultdict(list), defaultdict(list)
    for entry in entries(folder / "ours.jsonl"):
        ours[entry["budget"], entry["game"]].append(entry["error"])
    for entry in entries(folder / "peers.jsonl"):
        if entry["error"] is not None:
            theirs[entry["budget"], entry["game"], entry["peer"]].append(entry["error"])
    for budget in budgets:
        ratios = {True: [], False: []}
        print(
            f"\n{budget} evaluations: errors, the worst, seeds in brackets; the best peer's; ratio"
        )
        for name, (aside, _) in BUILDERS.items():
            if (budget, name) not in ours:
                continue
            errors = ours[budget, name]
            line = f"{name:<23}{'kept aside' if aside else '':<11}{np.mean(errors):>9.1e}"
            line += f"{max(errors):>9.1e} ({len(errors)})"
            peers = {
                key[2]: (max(FLOOR, float(np.mean(found))), len(found))
                for key, found in theirs.items()
                if key[:2] == (budget, name)
            }
            if peers:
                best = min(peers, key=lambda peer: peers[peer][0])
                ratio = max(FLOOR, float(np.mean(errors))) / peers[best][0]
                ratios[aside].append(ratio)
                line += f"  {best:<20}{peers[best][0]:>9.1e} ({peers[best][1]}) {ratio:>7.2f}"
            print(line)
        both = ratios[True] + ratios[False]
        if both:
            print(
                f"ours / the best on each game: geometric mean {geometric_mean(both):.2f} (wanted:"
                f" {WANTED.get(budget, 1)}), kept aside {geometric_mean(ratios[True]):.2f}, largest"
                f" {max(both):.2f} (wanted: 1.5)"
            )

    print_growth({key: max(FLOOR, float(np.mean(found))) for key, found in ours.items()})


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


def geometric_mean(numbers: list[float]) -> float:
    return float(np.exp(np.mean(np.log(numbers)))) if numbers else np.nan


if __name__ == "__main__":
    main()
