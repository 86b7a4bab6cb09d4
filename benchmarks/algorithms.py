"""What a round of every federated method costs, relative to federated averaging.

Run ``python benchmarks/algorithms.py [--rounds 8] [--dataset digits] [names …]``. One process and
one thread; the first round (warm-up) and the last (with the evaluation on test data) are left out.
Traffic is of one round, in models per client.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from pathlib import Path

import torch

# The program solvers.py beside this one would hide the package of that name.
sys.path[:] = [folder for folder in sys.path if Path(folder) != Path(__file__).resolve().parent]

from learners import ALGORITHMS, run  # noqa: E402
from learners.server.federation import Round  # noqa: E402


def measured(name: str, dataset: str, rounds: int) -> dict[str, float]:
    """Return wall and CPU seconds of a round (medians), and its traffic."""
    clocks: list[tuple[float, float]] = []

    def tick(_: Round) -> None:
        clocks.append((time.perf_counter(), time.process_time()))

    result = run(
        {
            "algorithm": name,
            "dataset": dataset,
            "rounds": rounds,
            "local_epochs": 1,
            "workers": 1,
            "evaluate_every": rounds,
        },
        on_round=tick,
    )
    # The last round has the evaluation; the first is the warm-up.
    wall, cpu = (
        [later[i] - sooner[i] for sooner, later in itertools.pairwise(clocks[:-1])] for i in (0, 1)
    )
    size = sum(p.numel() for p in result.model(0).parameters()) * result.config.clients
    return {
        "wall": statistics.median(wall),
        "cpu": statistics.median(cpu),
        "up": result.history[1]["up"] / size,
        "down": result.history[1]["down"] / size,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[], help="methods; all if none is named")
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--rounds", type=int, default=8)
    arguments = parser.parse_args()
    if arguments.rounds < 3:
        parser.error("--rounds must be 3 or more: the first and the last are not timed")
    torch.set_num_threads(1)
    names = arguments.names or ALGORITHMS.names()
    base = measured("fedavg", arguments.dataset, arguments.rounds)
    print(f"{arguments.dataset}, 10 clients, 1 local epoch, batches of 10; median of rounds")
    print(f"{'algorithm':<12}{'wall s':>9}{'CPU s':>9}{'× fedavg':>10}{'up':>8}{'down':>8}")
    for name in names:
        row = base if name == "fedavg" else measured(name, arguments.dataset, arguments.rounds)
        print(
            f"{name:<12}{row['wall']:>9.3f}{row['cpu']:>9.3f}{row['cpu'] / base['cpu']:>10.2f}"
            f"{row['up']:>8.2f}{row['down']:>8.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
