"""What a run scored by a metric: its mean and each client's, accuracy unless another is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coalitions.errors import InvalidInputError, did_you_mean

ACCURACY = "accuracy"

LOWER_IS_BETTER = frozenset({"loss", "log-loss", "rmse", "mae", "calibration-error"})
"""Metrics that are errors."""

_OLDEST = {
    ACCURACY: ("mean_test_accuracy", "per_client_test_accuracy"),
    "loss": ("mean_test_loss", "per_client_test_loss"),
}
"""Where a round's line has the metrics that every run has."""


@dataclass(frozen=True)
class Score:
    """A metric on the clients' own test data; a client without a figure has None."""

    mean: float
    per_client: tuple[float | None, ...]

    def worst(self, metric: str) -> float | None:
        """Return the figure of the client that is worst off; None if clients have none."""
        there = [each for each in self.per_client if each is not None]
        return (max if metric in LOWER_IS_BETTER else min)(there, default=None)


def main_metric(line: Mapping[str, Any]) -> str:
    """Return what a run is judged by: accuracy, or the first metric of a task that has none.

    Examples
    --------
    >>> main_metric({"mean_test_accuracy": None, "metrics": {"rmse": {"mean": 1.0}}})
    'rmse'
    """
    if line.get("mean_test_accuracy") is not None:
        return ACCURACY
    return next(iter(line.get("metrics") or {}), ACCURACY)


def score_of(line: Mapping[str, Any], metric: str = ACCURACY) -> Score:
    """Return what a run scored, from its result or the line of an evaluated round.

    Examples
    --------
    >>> score_of({"mean_test_accuracy": 0.5, "per_client_test_accuracy": [0.25, 0.75]}).mean
    0.5
    >>> score_of({"metrics": {"auroc": {"mean": 0.9, "per_client": [0.9]}}}, "auroc").per_client
    (0.9,)
    """
    told = line.get("metrics") or {}
    if metric in told:
        mean, clients = told[metric]["mean"], told[metric]["per_client"]
    elif metric in _OLDEST:
        mean, clients = (line.get(key) for key in _OLDEST[metric])
    else:
        mean, clients = None, None
    if mean is None:
        there = [*told, *(name for name, keys in _OLDEST.items() if line.get(keys[0]) is not None)]
        raise InvalidInputError(
            f"the runs have no metric {metric!r}; {did_you_mean(metric, there)}there are:"
            f" {', '.join(dict.fromkeys(there))}"
        )
    return Score(float(mean), tuple(clients or ()))
