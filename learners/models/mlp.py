"""Two hidden layers of 200: the "2NN" of McMahan et al."""

from __future__ import annotations

import math

from torch import nn

from learners.models.network import MODELS, Network, Shape


@MODELS.register("mlp")
class MLP(Network):
    """Two hidden layers of 200 ReLUs, 199 210 parameters on MNIST [McMahan2017]_."""

    def __init__(self, shape: Shape, n_classes: int) -> None:
        super().__init__(
            features=nn.Flatten(),
            hidden=nn.Sequential(
                nn.Linear(math.prod(shape), 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU()
            ),
            head=nn.Linear(200, n_classes),
        )
