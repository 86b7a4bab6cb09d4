"""Can clients be judged by what was asked: said before anything is trained."""

from __future__ import annotations

import numpy as np

from coalitions.errors import InvalidInputError, shown
from learners.data.contents import FederatedData, Split, Targets
from learners.measures.goal import Goal
from learners.measures.metrics import Metric, Predictions


def check_metrics(goal: Goal, data: FederatedData) -> None:
    """Refuse a metric that is not defined on the test data of a client.

    As AUROC is not where all samples have one class, whatever a model says of them.
    """
    for metric in goal.metrics:
        undecided = [
            name
            for client, name in zip(data.clients, data.names, strict=True)
            if not _is_defined(metric, data.targets, client.test)
        ]
        if undecided:
            others = f" and of {len(undecided) - 1} more" if len(undecided) > 1 else ""
            raise InvalidInputError(
                f"the metric {metric.name} is not defined on the test data of client"
                f" {shown(undecided[0])}{others}: {metric.undefined}; choose another metric, give"
                " the client other test data, or leave it out"
            )


def _is_defined(metric: Metric, targets: Targets, split: Split) -> bool:
    """Tell whether any model's predictions have a figure; that is a question of the truth alone."""
    if not metric.undefined:
        return True
    truth = split.targets.numpy()
    rows = truth.size if targets.has_classes else len(truth)
    given = Predictions.of(targets, np.zeros((rows, targets.n_outputs)), truth)
    return metric(given) is not None
