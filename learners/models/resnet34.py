"""ResNet-34, from torchvision."""

from __future__ import annotations

from torch import nn

from learners.data.vision import torchvision_module
from learners.models._torchvision import at_least
from learners.models.network import MODELS, Network, Shape


@MODELS.register("resnet-34")
class ResNet34(Network):
    """Residual network of 34 layers [He2016]_, torchvision's, without pretrained weights.

    Pictures smaller than 32×32 are enlarged; another number of channels than 3 changes the first
    convolution. It has batch normalisation, so its state has buffers beside the parameters.
    """

    pictures = True

    def __init__(self, shape: Shape, n_classes: int) -> None:
        net = torchvision_module("models").resnet34(weights=None, num_classes=n_classes)
        if shape[0] != 3:
            net.conv1 = nn.Conv2d(shape[0], 64, 7, stride=2, padding=3, bias=False)
            nn.init.kaiming_normal_(net.conv1.weight, mode="fan_out", nonlinearity="relu")
        layers = [part for name, part in net.named_children() if name != "fc"]
        super().__init__(
            features=nn.Sequential(at_least(32, shape), *layers, nn.Flatten()),
            hidden=nn.Identity(),
            head=net.fc,
        )
