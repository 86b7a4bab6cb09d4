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
from learners.client import LocalImages
from learners.training import score_model
from learners.workspace import Workspace

Metric = Literal["accuracy", "loss"]


class ModelGame:
    r"""The utility of a coalition: how good the plain average of its members' models is.

    .. math:: v(X) = \text{accuracy}\Bigl(\tfrac{1}{|X|} \sum_{j \in X} \theta_j\Bigr),
              \qquad v(\emptyset) = 0

    With ``metric="loss"``, :math:`v(X) = \ln C - \text{loss}` for C classes: better than guessing
    is positive, and the empty coalition guesses.

    All averages asked for in one call are one matrix product; then every distinct coalition is
    tested once. On a CPU a plain pass for each model is the fastest way known here (stacking the
    models with `vmap`, grouped convolutions and unfolding were slower).

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
        sizes = distinct.sum(axis=1, keepdims=True)
        weights = torch.from_numpy(distinct / np.maximum(sizes, 1)).to(self._models)
        values = np.array(
            [
                self._value(row) if size else 0.0
                for row, size in zip(weights @ self._models, sizes[:, 0], strict=True)
            ]
        )
        return values[where.reshape(-1)]

    def _value(self, model: Tensor) -> float:
        score = score_model(self._workspace, model, self._data)
        return score.accuracy if self._metric == "accuracy" else self._guessing - score.loss
