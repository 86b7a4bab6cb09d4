"""How good a dry run's estimates are: forecast beside what runs took, one process each.

Processor time is compared, so that other work on the machine does not disturb; the peak of resident
memory is that of a process of its own.

    python benchmarks/forecast.py --algorithms a,b,c [--dataset D --rounds N …, as for a run]
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import time
from pathlib import Path

# `benchmarks/optimisers.py` must not hide the package `solvers`.
sys.path = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).parent]


def told(settings: dict) -> tuple[float, float]:
    """Return the forecast of seconds and bytes."""
    from learners.runs.forecast import forecast

    found = forecast(settings)
    return found.seconds, sum(found.memory.values())


def measured(settings: dict) -> tuple[float, float]:
    """Return the processor time of the rounds of a real run, and its peak of memory."""
    from learners.runs import prepare as experiment

    prepared = experiment.prepare(experiment.RunConfig.of(settings))
    experiment.prepare = lambda config: prepared
    began = time.process_time()
    experiment.run(settings)
    seconds = time.process_time() - began
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Print one line per algorithm."""
    settings, algorithms = {"workers": 1}, ["fedavg"]
    for flag, value in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        name = flag.removeprefix("--").replace("-", "_")
        if name == "algorithms":
            algorithms = value.split(",")
        else:
            settings[name] = value
    print(json.dumps(settings))
    print(f"{'':12}{'told s':>9}{'took s':>9}{'ratio':>7}{'told MB':>9}{'took MB':>9}{'ratio':>7}")
    spawn = multiprocessing.get_context("spawn")
    for name in algorithms:
        figures = []
        for program in (told, measured):
            with spawn.Pool(1) as pool:  # a process of its own, for its own peak of memory
                figures.append(pool.apply(program, (settings | {"algorithm": name},)))
        (told_s, told_b), (took_s, took_b) = figures
        print(
            f"{name:12}{told_s:9.2f}{took_s:9.2f}{told_s / took_s:7.2f}"
            f"{told_b / 1e6:9.0f}{took_b / 1e6:9.0f}{told_b / took_b:7.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
