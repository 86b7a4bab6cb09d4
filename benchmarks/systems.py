"""What the four systems of the papers do on real data: python benchmarks/systems.py --data FOLDER.

Prints one table per claim, with the settings and seeds it was measured with. ``--quick`` is a smoke
test of the program (minutes, and its numbers mean nothing); without it each section takes from
minutes to an hour of two cores. Name sections to run only some: relevance, pays, weights, cffl,
attacks, fedc2i, fedacs, cost.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import solvers
from coalitions import adjusted_rand_index, refines
from learners import federated_data, run
from learners.algorithms import cffl as cffl_method
from learners.data.ground_truth import (
    among,
    are_separated,
    detection,
    label_overlap,
    true_structure,
)
from learners.server import local_engine as local

T = TypeVar("T")


@dataclass
class Outcome:
    """A run: its metrics, and what its method recorded in each round."""

    metrics: Mapping[str, Any]
    history: tuple[Mapping[str, Any], ...]
    relevance: list[np.ndarray] = field(default_factory=list)
    structures: list[Any] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def accuracy(self) -> float:
        """Mean test accuracy after the last round, in percent."""
        return 100 * self.metrics["mean_test_accuracy"]

    @property
    def trained(self) -> float:
        """The same before the last round's aggregation: after local epochs."""
        return 100 * self.metrics["trained_mean_test_accuracy"]


