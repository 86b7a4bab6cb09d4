"""The LeNet with 64 filters of the FedC²I paper."""

from __future__ import annotations

from torch import nn

from learners.models._convolution import two_convolutions
from learners.models.network import MODELS, Network, Shape


@MODELS.register("lenet-64")
class LeNet64(Network):
    """Twice 64 filters of 5×5, then 64·13·13 → 384 → 192 → classes at 64×64 (FedC²I, Table 7)."""

    pictures = True

    def __init__(self, shape: Shape, n_classes: int) -> None:
        features, length = two_convolutions(shape, (64, 64), padding=(0, 0))
        super().__init__(
            features=features,
            hidden=nn.Sequential(nn.Linear(length, 384), nn.ReLU(), nn.Linear(384, 192), nn.ReLU()),
            head=nn.Linear(192, n_classes),
        )
