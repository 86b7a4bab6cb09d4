"""What poisoned clients do to honest ones: attacks × rules and methods, the clean run beside.

The last clients of fifteen are attackers, three (20 %) or six (40 %): as many as Krum bears among
fifteen. They train on wrong labels, or send something else than what they trained, after their own
gate, as a hostile machine would:

- wrong labels: every label of their data is another one;
- sign flip: their update turned round, of the size it had;
- scaling: ten times their update;
- noise: a random model of the size that theirs has.

Numbers are the honest clients' mean test accuracy in the last round, the mean over seeds.

    python benchmarks/poisoning.py                 # the table
    python benchmarks/poisoning.py --methods fedavg:median --seeds 0
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

# The program solvers.py beside this one would hide the package of that name.
sys.path[:] = [folder for folder in sys.path if Path(folder) != Path(__file__).resolve().parent]

import learners.server.local_engine  # noqa: E402
from learners.client.client import answer  # noqa: E402
from learners.runs.run import run  # noqa: E402
from learners.settings.seeding import stream  # noqa: E402
from learners.task import Reveals  # noqa: E402

CLIENTS = 15
SHARES = (0.2, 0.4)
RULES = ("mean", "median", "trimmed-mean", "krum", "multi-krum", "geometric-median")
METHODS = (*(f"fedavg:{rule}" for rule in RULES), "pfedsv", "cffl-cos", "cffl-ica")
WITH_SHARE = ("trimmed-mean", "krum", "multi-krum")


def flipped(trained, before, random):
    return 2 * before - trained


def scaled(trained, before, random):
    return before + 10 * (trained - before)


def noise(trained, before, random):
    drawn = torch.randn(trained.shape, generator=random)
    return drawn * (trained.norm() / drawn.norm())


ATTACKS = {"wrong labels": None, "sign flip": flipped, "scaling": scaled, "noise": noise}


def attacking(attackers, attack):
    """Return the clients' half of a question where attackers change the models they send."""

    def changed(site, task, client, round, message, memory):
        given = answer(site, task, client, round, message, memory)
        if client not in attackers or attack is None or task.watches or given.reply is None:
            return given
        reply = dict(given.reply)
        random = stream(site.config.seed, "attacker", client, round)
        for name, value in reply.items():
            if task.reply[name] is Reveals.MODEL:
                before = message.get(name, memory.get("model", site.initial))
                reply[name] = attack(value, before, random)
        return replace(given, reply=reply)

    return changed


def accuracy(method, seed, share, attack, settings):
    """Return the honest clients' mean accuracy in the last round."""
    attackers = range(CLIENTS - round(share * CLIENTS), CLIENTS) if attack else range(0)
    name, _, rule = method.partition(":")
    algorithm, _, synergy = name.partition("-")
    config = settings | {"algorithm": algorithm, "seed": seed, "clients": CLIENTS, "workers": 1}
    if synergy:
        config["options"] = {"synergy": synergy}
    if rule:
        config["aggregation"] = f"{rule}:{share}" if rule in WITH_SHARE else rule
    if attack == "wrong labels":
        config["poison"] = [f"wrong-labels:{','.join(map(str, attackers))}"]
    learners.server.local_engine.answer = attacking(attackers, ATTACKS.get(attack))
    try:
        scores = run(config).per_client_test_accuracy
    finally:
        learners.server.local_engine.answer = answer
    honest = [score for c, score in enumerate(scores) if c not in attackers]
    return float(np.mean([score for score in honest if score is not None]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--partition", default="dirichlet:1")
    parser.add_argument("--train-size", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=8)
    arguments = parser.parse_args()
    settings = {
        "dataset": arguments.dataset,
        "partition": arguments.partition,
        "train_size": arguments.train_size,
        "rounds": arguments.rounds,
        "evaluate_every": arguments.rounds,
    }
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    columns = [(attack, share) for attack in ATTACKS for share in SHARES]
    began = time.perf_counter()
    heads = [f"{attack}, {share:.0%}" for attack, share in columns]
    print("| method | clean |", " | ".join(heads), "|")
    print("|---|" + "---|" * (1 + len(columns)))
    for method in arguments.methods.split(","):
        cells = []
        for attack, share in [(None, SHARES[0]), *columns]:
            found = [accuracy(method, seed, share, attack, settings) for seed in seeds]
            cells.append(f"{np.mean(found):.3f}")
        print(f"| {method} |", " | ".join(cells), "|", flush=True)
    print(f"\n{time.perf_counter() - began:.0f} s, {len(seeds)} seeds, {settings}")


if __name__ == "__main__":
    main()
