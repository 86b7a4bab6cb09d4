"""What a coalition of models is worth on a data set, as a game: no tensor leaves this file."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector, as_coalitions
from learners.client.client import Client, Samples
from learners.client.many_models import examined, score_models
from learners.devices import to_device, to_host
from learners.measures.goal import Score
from learners.measures.metrics import Metric, Predictions
from learners.rows.workspace import Workspace

AVERAGES_AT_ONCE = 1 << 26
"""Parameters of averaged models to hold at a time: a quarter of a gigabyte."""


class ModelGame:
    r"""The utility of a coalition: how good the plain average of its members' models is.

    .. math:: v(X) = \text{accuracy}\Bigl(\tfrac{1}{|X|} \sum_{j \in X} \theta_j\Bigr),
              \qquad v(\emptyset) = 0

    With ``metric="loss"``, :math:`v(X) = \ln C - \text{loss}` for C classes: better than guessing
    is positive, and the empty coalition guesses. With any other metric m, negated if it is an
    error, :math:`v(X) = m(X) - m(\emptyset)`, where the empty coalition answers what is usual in
    `known`. A coalition for which m is not defined is worth 0.

    All averages asked for in one call are one matrix product (or a few, if they would not fit in
    memory), and every distinct coalition is tested once, see `learners.client.many_models`.

    Parameters
    ----------
    workspace
        The network.
    models
        The players, a row each, [n, P].
    data
        Samples to test on.
    n_classes
        Number of classes, C above; as the workspace's goal says if not given.
    metric
        ``accuracy``, ``loss``, or another of `learners.measures.metrics`; ``auto`` is what is usual
        with the targets.
    known
        Targets by which the empty coalition guesses; those of `data` if not given.
    client
        Whose game it is: other clients' games may be computed with it at once.
    """

    def __init__(
        self,
        workspace: Workspace,
        models: Tensor,
        data: Samples,
        *,
        n_classes: int | None = None,
        metric: str = "accuracy",
        known: Tensor | None = None,
        client: Client | None = None,
    ) -> None:
        if len(data) == 0:
            raise InvalidInputError(
                "the client has no data to value models on; choose a validation_share above 0"
            )
        self._workspace = workspace
        self._models = models
        self._data = data
        self._client = client
        goal = workspace.goal
        self._metric = None if metric == "loss" else goal.metric(metric)
        self._by_accuracy = self._metric is not None and self._metric.name == "accuracy"
        known = data.targets if known is None else known
        self._guessing = self._guessed(known, n_classes or goal.targets.n_outputs)

    @property
    def n_players(self) -> int:
        """Number of models."""
        return len(self._models)

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return the value of every coalition, bool[m, n] -> float64[m]."""
        members = as_coalitions(coalitions, self.n_players)
        distinct, where = np.unique(members, axis=0, return_inverse=True)
        sizes = distinct.sum(axis=1)
        values = np.zeros(len(distinct))
        (some,) = np.nonzero(sizes)
        at_once = max(1, AVERAGES_AT_ONCE // self._models.shape[1])
        for block in np.split(some, range(at_once, len(some), at_once)):
            weights = to_device(
                torch.from_numpy(distinct[block] / sizes[block, None]).to(self._models.dtype),
                self._models.device,
            )
            values[block] = [self._value(score) for score in self._scores(weights @ self._models)]
        return values[where.reshape(-1)]

    def _scores(self, rows: Tensor) -> list[Score]:
        if self._client is None:
            return score_models(self._workspace, rows, self._data, self._asked)
        return examined(self._client, rows, self._data, self._asked)

    @property
    def _asked(self) -> tuple[Metric, ...]:
        return () if self._metric is None or self._by_accuracy else (self._metric,)

    def _value(self, score: Score) -> float:
        if self._by_accuracy:
            return score.accuracy
        if self._metric is None:
            return self._guessing - score.loss
        (value,) = score.values
        return 0.0 if value is None else self._metric.gain(value) - self._guessing

    def _guessed(self, known: Tensor, n_classes: int) -> float:
        """Return what the empty coalition gets: its loss, or its metric so that more is better."""
        goal, truth = self._workspace.goal, self._data.targets
        if self._by_accuracy or (self._metric is None and goal.targets.has_classes):
            return math.log(n_classes)
        guess = goal.guess(
            to_host(known), truth.numel() if goal.targets.has_classes else len(truth)
        )
        if self._metric is None:
            return float(goal.criterion.mean(guess, to_host(truth)))
        given = Predictions.of(goal.targets, guess.numpy(), to_host(truth).numpy())
        value = self._metric(given)
        return 0.0 if value is None else self._metric.gain(value)
