"""What Flower costs: seconds of a round on both engines, and against the number of clients.

Run it alone on a machine: `python benchmarks/flower.py`. Each run is FedAvg on digits with the
usual network. Of the rounds of a run the fastest counts; the start is all before the first one.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")


def measured(engine: str, clients: int, rounds: int) -> tuple[float, float]:
    """Return the seconds until the first round begins, and those of the fastest round."""
    from learners.runs.run import run

    began = time.perf_counter()
    ends: list[float] = []
    seconds: list[float] = []

    def note(round):
        ends.append(time.perf_counter() - began)
        seconds.append(round.metrics["seconds"])

    settings = {"clients": clients, "rounds": rounds, "train_size": 20, "workers": 2}
    run(settings | {"engine": engine, "partition": "iid"}, on_round=note)
    return ends[0] - seconds[0], min(seconds)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--clients", default="3,10,50")
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, {given.rounds} rounds")
    print(f"{'clients':>7}{'local, round':>14}{'flower, round':>15}{'overhead':>10}{'a client':>10}"
          f"{'flower, start':>15}")  # fmt: skip
    for clients in map(int, given.clients.split(",")):
        _, ours = measured("local", clients, given.rounds)
        start, theirs = measured("flower", clients, given.rounds)
        print(f"{clients:>7}{ours:>12.2f} s{theirs:>13.2f} s{theirs - ours:>8.2f} s"
              f"{(theirs - ours) / clients:>8.3f} s{start:>13.1f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
