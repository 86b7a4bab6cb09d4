"""How often `top_k` settles who is on top, and how often it is wrong then.

Run ``OMP_NUM_THREADS=1 python -m benchmarks.value_top [--k 3] [--budget 500] [--seeds 6]``. The
games are those of ``benchmarks.value_coverage``, which nothing was tuned on; where all coalitions
fit in the budget a game is left out.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.value_coverage import GAMES
from coalitions import FunctionGame, top_k


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--k", type=int, default=3)
    options.add_argument("--budget", type=int, default=500)
    options.add_argument("--seeds", type=int, default=6)
    chosen = options.parse_args()
    print("| game | runs | settled | of them wrong | evaluations, mean |\n|---|---|---|---|---|")
    total = np.zeros(3, dtype=int)
    for name, make in GAMES.items():
        function, values = make()
        if chosen.budget >= 1 << len(values):
            continue
        game = FunctionGame(function, len(values))
        runs = [top_k(game, chosen.k, budget=chosen.budget, seed=s) for s in range(chosen.seeds)]
        settled = [run for run in runs if run.settled]
        wrong = sum(not are_largest(values, run.players) for run in settled)
        used = np.mean([run.evaluations for run in runs])
        print(f"| {name} | {len(runs)} | {len(settled)} | {wrong} | {used:.0f} |", flush=True)
        total += len(runs), len(settled), wrong
    print(f"| all | {total[0]} | {total[1]} | {total[2]} | |")


def are_largest(values: np.ndarray, players: tuple[int, ...]) -> bool:
    """Return whether nobody else has a larger value; equal ones may stand for each other."""
    others = np.delete(values, players)
    return bool(values[list(players)].min() >= others.max() - 1e-9 * np.abs(values).max())


if __name__ == "__main__":
    main()