@dataclass(frozen=True)
class Bench:
    """How much to do, and with which data."""

    data: Path
    quick: bool
    seeds: tuple[int, ...]
    workers: int
    rounds: int | None
    methods: tuple[str, ...]

    def chosen(self, rows: Mapping[str, T]) -> dict[str, T]:
        """Return the rows whose names were asked for; all if none were."""
        return {
            name: each for name, each in rows.items() if not self.methods or name in self.methods
        }

    def scaled(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings with as much to do as was asked for."""
        scaled = dict(settings)
        if self.rounds:
            scaled["rounds"] = min(self.rounds, scaled["rounds"])
        if self.quick:
            scaled |= {"rounds": 2, "local_epochs": 1, "train_size": 20}
        return scaled

    def run(self, algorithm: str, settings: Mapping[str, Any], **options: Any) -> Outcome:
        """Run one method once."""
        settings = self.scaled(settings)
        config = {"data_dir": str(self.data), "workers": self.workers, "algorithm": algorithm}
        outcome = Outcome({}, ())

        def keep(done: Any) -> None:
            if "relevance" in done.records:
                outcome.relevance.append(done.records["relevance"])
            if "structure" in done.records:
                outcome.structures.append(done.records["structure"])

        start = time.perf_counter()
        result = run(config | settings | {"options": options}, on_round=keep)
        outcome.metrics, outcome.history = result.metrics, result.history
        outcome.seconds = time.perf_counter() - start
        return outcome

    def over_seeds(
        self, algorithm: str, settings: Mapping[str, Any], **options: Any
    ) -> list[Outcome]:
        """Run one method with each seed."""
        return [self.run(algorithm, {**settings, "seed": seed}, **options) for seed in self.seeds]


def spread(values: Iterable[float]) -> str:
    """Return mean ± standard deviation, or the value if there is one."""
    values = list(values)
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}"


def table(title: str, settings: Mapping[str, Any], bench: Bench, header: str) -> None:
    print(f"\n### {title}\n")
    print(", ".join(f"{key}={value}" for key, value in bench.scaled(settings).items()))
    print(f"(seeds {', '.join(map(str, bench.seeds))}{', QUICK' if bench.quick else ''})\n")
    names = [name.strip() for name in header.split("|")]
    print(f"| {' | '.join(names)} |\n|{'---|' * len(names)}", flush=True)


def row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


RING = {
    "dataset": "mnist",
    "partition": "ring:2",
    "clients": 10,
    "train_size": 200,
    "test_size": 100,
    "model": "lenet-5",
    "rounds": 20,
    "local_epochs": 5,
    "batch_size": 10,
    "lr": 0.01,
}

PAIRWISE = {"collaboration": "pairwise", "utility": "loss"}


def truth_of(bench: Bench, settings: Mapping[str, Any], seed: int) -> np.ndarray:
    data = federated_data(
        settings["dataset"],
        clients=settings["clients"],
        partition=settings["partition"],
        seed=seed,
        train_size=settings["train_size"],
        test_size=settings["test_size"],
        data_dir=bench.data,
    )
    counts = [np.bincount(c.train.targets, minlength=data.n_classes) for c in data.clients]
    return label_overlap(np.stack(counts))


def relevance(bench: Bench) -> None:
    """Who finds its relevant neighbours, and what that is worth."""
    table(
        "pFedSV finds the neighbours on a ring",
        RING,
        bench,
        "method | accuracy after aggregation | after the next local epochs | precision | recall"
        " | first round with both ≥ 0.95 | downloads per client, last round",
    )
    games: dict[str, dict[str, Any]] = {
        "pfedsv": {},
        "pfedsv, top-k order": {"order": "top-k"},
        "pfedsv, loss utility": {"utility": "loss"},
        "pfedsv, loss utility, explore": {"utility": "loss", "explore": 0.2},
        "pairwise, by loss": PAIRWISE,
    }
    for name, options in bench.chosen(games).items():
        outcomes = bench.over_seeds("pfedsv", RING, **options)
        found, first = [], []
        for seed, outcome in zip(bench.seeds, outcomes, strict=True):
            truth = truth_of(bench, RING, seed)
            each = [detection(matrix, truth) for matrix in outcome.relevance]
            found.append(each[-1])
            good = [t for t, d in enumerate(each, 1) if min(d.precision, d.recall) >= 0.95]
            first.append(str(good[0]) if good else "never")
        row(
            name,
            spread(outcome.accuracy for outcome in outcomes),
            spread(outcome.trained for outcome in outcomes),
            spread(d.precision for d in found),
            spread(d.recall for d in found),
            ", ".join(first),
            spread(np.mean(outcome.metrics["downloads"]) for outcome in outcomes),
        )
    for name in bench.chosen(dict.fromkeys(("fedavg", "fedavg-ft", "local"))):
        row(name, spread(o.accuracy for o in bench.over_seeds(name, RING)), *[""] * 5)


def pays(bench: Bench) -> None:
    """When collaboration pays: pFedSV against training alone."""
    cases = {
        "ring:2, 200 images": {},
        "ring:2, 40 images": {"train_size": 40},
        "ring:2, 20 images": {"train_size": 20},
        "ring:5, 200 images": {"partition": "ring:5"},
        "ring:5, 50 images": {"partition": "ring:5", "train_size": 50},
        "dirichlet:0.1, 50 images": {"partition": "dirichlet:0.1", "train_size": 50},
        "iid, 50 images": {"partition": "iid", "train_size": 50},
        "ring:5, 50 images, lr 0.05": {"partition": "ring:5", "train_size": 50, "lr": 0.05},
        "iid, 50 images, lr 0.05": {"partition": "iid", "train_size": 50, "lr": 0.05},
    }
    table(
        "When collaboration pays",
        RING,
        bench,
        "data | local | pfedsv after aggregation | pfedsv after the next local epochs"
        " | pfedsv, loss utility | its next local epochs | fedavg",
    )
    for name, changes in bench.chosen(cases).items():
        settings = RING | changes
        alone, average = (bench.over_seeds(a, settings) for a in ("local", "fedavg"))
        by_accuracy = bench.over_seeds("pfedsv", settings)
        by_loss = bench.over_seeds("pfedsv", settings, utility="loss")
        row(
            name,
            spread(o.accuracy for o in alone),
            spread(o.accuracy for o in by_accuracy),
            spread(o.trained for o in by_accuracy),
            spread(o.accuracy for o in by_loss),
            spread(o.trained for o in by_loss),
            spread(o.accuracy for o in average),
        )


def weights(bench: Bench) -> None:
    """Fig. 4: relevant clients are known; only the weights differ."""
    settings = RING | {"train_size": 50, "partition": "ring:3"}
    table(
        "Multiwise or pairwise weights, relevant clients told in advance",
        settings,
        bench,
        "weights | after aggregation | after the next local epochs",
    )
    rules: dict[str, dict[str, Any]] = {
        "multiwise": {},
        "multiwise, loss utility": {"utility": "loss"},
        "pairwise": PAIRWISE,
    }
    cases = {
        f"{name}, lr {lr}": (options, lr) for lr in (0.01, 0.05) for name, options in rules.items()
    }
    for name, (options, lr) in bench.chosen(cases).items():
        outcomes = bench.over_seeds("pfedsv", settings | {"lr": lr}, told=True, **options)
        row(name, spread(o.accuracy for o in outcomes), spread(o.trained for o in outcomes))


DOMAINS = {
    "dataset": "mt-sv-mm",
    "partition": "domains",
    "clients": 15,
    "train_size": 250,
    "test_size": 100,
    "model": "cffl-cnn-dropout",
    "rounds": 20,
    "local_epochs": 10,
    "batch_size": 10,
    "lr": 0.01,
    "momentum": 0.5,
}
"""What the program with the paper's network has by default; 200 of 250 images are trained on."""

METHODS = {
    "CFFL-COS": ("cffl", {"synergy": "cos"}),
    "CFFL-ICA": ("cffl", {"synergy": "ica"}),
    "IFCA": ("ifca", {}),
    "FedAvg": ("fedavg", {}),
    "local": ("local", {}),
    "domain (oracle)": ("domain", {}),
}


def cffl(bench: Bench) -> None:
    """Coalitions against the true domains."""
    table(
        "CFFL against the three domains",
        DOMAINS,
        bench,
        "method | accuracy | adjusted Rand index, last round | mixes no domains | coalitions"
        " | structure, last round of the first seed",
    )
    truth = true_structure(["mnist"] * 5 + ["svhn"] * 5 + ["mnist-m"] * 5)
    for name, (algorithm, options) in bench.chosen(METHODS).items():
        outcomes = bench.over_seeds(algorithm, DOMAINS, **options)
        last = [outcome.structures[-1] for outcome in outcomes if outcome.structures]
        row(
            name,
            spread(outcome.accuracy for outcome in outcomes),
            spread(adjusted_rand_index(s, truth) for s in last) if last else "",
            f"{sum(refines(s, truth) for s in last)} of {len(last)}" if last else "",
            spread(len(s) for s in last) if last else "",
            " ".join(str(list(block)) for block in last[0]) if last else "",
        )


def attacks(bench: Bench) -> None:
    """Three adversaries on SVHN, numbered 15 to 17 here, 16 to 18 in the paper."""
    settings = DOMAINS | {
        "clients": 18,
        "partition": "domains:mnist=5,svhn=5,mnist-m=5,svhn=3",
    }
    honest, adversaries = range(15), (15, 16, 17)
    table(
        "CFFL-COS with three adversaries",
        settings,
        bench,
        "attack | accuracy of the honest | adversaries alone among themselves, last round"
        " | rounds in which they were | adjusted Rand index of the honest",
    )
    truth = true_structure(["mnist"] * 5 + ["svhn"] * 5 + ["mnist-m"] * 5)
    who = ",".join(map(str, adversaries))
    cases: dict[str, dict[str, Any]] = {
        "none (15 clients)": {**DOMAINS, "poison": ()},
        "untargeted": {**settings, "poison": (f"wrong-labels:{who}",)},
        "targeted": {**settings, "poison": (f"swap-1-7:{who}",)},
    }
    for name, case in bench.chosen(cases).items():
        outcomes = bench.over_seeds("cffl", case, synergy="cos")
        apart = [[are_separated(s, adversaries) for s in o.structures] for o in outcomes]
        row(
            name,
            spread(outcome.accuracy for outcome in outcomes),
            f"{sum(a[-1] for a in apart)} of {len(apart)}" if case["poison"] else "",
            ", ".join(f"{sum(a)} of {len(a)}" for a in apart) if case["poison"] else "",
            spread(
                adjusted_rand_index(among(o.structures[-1], list(honest)), truth) for o in outcomes
            ),
        )


def fedc2i(bench: Bench) -> None:
    """Influence on five domains."""
    settings = {
        "dataset": "digit-5-32",
        "partition": "domains",
        "clients": 5,
        "train_size": 200,
        "test_size": 200,
        "validation_share": 0.0,
        "model": "lenet-64",
        "rounds": 10,
        "local_epochs": 2,
        "batch_size": 32,
        "optimizer": "adam",
        "lr": 0.001,
        "evaluate_every": 10,
    }
    table("FedC²I on Digit-5, 20 images per class", settings, bench, "method | mean | per domain")
    methods: dict[str, tuple[str, dict[str, Any]]] = {
        "FedC²I": ("fedc2i", {}),
        **{f"FedC²I, γ = {g:g}": ("fedc2i", {"gamma": g}) for g in (0, 0.5, 1, 2, 10)},
        "FedC²I −λ": ("fedc2i", {"variant": "client"}),
        "FedC²I Λ/l": ("fedc2i", {"variant": "class-local"}),
        "FedC²I Λ/g": ("fedc2i", {"variant": "class-global"}),
        "FedAvg": ("fedavg", {}),
        "local": ("local", {}),
    }
    for name, (algorithm, options) in bench.chosen(methods).items():
        outcomes = bench.over_seeds(algorithm, settings, **options)
        domains = np.mean([o.metrics["per_client_test_accuracy"] for o in outcomes], axis=0)
        row(
            name,
            spread(o.accuracy for o in outcomes),
            " ".join(f"{100 * accuracy:.1f}" for accuracy in domains),
        )


def fedacs(bench: Bench) -> None:
    """Attention with little data."""
    settings = {
        "dataset": "fashion-mnist",
        "partition": "dirichlet:0.5",
        "clients": 20,
        "train_size": 50,
        "test_size": 100,
        "validation_share": 0.0,
        "model": "lenet-5",
        "rounds": 30,
        "local_epochs": 5,
        "batch_size": 10,
        "lr": 0.01,
        "evaluate_every": 5,
    }
    table(
        "FedACS with 50 images per client",
        settings,
        bench,
        "method | accuracy | collaborators, last round",
    )
    methods: dict[str, tuple[str, dict[str, Any]]] = {
        "FedACS": ("fedacs", {}),
        "FedACS, p = 0.8": ("fedacs", {"p": 0.8}),
        "FedACS, δ = −∞": ("fedacs", {"threshold": float("-inf")}),
        "FedAvg": ("fedavg", {}),
        "FedAvg, fine-tuned": ("fedavg-ft", {}),
        "local": ("local", {}),
    }
    for name, (algorithm, options) in bench.chosen(methods).items():
        outcomes = bench.over_seeds(algorithm, settings, **options)
        row(
            name,
            spread(o.accuracy for o in outcomes),
            spread(np.mean(o.metrics["collaborators"]) for o in outcomes)
            if "collaborators" in outcomes[0].metrics
            else "",
        )


def cost(bench: Bench) -> None:
    """CPU seconds of each task of a round, in one process."""
    settings = RING | {"train_size": 240, "validation_share": 1 / 6, "rounds": 3, "workers": 1}
    domains = DOMAINS | {"rounds": 2, "workers": 1}
    start = time.process_time()
    solvers.solve([[0.0, 1, -2, 1], [1, 0, 1, 1], [-2, 1, 0, 1], [1, 1, 1, 0]])
    loading = time.process_time() - start
    table(
        "CPU seconds per round (10 clients, 200 training and 40 validation images; CFFL: "
        f"{domains['clients']} clients, τ = {domains['local_epochs']})",
        settings,
        bench,
        "method | data | training | beyond training | ratio | solving, share of a round",
    )
    for name, options, case in [
        ("fedavg", {}, settings),
        ("pfedsv", {"dynamic": False}, settings),
        ("pfedsv", {}, settings),
        ("fedc2i", {}, settings),
        ("fedacs", {}, settings),
        ("fedavg", {}, domains),
        ("cffl", {"synergy": "cos"}, domains),
        ("cffl", {"synergy": "ica"}, domains),
    ]:
        spent, outcome, total = _timed(bench, name, case, options)
        training = spent.pop("train")
        measuring = spent.pop("evaluate", 0) + spent.pop("describe", 0) + spent.pop("deploy", 0)
        rounds = len(outcome.history)
        solving = spent.pop("solve", 0.0)
        beyond = sum(spent.values()) + solving
        row(
            f"{name} {' '.join(f'{k}={v}' for k, v in options.items())}".strip(),
            case["dataset"],
            f"{training / rounds:.2f}",
            f"{beyond / rounds:.2f}",
            f"{beyond / training:.2f}",
            f"{solving / (total - measuring):.4f}" if solving else "",
        )
    print(
        f"\nThe first solve of a process loads compiled code ({loading:.1f} CPU seconds, left out)."
    )


def _timed(
    bench: Bench, name: str, settings: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[dict[str, float], Outcome, float]:
    """Run in this process, and return CPU seconds by task, the outcome and all CPU seconds."""
    spent: dict[str, float] = defaultdict(float)

    def watched(function: Callable[..., Any], name_of: Callable[..., str]) -> Callable[..., Any]:
        def timed(*arguments: Any, **more: Any) -> Any:
            start = time.process_time()
            try:
                return function(*arguments, **more)
            finally:
                spent[name_of(*arguments)] += time.process_time() - start

        return timed

    answer, solve = local.answer, cffl_method.solve
    local.answer = watched(answer, lambda site, task, *_: task.name)
    cffl_method.solve = watched(solve, lambda *_: "solve")
    start = time.process_time()
    try:
        outcome = bench.run(name, settings, **options)
    finally:
        local.answer, cffl_method.solve = answer, solve
    return dict(spent), outcome, time.process_time() - start


SECTIONS: dict[str, Callable[[Bench], None]] = {
    each.__name__: each for each in (relevance, pays, weights, cffl, attacks, fedc2i, fedacs, cost)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", help=f"of: {', '.join(SECTIONS)}; all if none")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--quick", action="store_true", help="two rounds of next to no data")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds, from 0")
    parser.add_argument("--rounds", type=int, help="stop after this many rounds")
    parser.add_argument("--methods", default="", help="only these rows, with semicolons between")
    parser.add_argument("--workers", type=int, default=0)
    given = parser.parse_args()
    unknown = set(given.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"there is no section {min(unknown)}; there are: {', '.join(SECTIONS)}")
    seeds = tuple(range(1 if given.quick else given.seeds))
    methods = tuple(name.strip() for name in given.methods.split(";") if name.strip())
    bench = Bench(given.data, given.quick, seeds, given.workers, given.rounds, methods)
    for name in given.sections or SECTIONS:
        start = time.perf_counter()
        SECTIONS[name](bench)
        print(f"\n{name}: {time.perf_counter() - start:.0f} s of wall time")


if __name__ == "__main__":
    main()
