"""What a coalition of models is worth on a data set, as a game: no tensor leaves this file."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector, as_coalitions
from learners.client.client import LocalImages
from learners.client.many_models import score_models
from learners.client.training import Score
from learners.rows.workspace import Workspace

Metric = Literal["accuracy", "loss"]

AVERAGES_AT_ONCE = 1 << 26
"""Parameters of averaged models to hold at a time: a quarter of a gigabyte."""


class ModelGame:
    r"""The utility of a coalition: how good the plain average of its members' models is.

    .. math:: v(X) = \text{accuracy}\Bigl(\tfrac{1}{|X|} \sum_{j \in X} \theta_j\Bigr),
              \qquad v(\emptyset) = 0

    With ``metric="loss"``, :math:`v(X) = \ln C - \text{loss}` for C classes: better than guessing
    is positive, and the empty coalition guesses.

    All averages asked for in one call are one matrix product (or a few, if they would not fit in
    memory), and every distinct coalition is tested once, see `learners.client.many_models`.

    Parameters
    ----------
    workspace
        The network.
    models
        The players, a row each, [n, P].
    data
        Labelled images to test on.
    n_classes
        Number of classes, C above.
    metric
        ``accuracy`` or ``loss``.
    """

    def __init__(
        self,
        workspace: Workspace,
        models: Tensor,
        data: LocalImages,
        *,
        n_classes: int,
        metric: Metric = "accuracy",
    ) -> None:
        if len(data) == 0:
            raise InvalidInputError(
                "the client has no data to value models on; choose a validation_share above 0"
            )
        self._workspace = workspace
        self._models = models
        self._data = data
        self._guessing = math.log(n_classes)
        self._metric = metric

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
            weights = torch.from_numpy(distinct[block] / sizes[block, None]).to(self._models)
            values[block] = [
                self._value(score)
                for score in score_models(self._workspace, weights @ self._models, self._data)
            ]
        return values[where.reshape(-1)]

    def _value(self, score: Score) -> float:
        return score.accuracy if self._metric == "accuracy" else self._guessing - score.loss
