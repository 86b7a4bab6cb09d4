"""Rounds of many clients, trained one after the other and stacked: CPU-seconds and wall time.

python -m benchmarks.stacked [--clients 100] [--rounds 3] [--models mlp,lenet-5] [--device cpu]

Both run in one process with one thread, on the same random pictures and with the same batches.
Neither the first round is timed, when torch chooses its kernels, nor the one with the tests after
the last, which are stacked on a GPU only.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch

from learners import run

SIDES = {"mlp": 8}
"""Pixels a side of the pictures for a network; 28 for the others."""


def pictures(clients: int, samples: int, side: int) -> list[Any]:
    """Return random pictures of ten classes for every client, to train on and to test on."""
    rng = np.random.default_rng(0)

    def some(n: int) -> tuple[Any, Any]:
        inputs = rng.normal(size=(n, 1, side, side)).astype(np.float32)
        return inputs, np.arange(n) % 10

    return [(some(samples), some(10)) for _ in range(clients)]


def seconds_of_a_round(
    compute: str, model: str, *, clients: int, samples: int, rounds: int, device: str
) -> tuple[float, float, float | None]:
    """Return the CPU-seconds and the wall time of a round, and the last training loss."""
    marks: list[tuple[float, float]] = []

    def mark(_: object) -> None:
        if device == "cuda":
            torch.cuda.synchronize()
        marks.append((time.process_time(), time.perf_counter()))

    settings = {
        "algorithm": "fedavg",
        "rounds": rounds + 1,
        "model": model,
        "local_epochs": 1,
        "batch_size": 10,
        "validation_share": 0.0,
        "evaluate_every": rounds + 1,
        "workers": 1,
        "device": device,
        "compute": compute,
    }
    data = pictures(clients, samples, SIDES.get(model, 28))
    result = run(settings, data=data, on_round=mark)
    first, last = marks[0], marks[-2]
    return (
        (last[0] - first[0]) / (rounds - 1),
        (last[1] - first[1]) / (rounds - 1),
        result.history[-1]["train_loss"],
    )


def table(models: list[str], **more: Any) -> None:
    """Print a line for each network."""
    print("| network | sequential CPU s | stacked CPU s | ratio | wall s | wall s | losses |")
    print("|---|---|---|---|---|---|---|")
    for model in models:
        cpu, wall, loss = seconds_of_a_round("sequential", model, **more)
        stacked_cpu, stacked_wall, stacked_loss = seconds_of_a_round("stacked", model, **more)
        print(
            f"| {model} | {cpu:.3f} | {stacked_cpu:.3f} | {stacked_cpu / cpu:.2f} | {wall:.3f} |"
            f" {stacked_wall:.3f} | {loss:.5f} {stacked_loss:.5f} |",
            flush=True,
        )


def options(described: str | None) -> argparse.ArgumentParser:
    """Return what can be typed."""
    parser = argparse.ArgumentParser(
        description=described, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=100, help="pictures a client trains on")
    parser.add_argument("--rounds", type=int, default=3, help="two or more; the first is not timed")
    parser.add_argument("--models", default="mlp,lenet-5")
    return parser


def main() -> None:
    """Measure and print."""
    parser = options(__doc__)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    table(
        asked.models.split(","),
        clients=asked.clients,
        samples=asked.samples,
        rounds=asked.rounds,
        device=asked.device,
    )


if __name__ == "__main__":
    main()
