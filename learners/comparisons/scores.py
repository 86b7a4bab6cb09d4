"""What a run scored by a metric: its mean and each client's, accuracy unless another is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coalitions.errors import InvalidInputError, did_you_mean
from learners.measures.metrics import LOSS, lower_is_better

ACCURACY = "accuracy"

_OLDEST = {
    ACCURACY: ("mean_test_accuracy", "per_client_test_accuracy"),
    LOSS: ("mean_test_loss", "per_client_test_loss"),
}
"""Where a round's line has the metrics that every run has."""


@dataclass(frozen=True)
class Score:
    """A metric on the clients' own test data; a client without a figure has None."""

    mean: float
    per_client: tuple[float | None, ...]
    lower_is_better: bool = False

    @property
    def worst(self) -> float | None:
        """The figure of the client that is worst off; None if clients have none."""
        there = [each for each in self.per_client if each is not None]
        return (max if self.lower_is_better else min)(there, default=None)

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
    higher = told.get(metric, {}).get("higher_is_better")  # a run's own metric says so itself
    lower = lower_is_better(metric) if higher is None else not higher
    return Score(float(mean), tuple(clients or ()), lower)


def scores_of_clients(line: Mapping[str, Any], metric: str = ACCURACY) -> tuple[float | None, ...]:
    """Return each client's figure in the line of an evaluated round; none if it does not say."""
    told = (line.get("metrics") or {}).get(metric)
    if told is not None:
        return tuple(told["per_client"])
    return tuple(line.get(_OLDEST[metric][1]) or ()) if metric in _OLDEST else ()
