"""Scores of runs: by metric, by domain, and against a baseline; read without torch."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coalitions.errors import InvalidInputError, did_you_mean
from coalitions.files.opening import load_json
from coalitions.files.writing import write_json
from learners.measures.metrics import LOSS, lower_is_better

# ----------------------------------------------------------------------------------------
# What a run scored by a metric: its mean and each client's, accuracy unless another is named.

ACCURACY = "accuracy"

_OLDEST = {
    ACCURACY: ("mean_test_accuracy", "per_client_test_accuracy"),
    LOSS: ("mean_test_loss", "per_client_test_loss"),
}
"""Where a round's line has the metrics that every run has."""


@dataclass(frozen=True)
class RunScore:
    """A metric on the clients' own test data; a client without a figure has None."""

    mean: float
    per_client: tuple[float | None, ...]
    lower_is_better: bool = False

    @property
    def worst(self) -> float | None:
        """The figure of the client that is worst off; None if clients have none."""
        known = [figure for figure in self.per_client if figure is not None]
        return (max if self.lower_is_better else min)(known, default=None)

    @property
    def gain(self) -> float:
        """The mean such that more is better."""
        return -self.mean if self.lower_is_better else self.mean


def main_metric(line: Mapping[str, Any]) -> str:
    """Return what a run is judged by: the first of its metrics, accuracy if it names none.

    Examples
    --------
    >>> main_metric({"mean_test_accuracy": None, "metrics": {"rmse": {"mean": 1.0}}})
    'rmse'
    """
    return next(iter(line.get("metrics") or {}), ACCURACY)


def score_of(line: Mapping[str, Any], metric: str = ACCURACY) -> RunScore:
    """Return what a run scored, from its result or the line of an evaluated round.

    Examples
    --------
    >>> score_of({"mean_test_accuracy": 0.5, "per_client_test_accuracy": [0.25, 0.75]}).mean
    0.5
    >>> score_of({"metrics": {"auroc": {"mean": 0.9, "per_client": [0.9]}}}, "auroc").per_client
    (0.9,)
    """
    metrics = line.get("metrics") or {}
    if metric in metrics:
        mean, clients = metrics[metric]["mean"], metrics[metric]["per_client"]
    elif metric in _OLDEST:
        mean, clients = (line.get(key) for key in _OLDEST[metric])
    else:
        mean, clients = None, None
    if mean is None:
        known = [
            *metrics,
            *(name for name, keys in _OLDEST.items() if line.get(keys[0]) is not None),
        ]
        raise InvalidInputError(
            f"the runs have no metric {metric!r}; {did_you_mean(metric, known)}there are:"
            f" {', '.join(dict.fromkeys(known))}"
        )
    higher = metrics.get(metric, {}).get("higher_is_better")  # a run's own metric says so itself
    lower = lower_is_better(metric) if higher is None else not higher
    return RunScore(float(mean), tuple(clients or ()), lower)


def scores_of_clients(line: Mapping[str, Any], metric: str = ACCURACY) -> tuple[float | None, ...]:
    """Return each client's figure in the line of an evaluated round; none if it does not say."""
    figures = (line.get("metrics") or {}).get(metric)
    if figures is not None:
        return tuple(figures["per_client"])
    return tuple(line.get(_OLDEST[metric][1]) or ()) if metric in _OLDEST else ()


# ----------------------------------------------------------------------------------------
# How good a method is in each domain: means over the domain's honest clients.


def domain_means(
    figures: Sequence[float | None], domains: Sequence[str], poisoned: Sequence[bool]
) -> dict[str, float]:
    """Return the mean figure of the honest clients of every domain.

    A client without a figure is left out, and so is a domain where no honest client has one.

    Parameters
    ----------
    figures
        Each client's figure, such as its accuracy; None where it has none.
    domains
        Each client's domain; ``""`` where there are none.
    poisoned
        Whether each client's data are poisoned.

    Examples
    --------
    >>> domain_means([0.5, 1.0, 0.25, 0.0], ["a", "a", "b", "b"], [False, False, False, True])
    {'a': 0.75, 'b': 0.25}
    """
    found: dict[str, list[float]] = {}
    for figure, domain, liar in zip(figures, domains, poisoned, strict=True):
        if not liar and figure is not None:
            found.setdefault(domain, []).append(figure)
    return {domain: statistics.fmean(each) for domain, each in found.items()}


# ----------------------------------------------------------------------------------------
# The row that a comparison's differences are taken from, kept beside its runs for reports.

FILE = "comparison.json"


def record_baseline(folder: Path, baseline: str | None) -> None:
    """Keep which row was chosen; None, the best one, is kept where another was chosen before."""
    path = folder / FILE
    if baseline is not None or path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, {"baseline": baseline})


def recorded_baseline(folder: Path) -> str | None:
    """Return the row that was chosen; None if there is none."""
    path = folder / FILE
    if not path.is_file():
        return None
    document = load_json(path.read_bytes(), str(path))
    baseline = document.get("baseline") if isinstance(document, dict) else 0
    if not isinstance(baseline, str | None):
        raise InvalidInputError(f'{path}: expected an object with "baseline": the name of a row')
    return None if document.get("baseline_chosen") is False else baseline
