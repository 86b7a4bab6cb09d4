"""ResNet-34 and VGG-19 from torchvision, changed so that they take small pictures."""

from __future__ import annotations

from torch import nn

from learners.data.sources.torchvision_sets import torchvision_module
from learners.models.network import MODELS, Network, Shape

# ----------------------------------------------------------------------------------------
# What torchvision's networks need before they can take small pictures.


def at_least(side: int, shape: Shape) -> nn.Module:
    """Return a layer that enlarges pictures with a side below `side`, and passes others on."""
    _, height, width = shape
    if min(height, width) >= side:
        return nn.Identity()
    size = (max(height, side), max(width, side))
    return nn.Upsample(size=size, mode="bilinear", align_corners=False)


# ----------------------------------------------------------------------------------------
# ResNet-34, from torchvision.


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


# ----------------------------------------------------------------------------------------
# VGG-19, from torchvision.


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
