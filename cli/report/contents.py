"""Which charts a report of some runs has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cli.report.charts import (
    Bars,
    Chart,
    Dots,
    Heatmap,
    Lines,
    Memberships,
    Network,
    steady_numbers,
)
from cli.report.run_data import RunData

MATRIX_TITLES = {
    "relevance": "Who is relevant to whom",
    "synergy": "Synergies",
    "influence": "Influence",
}


def charts_of(runs: Sequence[RunData]) -> list[Chart]:
    """Return the charts: what all runs share first, then what each has of its own."""
    charts: list[Chart] = [*_curves(runs), _per_client(runs), *_traffic(runs), *_privacy(runs)]
    for number, run in enumerate(runs):
        tag = "" if len(runs) == 1 else f": {run.name}"
        key = "" if len(runs) == 1 else f"-{number + 1}"
        if not any(_same_split(run, other) for other in runs[:number]):
            charts += _split(run, key, tag if _splits_differ(runs) else "")
        for name, frames in run.arrays.items():
            title = MATRIX_TITLES.get(name, name.capitalize())
            charts.append(_heatmap(run, f"{name}{key}", title + tag, frames))
        charts += _coalitions(run, key, tag)
    return charts


def _curves(runs: Sequence[RunData]) -> list[Chart]:
    def series(metric: str) -> list[tuple[str, list[float], list[float]]]:
        found = []
        for run in runs:
            lines = [line for line in run.history if line.get(metric) is not None]
            if lines:
                xs = [float(line["round"]) for line in lines]
                found.append((run.name, xs, [float(line[metric]) for line in lines]))
        return found

    titles = {
        "mean_test_accuracy": ("accuracy", "Mean test accuracy"),
        "worst_client_accuracy": ("worst-client", "Accuracy of the worst client"),
        "mean_test_loss": ("test-loss", "Mean test loss"),
        "train_loss": ("train-loss", "Training loss"),
    }
    return [
        Lines(name, title, "round", title.lower(), series(metric))
        for metric, (name, title) in titles.items()
        if series(metric)
    ]


def _per_client(runs: Sequence[RunData]) -> Bars:
    most = max(run.n_clients for run in runs)
    series = []
    for run in runs:
        last = run.evaluated[-1]["per_client_test_accuracy"] if run.evaluated else []
        series.append((run.name, [*last, *[None] * (most - len(last))]))
    return Bars(
        "per-client",
        "Test accuracy of each client",
        "accuracy",
        [str(client) for client in range(most)],
        series,
    )


def _traffic(runs: Sequence[RunData]) -> list[Chart]:
    series: list[tuple[str, list[float | None]]] = [
        (run.name, [float(sum(line[way] for line in run.history)) for way in ("up", "down")])
        for run in runs
        if all("up" in line for line in run.history)
    ]
    if not series:
        return []
    return [
        Bars(
            "traffic",
            "Model parameters sent",
            "parameters",
            ["to the server", "to clients"],
            series,
        )
    ]


def _privacy(runs: Sequence[RunData]) -> list[Chart]:
    series = []
    for run in runs:
        lines = [line for line in run.history if line.get("epsilon") is not None]
        if lines:
            xs = [float(line["round"]) for line in lines]
            series.append((run.name, xs, [float(line["epsilon"]) for line in lines]))
    return [Lines("privacy", "Privacy spent", "round", "ε", series)] if series else []


def _split(run: RunData, key: str, tag: str) -> list[Chart]:
    if run.clients is None:
        return []
    counts = run.clients.labels.T.astype(float)
    return [
        Dots(
            f"split{key}",
            f"Training images by label and client{tag}",
            "client",
            "label",
            [str(label) for label in range(counts.shape[0])],
            _client_names(run),
            counts,
        )
    ]


def _same_split(run: RunData, other: RunData) -> bool:
    if run.clients is None or other.clients is None:
        return False
    return (
        np.array_equal(run.clients.labels, other.clients.labels)
        and run.clients.domains == other.clients.domains
        and run.clients.poisoned == other.clients.poisoned
    )


def _splits_differ(runs: Sequence[RunData]) -> bool:
    return not all(_same_split(run, runs[0]) for run in runs)


def _client_names(run: RunData) -> list[str]:
    names = [str(client) for client in range(run.n_clients)]
    if run.clients is None:
        return names
    notes = [
        " ".join(filter(None, (domain, "poisoned" if poisoned else "")))
        for domain, poisoned in zip(run.clients.domains, run.clients.poisoned, strict=True)
    ]
    return [f"{name} {note}".strip() for name, note in zip(names, notes, strict=True)]


def _heatmap(run: RunData, name: str, title: str, frames: NDArray[np.float64]) -> Heatmap:
    rounds = [int(line["round"]) for line in run.history][: len(frames)]
    truth = None if run.clients is None else run.clients.related()
    return Heatmap(name, title, _client_names(run), frames, rounds, truth)


def _coalitions(run: RunData, key: str, tag: str) -> list[Chart]:
    if not run.structures:
        return []
    rounds = [number for number, _ in run.structures]
    numbers = steady_numbers([labels for _, labels in run.structures])
    names = _client_names(run)
    charts: list[Chart] = [
        Memberships(f"coalitions{key}", f"Coalitions over the rounds{tag}", names, rounds, numbers)
    ]
    matrices = run.arrays.get("synergy", run.arrays.get("relevance"))
    if matrices is not None and np.isfinite(matrices[-1]).any():
        last = np.nan_to_num(matrices[-1])
        weights = (last + last.T) / 2
        np.fill_diagonal(weights, 0.0)
        charts.append(
            Network(
                f"graph{key}",
                f"Synergies, coloured by coalition{tag}",
                names,
                weights,
                numbers[:, -1],
            )
        )
    return charts
