"""How much faster several workers are, on a game that takes a second for each coalition.

python -m benchmarks.workers [--seconds 1.0] [--rows 16]

Sleeping games show what the sharing itself costs: they need no core. Computing games show what the
cores of the machine give; on a machine with other work that is less.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from coalitions import FunctionGame, parallel


def sleeping(seconds):
    def value(row):
        time.sleep(seconds)
        return float(row.sum())

    return value


def computing(seconds):
    def value(row):
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass
        return float(row.sum())

    return value


def measured(value, rows, workers):
    """Return the seconds that the rows take, once the workers are there."""
    n = rows.shape[1]
    if not workers:
        game = FunctionGame(value, n, takes="row")
        start = time.perf_counter()
        game(rows)
        return time.perf_counter() - start
    with parallel(FunctionGame(value, n, takes="row"), workers) as game:
        start = time.perf_counter()
        game(rows)
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=16)
    options = parser.parse_args()
    rows = np.random.default_rng(0).random((options.rows, 20)) < 0.5
    print("| game | workers | seconds | speed-up |\n|---|---|---|---|")
    for name, kind in (("sleeping", sleeping), ("computing", computing)):
        alone = measured(kind(options.seconds), rows, 0)
        print(f"| {name} | none | {alone:.2f} | 1 |")
        for workers in (1, 2, 4):
            taken = measured(kind(options.seconds), rows, workers)
            print(f"| {name} | {workers} | {taken:.2f} | {alone / taken:.2f} |")


if __name__ == "__main__":
    main()
