"""Which models pFedSV clients download, by order: good ones used, and found.

Nothing is trained: games tell exactly who is relevant (noise on the scores can be added). In each
round a random part of the clients is present; every one of them chooses by its scores.

    python -m benchmarks.downloads [--seeds N] [--noise S]
"""

from __future__ import annotations

import argparse
import itertools
from typing import get_args

import numpy as np

from learners.algorithms.pfedsv import Order, chosen_downloads

SETTINGS = {  # clients, present in a round, rounds, relevant others, k
    "10 clients, all present": (10, 10, 20, 2, 5),
    "100 clients, 10 % present": (100, 10, 100, 19, 5),
    "100 clients, 10 %, few relevant": (100, 10, 100, 6, 5),
    "100 clients, 30 % present": (100, 30, 100, 19, 5),
    "100 clients, 30 %, many relevant": (100, 30, 100, 49, 5),
}


def played(
    setting: tuple[int, int, int, int, int], order: Order, noise: float, seed: int
) -> tuple[float, float, float]:
    """Return, of the second half: relevant share of downloads, share of the relevant, downloads."""
    n, present, rounds, relevant, k = setting
    rng = np.random.default_rng(seed)
    steps = np.arange(1, relevant // 2 + 1)  # neighbours on a ring, and one more if odd
    truth = np.zeros((n, n), bool)
    for i in range(n):
        truth[i, (i + np.concatenate([steps, -steps])) % n] = True
        if relevant % 2:
            truth[i, (i + n // 2) % n] = True
    scores, scored = np.zeros((n, n)), np.zeros((n, n), np.int64)
    good = taken = there = games = 0
    for t in range(rounds):
        who = rng.permutation(n)[:present]
        for i in who:
            others = who[who != i]
            chosen = chosen_downloads(
                scores[i, others],
                scored[i, others],
                others,
                k=k,
                order=order,
                dynamic=True,
                explore=0.0,
                rng=rng,
            )
            found = np.where(truth[i, chosen], 0.1, -0.1) + noise * rng.normal(size=len(chosen))
            scores[i, chosen] = 0.5 * scores[i, chosen] + 0.5 * found
            scored[i, chosen] += 1
            if 2 * t >= rounds:
                good += truth[i, chosen].sum()
                taken += len(chosen)
                there += truth[i, others].sum()
                games += 1
    return good / max(taken, 1), good / max(there, 1), taken / games


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 0.1])
    arguments = parser.parse_args()
    print(f"{'setting':34}{'noise':>6}  {'order':8}{'relevant':>9}{'of those':>9}{'downloads':>10}")
    print(f"{'':50}{'share':>9}{'present':>9}{'a game':>10}")
    for (name, setting), noise in itertools.product(SETTINGS.items(), arguments.noise):
        for order in get_args(Order):
            shares = [played(setting, order, noise, seed) for seed in range(arguments.seeds)]
            share, recall, downloads = np.mean(shares, axis=0)
            print(f"{name:34}{noise:6.2f}  {order:8}{share:9.2f}{recall:9.2f}{downloads:10.2f}")


if __name__ == "__main__":
    main()
