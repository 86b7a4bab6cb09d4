"""Table IV of the pFedSV paper: accuracy and ε as the noise grows, in both modes of privacy.

CIFAR-10 and CIFAR-100 subsets, 10 clients with 2 of 10 (20 of 100) labels each, all of them in
every round. σ = 0 is a run without clipping or noise, the same for both modes.

    python -P benchmarks/privacy.py --data-dir DIR [--datasets cifar10 cifar100] [--seeds 3]
        [--rounds 10] [--train-size 250] [--lr 0.05] [--clip-records 2] [--clip-updates 0.01]
        [--modes none records updates]
    python -P benchmarks/privacy.py --data-dir DIR --tune    # how lr and the clips were chosen

Every run is printed as it ends, with its CPU seconds; after every seed the table so far, mean ± sd
over the seeds, beside the paper's.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from coalitions.errors import NoSolutionError
from learners import run
from learners.data.clients import federated_data
from learners.runs.result import Result

LABELS = {"cifar10": 2, "cifar100": 20}
METHODS = ("fedavg", "pfedsv")
MODES = ("none", "records", "updates")
NOISES = (0.0, 1.0, 2.0)
PAPER = {
    # data set, method: ε and accuracy in per cent at σ = 0, 1, 2
    ("cifar10", "fedavg"): (("∞", 19.68), ("11.28", 17.54), ("3.64", 15.97)),
    ("cifar10", "pfedsv"): (("∞", 84.73), ("5.97", 82.16), ("1.82", 78.29)),
    ("cifar100", "fedavg"): (("∞", 5.21), ("8.47", 5.03), ("2.56", 4.37)),
    ("cifar100", "pfedsv"): (("∞", 31.07), ("8.42", 30.59), ("1.80", 23.44)),
}
TUNING_SEED = 100
"""Clients, splits and weights that no run of the table has."""


def settings(arguments: argparse.Namespace, dataset: str, seed: int) -> dict[str, Any]:
    """Return what all runs on a data set have in common."""
    return {
        "dataset": dataset,
        "partition": f"pathological:{LABELS[dataset]}",
        "data_dir": str(arguments.data_dir),
        "clients": 10,
        "rounds": arguments.rounds,
        "local_epochs": 1,
        "batch_size": 10,
        "lr": arguments.lr,
        "train_size": arguments.train_size,
        "test_size": 150,
        "model": arguments.model,
        "evaluate_every": arguments.rounds,
        "workers": 1,
        "seed": seed,
    }


def private(mode: str, noise: float, clip: float) -> dict[str, Any]:
    """Return the settings of a mechanism; σ = 0 is none."""
    return {"dp": mode, "noise": noise, "clip": clip} if noise else {}


def timed(config: dict[str, Any]) -> tuple[Result | None, float]:
    """Return a run's result, None if noise drove it out of the numbers, and its CPU seconds."""
    began = time.process_time()
    try:
        result = run(config)
    except NoSolutionError:
        result = None
    return result, time.process_time() - began


def validation_accuracy(result: Result) -> float:
    """Return the mean accuracy of the clients' models on their validation images."""
    config = result.config
    data = federated_data(
        config.dataset, clients=config.clients, partition=config.partition, seed=config.seed,
        train_size=config.train_size, test_size=config.test_size,
        data_dir=Path(str(config.data_dir)),
    )  # fmt: skip
    with torch.inference_mode():
        return statistics.mean(
            float(
                (
                    result.model(c).eval()(each.validation.inputs).argmax(1)
                    == each.validation.targets
                )
                .double()
                .mean()
            )
            for c, each in enumerate(data.clients)
        )


