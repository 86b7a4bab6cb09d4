"""The small CNN of the CFFL paper."""

from __future__ import annotations

from torch import nn

from learners.models._convolution import two_convolutions
from learners.models.network import MODELS, Network, Shape


@MODELS.register("cffl-cnn")
class CfflCNN(Network):
    """Convolutions with 10 and 20 filters of 5×5, then 320 → 50 → 10 at 28×28 [Ota2022]_."""

    pictures = True

    def __init__(self, shape: Shape, n_classes: int) -> None:
        features, length = two_convolutions(shape, (10, 20), padding=(0, 0))
        super().__init__(
            features=features,
            hidden=nn.Sequential(nn.Linear(length, 50), nn.ReLU()),
            head=nn.Linear(50, n_classes),
        )
