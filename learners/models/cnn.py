"""The CNN of McMahan et al., which pFedSV and FedACS use."""

from __future__ import annotations

from torch import nn

from learners.models._convolution import two_convolutions
from learners.models.network import MODELS, Network, Shape


@MODELS.register("cnn")
class CNN(Network):
    """Padded convolutions with 32 and 64 filters of 5×5, then 512 [McMahan2017]_.

    1 663 370 parameters on MNIST, as the paper says.
    """

    pictures = True

    def __init__(self, shape: Shape, n_classes: int) -> None:
        features, length = two_convolutions(shape, (32, 64), padding=(2, 2))
        super().__init__(
            features=features,
            hidden=nn.Sequential(nn.Linear(length, 512), nn.ReLU()),
            head=nn.Linear(512, n_classes),
        )