def tune(arguments: argparse.Namespace) -> None:
    """Print validation accuracies of CIFAR-10 by lr and clip, at σ = 1, for another seed."""
    base = settings(arguments, "cifar10", TUNING_SEED)
    plain = [{"lr": lr} for lr in (0.05, 0.1)]
    records = [{"lr": 0.05, **private("records", 1.0, clip)} for clip in (0.5, 1.0, 2.0, 4.0)]
    updates = [{"lr": 0.05, **private("updates", 1.0, clip)} for clip in (0.01, 0.1, 1.0)]
    for extra in (*plain, *records, *updates):
        for algorithm in METHODS:
            result, seconds = timed(base | extra | {"algorithm": algorithm})
            accuracy = math.nan if result is None else validation_accuracy(result)
            print(f"{algorithm} {extra}: {accuracy:.3f} on validation, {seconds:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--datasets", nargs="+", default=list(LABELS), choices=LABELS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--train-size", type=int, default=250)
    parser.add_argument("--model", default="lenet-5")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--clip-records", type=float, default=2.0)
    parser.add_argument("--clip-updates", type=float, default=0.01)
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=MODES)
    parser.add_argument("--tune", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.tune:
        tune(arguments)
        return
    clips = {"records": arguments.clip_records, "updates": arguments.clip_updates}
    kinds = [
        (mode, noise)
        for mode, noise in [("none", 0.0), *itertools.product(clips, NOISES[1:])]
        if mode in arguments.modes
    ]
    found: dict[tuple[str, str, float, str], list[Result | None]] = {}
    for seed in range(arguments.seeds):
        for dataset, (mode, noise), algorithm in itertools.product(
            arguments.datasets, kinds, METHODS
        ):
            mechanism = private(mode, noise, clips.get(mode, 0.0))
            config = settings(arguments, dataset, seed) | mechanism | {"algorithm": algorithm}
            result, seconds = timed(config)
            found.setdefault((dataset, mode, noise, algorithm), []).append(result)
            told = "diverged" if result is None else f"{result.mean_test_accuracy:.4f}"
            print(
                f"seed {seed} {dataset} {mode} sigma {noise:g} {algorithm}: accuracy {told},"
                f" epsilon {_spent(result)}, {seconds:.0f} s",
                flush=True,
            )
        print_table(found, arguments.datasets, kinds)


def print_table(
    found: dict[tuple[str, str, float, str], list[Result | None]],
    datasets: list[str],
    kinds: list[tuple[str, float]],
) -> None:
    """Print the table, mean ± sd over the seeds, and whether equal settings gave equal ε."""
    print("\n| data | mode | σ | method | ε | accuracy | the paper's ε | its accuracy |")
    print("|---|---|---|---|---|---|---|---|")
    same = True
    for dataset, (mode, noise) in itertools.product(datasets, kinds):
        ended = [
            each for m in METHODS for each in found[dataset, mode, noise, m] if each is not None
        ]
        same &= len({_spent(each) for each in ended}) <= 1
        for algorithm in METHODS:
            results = found[dataset, mode, noise, algorithm]
            epsilon, accuracy = PAPER[dataset, algorithm][NOISES.index(noise)]
            theirs = [epsilon, f"{accuracy / 100:.3f}"] if mode != "updates" else ["", ""]
            cells = [dataset, mode, f"{noise:g}", algorithm, _spent(results[0]), _summary(results)]
            print("| " + " | ".join(cells + theirs) + " |")
    verdict = "gave both methods the same ε" if same else "did NOT give both methods the same ε"
    print(f"\nEqual σ, rate and steps {verdict}; in the paper they differ.\n", flush=True)


def _spent(result: Result | None) -> str:
    if result is None:
        return "–"
    return "∞" if result.epsilon is None else f"{result.epsilon:.2f}"


def _summary(results: list[Result | None]) -> str:
    accuracies = [each.mean_test_accuracy for each in results if each is not None]
    if len(accuracies) < len(results):
        return f"diverged in {len(results) - len(accuracies)} of {len(results)} runs"
    spread = f" ± {statistics.stdev(accuracies):.3f}" if len(accuracies) > 1 else ""
    return f"{statistics.mean(accuracies):.3f}{spread}"


if __name__ == "__main__":
    main()
