"""What a run would send, without running it: from the network's size and a trace of k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError
from learners.algorithms.pfedsv import PFedSV, chosen_downloads
from learners.rows.parameters import Cut, Layout

Counts = NDArray[np.int64]

ABSENT = -1
"""Stands in a trace for a client that did not take part in a round."""


@dataclass(frozen=True)
class ModelSize:
    """Numbers of a model as it travels: parameters and batch norm's buffers.

    Attributes
    ----------
    features, classifier
        How many belong to the feature extractor, and to the classifier.
    """

    features: int
    classifier: int

    @classmethod
    def of(cls, layout: Layout, cut: Cut = "head") -> ModelSize:
        """Return the sizes of a network that is cut somewhere."""
        features, classifier = layout.parts(cut)
        return cls(len(features), len(classifier))

    @property
    def whole(self) -> int:
        """Size of the model."""
        return self.features + self.classifier

    @property
    def classifier_share(self) -> float:
        """Share of the classifier."""
        return self.classifier / self.whole


def predicted_traffic(
    algorithm: str, size: ModelSize, trace: Counts, *, shared_extractor: bool = False
) -> tuple[Counts, Counts]:
    r"""Return the parameters each client sends up and gets down in each round, [rounds, clients].

    Every client uploads its model. Down come, with k models of others in the trace,

    ==================  ==================================================
    fedavg, fedamp      one model
    fedfomo, pfedsv     k models
    pfedsv with C       one feature extractor and k classifiers (Fig. 5)
    ==================  ==================================================

    Parameters
    ----------
    algorithm
        ``fedavg``, ``fedamp``, ``fedfomo`` or ``pfedsv``.
    size
        Of the network.
    trace
        Models of others each client downloads in each round, [rounds, clients]; `ABSENT` for
        clients that do not take part.
    shared_extractor
        Whether pfedsv shares the extractor ("C").
    """
    k = np.maximum(trace, 0)
    if algorithm in ("fedavg", "fedamp"):
        down = np.full_like(k, size.whole)
    elif algorithm == "pfedsv" and shared_extractor:
        down = size.features + k * size.classifier
    elif algorithm in ("fedfomo", "pfedsv"):
        down = k * size.whole
    else:
        raise InvalidInputError(
            f"the traffic of {algorithm} cannot be predicted; that of fedavg, fedamp, fedfomo and"
            " pfedsv can"
        )
    there = trace != ABSENT
    return np.where(there, size.whole, 0), np.where(there, down, 0)


def trace_of(history: Sequence[Mapping[str, Any]], n_clients: int, k: int | None = None) -> Counts:
    """Return the trace of a run that happened, from the lines of its `metrics.jsonl`.

    Parameters
    ----------
    history
        One mapping per round.
    n_clients
        Number of clients.
    k
        Downloads in each round, for methods that always take as many as there are, up to k;
        None if the run recorded its `downloads`.
    """
    trace = np.full((len(history), n_clients), ABSENT, dtype=np.int64)
    for line, row in zip(history, trace, strict=True):
        present = line["participants"]
        if k is None:
            row[present] = np.asarray(line["downloads"])[present]
        else:
            row[present] = min(k, len(present) - 1)
    return trace


def ideal_trace(
    relevant: NDArray[np.bool_], rounds: int, method: PFedSV, *, seed: int = 0
) -> Counts:
    """Return the trace of pfedsv if its games told exactly who is relevant, [rounds, clients].

    A relevant client scores above zero, another below, from the first time it is tried.

    Parameters
    ----------
    relevant
        Whether j helps i, [n, n].
    rounds
        Number of rounds; everyone takes part in all.
    method
        Its `k`, `dynamic`, `order` and `explore` decide.
    seed
        Of what is random in the choice.
    """
    n = len(relevant)
    rng = np.random.default_rng(seed)
    scores, scored = np.zeros((n, n)), np.zeros((n, n), dtype=np.int64)
    trace = np.zeros((rounds, n), dtype=np.int64)
    for row in trace:
        for i in range(n):
            others = np.array([j for j in range(n) if j != i])
            taken = chosen_downloads(
                scores[i, others],
                scored[i, others],
                others,
                k=method.k,
                order="scan" if method.order == "auto" else method.order,
                dynamic=method.dynamic,
                explore=method.explore,
                rng=rng,
            )
            row[i] = len(taken)
            scored[i, taken] += 1
            scores[i, taken] = np.where(relevant[i, taken], 1.0, -1.0)
    return trace
