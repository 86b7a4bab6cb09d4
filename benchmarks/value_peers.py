"""Errors of the Shapley estimators of shapiq 1.8 on the games of `benchmarks.value_games`.

It wants an environment of its own, Python 3.12 or later:

    python3.12 -m venv peers && peers/bin/pip install 'shapiq[sparse,shapleig]==1.8.0' \
        xgboost lightgbm scikit-learn numba networkx
    OMP_NUM_THREADS=1 peers/bin/python -m benchmarks.value_peers FOLDER [--seeds 8] [--budgets 500]

Each run is a line of ``FOLDER/peers.jsonl``; what is there already is not run again, so the program
may be stopped at any time. Only what can still be the best on a game and budget runs on: with the
first seed all estimators, with the next two those within ten times the least error of the first,
then those within twice the least mean of the first three. ShaplEIG chooses its coalitions one by
one and takes half a minute for a hundred of them: it runs only at 100 evaluations, and only for
``--eig-seeds`` seeds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.value_games import BUILDERS, Case, case

BUDGETS = (100, 500, 2000, 10_000)
FLOOR = 1e-10


def released() -> dict[str, Callable[[int, int], object]]:
    """Return the estimators that shapiq has released, by name, with their own defaults."""
    from shapiq import approximator as a

    return {
        "KernelSHAP": lambda n, s: a.KernelSHAP(n, random_state=s),
        "LeverageSHAP": lambda n, s: a.LeverageSHAP(n, random_state=s),
        "kADD-SHAP": lambda n, s: a.kADDSHAP(n, max_order=2, random_state=s),
        "PolySHAP": lambda n, s: a.PolySHAP(n, random_state=s),
        "OddSHAP": lambda n, s: a.OddSHAP(n, random_state=s),
        "RegressionMSR": lambda n, s: a.RegressionMSR(n, "SV", random_state=s),
        "ProxySHAP": lambda n, s: a.ProxySHAP(n, max_order=1, index="SV", random_state=s),
        # Its grid search takes 39 s for 100 evaluations: left out.
        "ProxySPEX": lambda n, s: a.ProxySPEX(
            n=n, max_order=1, index="SV", hpo=False, random_state=s
        ),
        "SPEX": lambda n, s: a.SPEX(n=n, max_order=1, index="SV", random_state=s),
        "SVARM": lambda n, s: a.SVARM(n, random_state=s),
        "unbiased KernelSHAP": lambda n, s: a.UnbiasedKernelSHAP(n, random_state=s),
        "permutation": lambda n, s: a.PermutationSamplingSV(n, random_state=s),
        "Owen": lambda n, s: a.OwenSamplingSV(n, n_anchor_points=4, random_state=s),
        "stratified": lambda n, s: a.StratifiedSamplingSV(n, random_state=s),
        "ShaplEIG": lambda n, s: a.ShaplEIG(n, show_progress=False, random_state=s),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--seeds", type=int, default=8)
    options.add_argument("--eig-seeds", type=int, default=1)
    options.add_argument("--budgets", type=int, nargs="*", default=list(BUDGETS))
    options.add_argument("--games", nargs="*", default=list(BUILDERS))
    options.add_argument("--leave-out", nargs="*", default=[], help="peers, e.g. the slow SPEX")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")  # the peers' own
    path = chosen.folder / "peers.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(e["game"], e["budget"], e["seed"], e["peer"]): e["error"] for e in lines}
    peers = {k: build for k, build in released().items() if k not in chosen.leave_out}
    games = [case(name, chosen.folder) for name in chosen.games]
    for budget in chosen.budgets:
        for seed in range(chosen.seeds):
            for game in games:
                if budget >= 1 << len(game.values):
                    continue
                for peer in peers:
                    key = (game.name, budget, seed, peer)
                    if peer == "ShaplEIG" and (budget > 100 or seed >= chosen.eig_seeds):
                        continue
                    if key in known or not promising(known, *key):
                        continue
                    answer = run(game, budget, seed, peer, peers[peer])
                    known[key] = answer["error"]
                    with path.open("a") as file:
                        file.write(json.dumps(answer) + "\n")


def promising(known: dict, game: str, budget: int, seed: int, peer: str) -> bool:
    """Tell whether the seeds before leave hope that a peer is the best one."""
    if seed == 0:
        return True
    looked_at, times = (1, 10.0) if seed < 3 else (3, 2.0)
    errors = defaultdict(list)
    for (g, b, s, name), error in known.items():
        if (g, b) == (game, budget) and s < looked_at and error is not None:
            errors[name].append(error)
    means = {name: np.mean(found) for name, found in errors.items() if len(found) == looked_at}
    return peer in means and means[peer] <= times * max(FLOOR, min(means.values()))


def run(game: Case, budget: int, seed: int, peer: str, build: Callable) -> dict:
    """Return the error of one run, relative to the variance of the values; None if it failed."""
    n = len(game.values)
    start = time.process_time()
    try:
        found = build(n, seed).approximate(budget, game.game)
        values = np.array([found[(i,)] for i in range(n)])
        error = float(((values - game.values) ** 2).mean() / game.values.var())
    except Exception as problem:  # whatever a peer cannot do with this game and budget
        error = None
        print(f"{peer}, {game.name}, {budget}: {problem}"[:200], file=sys.stderr, flush=True)
    seconds = time.process_time() - start
    return dict(game=game.name, budget=budget, seed=seed, peer=peer, error=error, seconds=seconds)


if __name__ == "__main__":
    main()
