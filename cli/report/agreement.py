"""How near a method comes to what the data say: numbers over rounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coalitions.structure import CoalitionStructure
from coalitions.structures.comparison import adjusted_rand_index
from learners.data.ground_truth import detection
from learners.runs.reading import RunRecord

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
