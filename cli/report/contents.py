"""The sections of a report, as data: tables and charts, and the agreement with the true groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cli.report.charts import (
    BarChart,
    Chart,
    ChartTable,
    ColumnChart,
    Curve,
    Dots,
    Heatmap,
    Lines,
    Memberships,
    NetworkChart,
    steady_numbers,
)
from cli.report.methods import Method
from coalitions.structure import CoalitionStructure
from coalitions.structures.partitions import adjusted_rand_index
from learners.data.ground_truth import detection
from learners.measures.scores import ACCURACY, main_metric, score_of, scores_of_clients
from learners.runs.reading import RunRecord
from learners.settings.declared_options import declared_methods

# ----------------------------------------------------------------------------------------
# How near a method comes to what the data say: numbers over rounds.

TITLES = {
    "index": ("agreement", "Agreement of the coalitions with the truth", "adjusted Rand index"),
    "precision": (
        "precision",
        "Precision: how many of the clients found relevant are relevant",
        "precision",
    ),
    "recall": ("recall", "Recall: how many of the relevant clients are found", "recall"),
}
"""Name, title and unit of the chart of each number."""


NO_TRUTH = (
    "the data do not say which of these clients belong together, so there is no truth to compare"
    " with"
)


def truth_of(run: RunRecord) -> tuple[NDArray[np.bool_] | None, str]:
    """Return who is truly relevant to whom, and why, in words.

    Labels in common tell something where a partition dealt them out. Clients that came with data
    of their own may have all labels and nothing in common: there is a truth only if they have
    groups.
    """
    clients = run.clients
    if clients is None:
        return None, ""
    if any(clients.domains):
        words = "the same group" if run.natural else "the same domain"
        if any(clients.poisoned):
            words += ", both poisoned or both not"
        return clients.related(), words
    if run.natural:
        return None, NO_TRUTH
    if clients.labels.shape[1] == 0:  # targets are numbers
        return None, ""
    return clients.related(), "a label in common"


def agreement(run: RunRecord) -> dict[str, dict[int, float]]:
    """Return the numbers of `TITLES` that a run has, by round.

    The adjusted Rand index is for coalitions, where the truth is a partition, too: 1 is equal, 0 is
    what chance gives. Precision and recall are for relevance: j is found relevant to i if its
    relevance is positive.
    """
    truth, _ = truth_of(run)
    if truth is None:
        return {}
    found: dict[str, dict[int, float]] = {}
    whole = _partition(truth)
    if whole is not None and run.structures:
        found["index"] = {
            number: adjusted_rand_index(_structure(labels), whole)
            for number, labels in run.structures
        }
    frames = run.arrays.get("relevance", ())
    rounds = [int(line["round"]) for line in run.history]
    for number, frame in zip(rounds, frames, strict=False):
        if not np.isfinite(frame).any():
            continue
        share = detection(np.nan_to_num(frame), truth)
        found.setdefault("precision", {})[number] = share.precision
        found.setdefault("recall", {})[number] = share.recall
    return found


def _partition(truth: NDArray[np.bool_]) -> CoalitionStructure | None:
    """Return the structure that a relation is; None if it is not transitive."""
    related = truth.astype(np.int64)
    if not np.array_equal(related @ related > 0, truth):
        return None
    return CoalitionStructure.from_labels(truth.argmax(axis=1))


def _structure(labels: Sequence[int] | NDArray[np.int64]) -> CoalitionStructure:
    """Return the structure of a round; whoever is in no coalition is alone."""
    numbers = np.array(labels)
    alone = numbers < 0
    numbers[alone] = numbers.max(initial=0) + 1 + np.arange(alone.sum())
    return CoalitionStructure.from_labels(numbers)


# ----------------------------------------------------------------------------------------
# Which charts a report of some runs has.

MATRIX_TITLES = {
    "relevance": "Who is relevant to whom",
    "synergy": "Synergies",
    "influence": "Influence",
}


def _matrix_title(run: RunRecord, name: str) -> str:
    title = MATRIX_TITLES.get(name, name.capitalize())
    measure = _measures().get(str(run.config["algorithm"]), "") if name == "relevance" else ""
    return f"{title} ({measure})" if measure else title


@cache
def _measures() -> dict[str, str]:
    """Return what each method takes for relevance, as it says of itself."""
    methods = declared_methods().items()
    return {name: getattr(method, "relevance_is", "") for name, method in methods}


FEW = 4
"""So many methods stand side by side as bars; more become a table of shades."""


@dataclass(frozen=True)
class Section:
    """Charts that belong together; `title` is empty where it is all about the only run."""

    title: str
    charts: tuple[Chart, ...]


def sections_of(methods: Sequence[Method]) -> list[Section]:
    """Return the charts: what all runs share first, then what each run has of its own."""
    runs = [run for method in methods for run in method.runs]
    shared: list[Chart] = [
        *_curves(methods),
        *_agreements(methods),
        _per_client(methods, runs),
        *_spread(methods),
        *_traffic(methods),
        *_splits(runs),
    ]
    sections = [Section("", tuple(shared))]
    for number, run in enumerate(runs):
        key = "" if len(runs) == 1 else f"-{number + 1}"
        charts = [
            _heatmap(run, f"{name}{key}", _matrix_title(run, name), frames)
            for name, frames in run.arrays.items()
        ]
        own = (*charts, *_coalitions(run, key))
        if own:
            sections.append(Section("" if len(runs) == 1 else run.name, own))
    return sections


def _curves(methods: Sequence[Method]) -> list[Chart]:
    titles = {
        "mean_test_accuracy": ("accuracy", "Mean test accuracy", "accuracy"),
        "worst_client_accuracy": ("worst-client", "Accuracy of the worst client", "accuracy"),
        "mean_test_loss": ("test-loss", "Mean test loss", "loss"),
        "train_loss": ("train-loss", "Training loss", "loss"),
        "epsilon": ("privacy", "Privacy spent", "ε"),
    }
    charts: list[Chart] = []
    for metric, (name, title, unit) in titles.items():
        found = [_curve(number, method, metric) for number, method in enumerate(methods)]
        curves = [curve for curve in found if curve is not None]
        if curves:
            charts.append(Lines(name, title, "round", unit, curves))
    lines = [line for method in methods for run in method.runs for line in run.evaluated]
    named = dict.fromkeys(name for line in lines for name in line.get("metrics") or {})
    asked: list[Chart] = []
    for metric in named:  # those of the task besides accuracy
        if metric != ACCURACY:
            found = [_metric_curve(k, method, metric) for k, method in enumerate(methods)]
            there = [curve for curve in found if curve is not None]
            if there:
                title = f"Mean test {metric}"
                asked.append(Lines(f"metric-{metric}", title, "round", metric, there))
    # What the runs are judged by comes first.
    return charts + asked if next(iter(named), ACCURACY) == ACCURACY else asked + charts


def _metric_curve(number: int, method: Method, metric: str) -> Curve | None:
    """Return the mean over clients of a metric over rounds, the mean over seeds."""
    seeds = []
    for run in method.runs:
        told = {
            int(line["round"]): (line.get("metrics") or {}).get(metric, {}).get("mean")
            for line in run.evaluated
        }
        seeds.append({t: float(value) for t, value in told.items() if value is not None})
    return _mean_curve(number, method.name, seeds)


def _curve(number: int, method: Method, metric: str) -> Curve | None:
    """Return a metric over rounds, the mean over seeds of the rounds that all of them have."""
    seeds = [
        {
            int(line["round"]): float(line[metric])
            for line in run.history
            if line.get(metric) is not None
        }
        for run in method.runs
    ]
    return _mean_curve(number, method.name, seeds)


def _mean_curve(number: int, name: str, seeds: Sequence[Mapping[int, float]]) -> Curve | None:
    """Return the mean over seeds of a number by round, with their range."""
    rounds = sorted(set.intersection(*map(set, seeds)))
    if not rounds:
        return None
    values = np.array([[seed[t] for t in rounds] for seed in seeds])
    spread = (values.min(axis=0), values.max(axis=0)) if len(seeds) > 1 else (None, None)
    return Curve(number, name, rounds, values.mean(axis=0), *spread)


def _agreements(methods: Sequence[Method]) -> list[Chart]:
    """Return how near the methods come to the truth, as numbers over rounds."""
    found = [[agreement(run) for run in method.runs] for method in methods]
    charts: list[Chart] = []
    for key, (name, title, unit) in TITLES.items():
        curves = [
            _mean_curve(number, method.name, [each[key] for each in runs])
            for number, (method, runs) in enumerate(zip(methods, found, strict=True))
            if all(key in each for each in runs)
        ]
        there = [curve for curve in curves if curve is not None]
        if there:  # 1 is the best that each of these numbers can be
            lowest = min([0.0, *(min(map(float, curve.y)) for curve in there)])
            charts.append(Lines(name, title, "round", unit, there, (lowest, 1.0)))
    return charts


def _spread(methods: Sequence[Method]) -> list[Chart]:
    """Return how far apart a client's scores are over seeds, all methods on one scale of colours.

    Only where clients are the same ones in every seed: a client of another seed is another client.
    """
    several = [method for method in methods if len(method.runs) > 1]
    told = [run.clients for method in several for run in method.runs]
    names = [() if each is None else tuple(each.names) for each in told]
    if not several or not names[0] or not all(names[0]) or len(set(names)) > 1:
        return []
    rows = []
    for method in several:
        lines = [run.evaluated[-1] for run in method.runs if run.evaluated]
        if len(lines) < len(method.runs):
            return []
        metric = main_metric(lines[0])
        scores = [score_of(line, metric).per_client for line in lines]
        if {len(each) for each in scores} != {len(names[0])}:
            return []
        rows.append(np.ptp(np.array(scores, np.float64), axis=0))
    title = "Spread over seeds of each client's score (highest − lowest)"
    return [
        ChartTable(
            "spread", title, "client", [each.name for each in several], names[0], np.array(rows)
        )
    ]


def _per_client(methods: Sequence[Method], runs: Sequence[RunRecord]) -> Chart:
    most = max(run.n_clients for run in runs)
    clients = [str(client) for client in range(most)]
    called = {tuple(run.clients.names) for run in runs if run.clients is not None}
    if len(called) == 1 and all(*called) and len(*called) == most:  # the same ones in all runs
        clients = list(*called)
    metric = next((main_metric(run.evaluated[-1]) for run in runs if run.evaluated), ACCURACY)
    scores = []
    for run in runs:
        last = () if not run.evaluated else scores_of_clients(run.evaluated[-1], metric)
        scores.append([*last, *[None] * (most - len(last))])
    about = ("per-client", f"Test {metric} of each client")
    if len(runs) <= FEW and len(runs) == len(methods):
        series = [(k, run.name, scores[k]) for k, run in enumerate(runs)]
        return ColumnChart(*about, "client", metric, clients, series)
    values = np.array(scores, np.float64)  # None becomes NaN
    return ChartTable(*about, "client", [run.name for run in runs], clients, values)


def _traffic(methods: Sequence[Method]) -> list[Chart]:
    told = [
        method
        for method in methods
        if all("up" in line for run in method.runs for line in run.history)
    ]
    if not told:
        return []

    def sent(way: str) -> list[float]:
        return [
            float(np.mean([sum(line[way] for line in run.history) for run in method.runs]))
            for method in told
        ]

    series = [("to the server", sent("up")), ("to clients", sent("down"))]
    names = [method.name for method in told]
    return [BarChart("traffic", "Model parameters sent", "parameters", names, series)]


def _splits(runs: Sequence[RunRecord]) -> list[Chart]:
    """Return the data split of every run, equal ones once."""
    charts: list[Chart] = []
    several = not all(_same_split(run, runs[0]) for run in runs)
    for number, run in enumerate(runs):
        if any(_same_split(run, other) for other in runs[:number]):
            continue
        key = f"-{number + 1}" if several else ""
        charts += _split(run, key, f": {_whose_split(run, runs)}" if several else "")
    return charts


def _whose_split(run: RunRecord, runs: Sequence[RunRecord]) -> str:
    """Name a split after its seed, if that is what all its runs and no others have."""
    seed = run.config["seed"]
    if all(_same_split(run, other) == (other.config["seed"] == seed) for other in runs):
        return f"seed {seed}"
    return run.name


def _split(run: RunRecord, key: str, tag: str) -> list[Chart]:
    if run.clients is None or run.clients.labels.shape[1] == 0:  # targets are numbers
        return []
    counts = run.clients.labels.T.astype(float)
    return [
        Dots(
            f"split{key}",
            f"Training samples by label and client{tag}",
            "client",
            "label",
            _label_names(run, len(counts)),
            _client_names(run),
            counts,
        )
    ]


def _label_names(run: RunRecord, n_labels: int) -> list[str]:
    """Return what the data call their labels, or numbers."""
    if len(run.classes) == n_labels:
        return list(run.classes)
    return [str(label) for label in range(n_labels)]


def _same_split(run: RunRecord, other: RunRecord) -> bool:
    if run.clients is None or other.clients is None:
        return False
    return (
        np.array_equal(run.clients.labels, other.clients.labels)
        and run.clients.domains == other.clients.domains
        and run.clients.poisoned == other.clients.poisoned
    )


def _client_names(run: RunRecord) -> list[str]:
    names = [str(client) for client in range(run.n_clients)]
    if run.clients is None:
        return names
    names = [name or number for name, number in zip(run.clients.names, names, strict=True)]
    notes = [
        " ".join(filter(None, (domain, "poisoned" if poisoned else "")))
        for domain, poisoned in zip(run.clients.domains, run.clients.poisoned, strict=True)
    ]
    return [f"{name} {note}".strip() for name, note in zip(names, notes, strict=True)]


def _heatmap(run: RunRecord, name: str, title: str, frames: NDArray[np.float64]) -> Heatmap:
    rounds = [int(line["round"]) for line in run.history][: len(frames)]
    return Heatmap(name, title, _client_names(run), frames, rounds, *truth_of(run))


def _coalitions(run: RunRecord, key: str) -> list[Chart]:
    if not run.structures:
        return []
    rounds = [number for number, _ in run.structures]
    numbers = steady_numbers([labels for _, labels in run.structures])
    names = _client_names(run)
    charts: list[Chart] = [
        Memberships(f"coalitions{key}", "Coalitions over the rounds", names, rounds, numbers)
    ]
    matrices = run.arrays.get("synergy", run.arrays.get("relevance"))
    if matrices is not None and np.isfinite(matrices[-1]).any():
        last = np.nan_to_num(matrices[-1])
        weights = (last + last.T) / 2
        np.fill_diagonal(weights, 0.0)
        charts.append(
            NetworkChart(
                f"graph{key}",
                "Synergies, coloured by coalition",
                names,
                weights,
                numbers[:, -1],
            )
        )
    return charts
