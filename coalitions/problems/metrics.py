"""How good predictions are, in one number of which more is better."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from coalitions.errors import InvalidInputError, did_you_mean, shown

Metric: TypeAlias = Callable[[Any, Any], float]
"""Called with the truth and the predictions."""


def accuracy(truth: Any, predicted: Any) -> float:  # noqa: ANN401 (arrays of labels of any kind)
    """Return how often the prediction is right.

    Examples
    --------
    >>> accuracy(["a", "b", "b", "a"], ["a", "b", "a", "a"])
    0.75
    """
    return float(np.mean(np.asarray(truth) == np.asarray(predicted)))


def r2(truth: Any, predicted: Any) -> float:  # noqa: ANN401 (arrays of numbers)
    """Return the share of the variance that is explained; 0 for the mean, negative for worse.

    Examples
    --------
    >>> r2([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    0.5
    """
    exact = np.asarray(truth, np.float64)
    residual = float(((exact - np.asarray(predicted, np.float64)) ** 2).sum())
    spread = float(((exact - exact.mean(axis=0)) ** 2).sum())
    return 1.0 - residual / spread


METRICS: dict[str, Metric] = {"accuracy": accuracy, "r2": r2}


def metric_of(
    metric: str | Metric,
    truth: Any,  # noqa: ANN401 (an array of targets)
    learned: Any = (),  # noqa: ANN401
) -> Metric:
    """Return the function of a metric, after a look at whether it fits the targets.

    It measures by the truth; what was learned from are targets of the same kind.
    """
    if callable(metric):
        return metric
    if metric not in METRICS:
        raise InvalidInputError(
            f"there is no metric named {metric!r}; {did_you_mean(str(metric), METRICS)}there are:"
            f" {', '.join(METRICS)}, or any function of the truth and the predictions"
        )
    exact = np.asarray(truth)
    targets = np.append(exact, learned) if len(learned) else exact
    fractions = targets.dtype.kind == "f" and (targets != np.round(targets)).any()
    if metric == "accuracy" and fractions:
        raise InvalidInputError(
            "the targets have fractions, so they are no classes; say metric='r2'"
        )
    if metric == "r2" and targets.dtype.kind not in "biuf":
        raise InvalidInputError("r2 needs targets that are numbers; for classes say 'accuracy'")
    if metric == "r2" and (exact == exact[0]).all():
        raise InvalidInputError(
            f"the targets to measure with are {shown(exact[0].tolist())}, {len(exact)} times; r2"
            " needs some that differ"
        )
    return METRICS[metric]
