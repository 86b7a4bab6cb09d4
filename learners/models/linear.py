"""One linear layer: logistic regression, or linear regression."""

from __future__ import annotations

import math

from torch import nn

from learners.models.network import MODELS, Network, Shape


@MODELS.register("linear")
class LinearModel(Network):
    """One linear layer and nothing else: logistic or linear regression, for few rows of a table."""

    def __init__(self, shape: Shape, n_classes: int) -> None:
        super().__init__(
            features=nn.Flatten(),
            hidden=nn.Identity(),
            head=nn.Linear(math.prod(shape), n_classes),
        )
