"""Rounds of many clients, trained one after the other and stacked: CPU-seconds and wall time.

python -m benchmarks.stacked [--clients 100] [--rounds 3] [--models mlp,lenet-5] [--device cpu]
python -m benchmarks.stacked --questions [--clients 10] [--samples 50]

Both run in one process with one thread, on the same random pictures and with the same batches.
Neither the first round is timed, when torch chooses its kernels, nor the one with the tests after
the last, which are stacked on a GPU only. `--questions` times what clients are asked beside
training, each about the models of all: to test them, to differentiate them, and to fine-tune the
mean of each with their own (CFFL's pairs). There, tests and gradients are stacked on any device.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch

from learners import run
from learners.algorithm import build_algorithm
from learners.client.client import Site
from learners.client.stacked_training import Stacking
from learners.client.tasks import evaluate_many, fine_tune_pairs, gradient
from learners.data.client_data import ClientData, FederatedData, Split, classes, of_pictures
from learners.devices import to_device
from learners.models.network import build_model
from learners.rows.parameters import Layout
from learners.rows.workspace import Workspace
from learners.server.local_engine import local_engine, stacked_engine
from learners.settings.config import RunConfig

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


def seconds_of_a_question(
    model: str, *, clients: int, samples: int, repeats: int, device: str
) -> dict[str, tuple[float, float]]:
    """Return seconds of each question to all clients, one after the other and stacked.

    They are of the processor on the CPU, else of the wall clock.
    """
    clock = time.process_time if device == "cpu" else time.perf_counter
    shape = (1, SIDES.get(model, 28), SIDES.get(model, 28))
    module = build_model(model, shape=shape, n_classes=10, seed=0)
    workspace = Workspace(module, Layout.of(module), torch.device(device))
    splits = [
        [Split(torch.from_numpy(inputs), torch.from_numpy(labels)) for inputs, labels in each]
        for each in pictures(clients, samples, shape[1])
    ]
    data = FederatedData(
        "random",
        tuple(ClientData(train, test, test) for train, test in splits),
        of_pictures(shape),
        classes(10),
    )
    config = RunConfig(clients=clients, model=model, batch_size=10, local_epochs=1)
    site = Site(config, build_algorithm("fedavg", {}), workspace, data)
    stream = torch.Generator().manual_seed(0)
    noise = torch.randn((clients, len(site.initial)), generator=stream)
    rows = site.initial + 0.01 * to_device(noise, site.initial.device)
    engines = local_engine(site, 1), stacked_engine(site, Stacking())
    asked = {
        "tests": (evaluate_many, {"models": rows, "on": "train"}),
        "gradients": (gradient, {"models": rows}),
        "pairs": (fine_tune_pairs, {"models": rows}),
    }
    best = {name: [float("inf")] * 2 for name in asked}
    for turn in range(repeats + 1):  # the first is not timed
        for name, (task, message) in asked.items():
            for which, engine in enumerate(engines):
                began = clock()
                engine.ask(task, dict.fromkeys(range(clients), message), 1)
                if device == "cuda":
                    torch.cuda.synchronize()
                if turn:
                    best[name][which] = min(best[name][which], clock() - began)
    return {name: (alone, stacked) for name, (alone, stacked) in best.items()}


def table_of_questions(models: list[str], **more: Any) -> None:
    """Print a line for each network and question."""
    print("| network | question | sequential s | stacked s | ratio |")
    print("|---|---|---|---|---|")
    for model in models:
        for name, (alone, stacked) in seconds_of_a_question(model, **more).items():
            print(
                f"| {model} | {name} | {alone:.3f} | {stacked:.3f} | {stacked / alone:.2f} |",
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
    parser.add_argument("--questions", action="store_true", help="time these instead of rounds")
    asked = parser.parse_args()
    if asked.questions:
        torch.set_num_threads(1)
        table_of_questions(
            asked.models.split(","),
            clients=asked.clients,
            samples=asked.samples,
            repeats=asked.rounds,
            device=asked.device,
        )
        return
    table(
        asked.models.split(","),
        clients=asked.clients,
        samples=asked.samples,
        rounds=asked.rounds,
        device=asked.device,
    )


if __name__ == "__main__":
    main()
