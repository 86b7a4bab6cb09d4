"""VGG-19, from torchvision."""

from __future__ import annotations

from torch import nn

from learners.data.vision import torchvision_module
from learners.models._torchvision import at_least
from learners.models.network import MODELS, Network, Shape


@MODELS.register("vgg-19")
class VGG19(Network):
    """VGG of 19 layers [Simonyan2015]_, torchvision's, without pretrained weights.

    Pictures smaller than 32×32 are enlarged; another number of channels than 3 changes the first
    convolution. Its two hidden layers have dropout.
    """

    pictures = True

    def __init__(self, shape: Shape, n_classes: int) -> None:
        net = torchvision_module("models").vgg19(weights=None, num_classes=n_classes)
        convolutions = list(net.features)
        if shape[0] != 3:
            convolutions[0] = nn.Conv2d(shape[0], 64, 3, padding=1)
            nn.init.kaiming_normal_(convolutions[0].weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(convolutions[0].bias)
        *hidden, head = net.classifier
        super().__init__(
            features=nn.Sequential(at_least(32, shape), *convolutions, net.avgpool, nn.Flatten()),
            hidden=nn.Sequential(*hidden),
            head=head,
        )
