"""The CFFL paper's CNN as it is usually programmed: with dropout."""

from __future__ import annotations

from torch import nn

from learners.models._convolution import two_convolutions
from learners.models.network import MODELS, Network, Shape


@MODELS.register("cffl-cnn-dropout")
class CfflCNNDropout(Network):
    """`CfflCNN` that drops half of the second convolution's channels and half of the hidden units.

    The paper [Ota2022]_ prints no dropout, but its layers are those of an example program that has
    it, and its results come out with it only: `coalitions reproduce cffl-settings` shows it.
    """

    pictures = True

    def __init__(self, shape: Shape, n_classes: int) -> None:
        convolutions, length = two_convolutions(shape, (10, 20), padding=(0, 0))
        *layers, flatten = convolutions
        super().__init__(
            features=nn.Sequential(*layers, nn.Dropout2d(), flatten),
            hidden=nn.Sequential(nn.Linear(length, 50), nn.ReLU(), nn.Dropout()),
            head=nn.Linear(50, n_classes),
        )
