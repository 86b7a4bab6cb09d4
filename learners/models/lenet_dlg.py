"""The LeNet of the gradient inversion papers: smooth, without pools."""

from __future__ import annotations

from torch import nn

from learners.models.network import MODELS, Network, Shape


@MODELS.register("lenet-dlg")
class LeNetDLG(Network):
    """Three convolutions with 12 filters of 5×5 and sigmoids, two of them strided [Zhu2019]_.

    Gradients of it have gradients of their own everywhere, which inversion by second-order methods
    needs; weights start uniform in ±0.5, as in the authors' program.
    """

    pictures = True

    def __init__(self, shape: Shape, n_classes: int) -> None:
        channels, height, width = shape
        layers: list[nn.Module] = []
        for stride in (2, 2, 1):
            layers += [nn.Conv2d(channels, 12, 5, stride=stride, padding=2), nn.Sigmoid()]
            channels, height, width = 12, -(-height // stride), -(-width // stride)
        head = nn.Linear(12 * height * width, n_classes)
        super().__init__(nn.Sequential(*layers, nn.Flatten()), nn.Identity(), head)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.5, 0.5)
