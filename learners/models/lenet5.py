"""LeNet-5, in its usual form with ReLU and max-pool."""

from __future__ import annotations

from torch import nn

from learners.models._convolution import two_convolutions
from learners.models.network import MODELS, Network, Shape


@MODELS.register("lenet-5")
class LeNet5(Network):
    """Convolutions with 6 and 16 filters of 5×5, then 120, 84 and the classes [LeCun1998]_.

    The original takes 32×32; smaller pictures are padded by 2 in the first convolution, which
    makes 28×28 the same network (61 706 parameters).
    """

    pictures = True

    def __init__(self, shape: Shape, n_classes: int) -> None:
        first = 2 if min(shape[1:]) < 32 else 0
        features, length = two_convolutions(shape, (6, 16), padding=(first, 0))
        super().__init__(
            features=features,
            hidden=nn.Sequential(nn.Linear(length, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()),
            head=nn.Linear(84, n_classes),
        )
