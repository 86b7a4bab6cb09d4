"""Small convolutional networks: those of McMahan et al., of CFFL, and four LeNets."""

from __future__ import annotations

from torch import nn

from coalitions.errors import InvalidInputError
from learners.models.network import MODELS, Network, Shape

# ----------------------------------------------------------------------------------------
# A convolution with a pool, as in all the small networks, and how it meets small pictures.

KERNEL = 5


def side_after(side: int, *, padding: int) -> int:
    """Return the length of a side after a 5×5 convolution and a 2×2 pool."""
    return (side + 2 * padding - KERNEL + 1) // 2


def padding_for(height: int, width: int, *, wanted: int = 0) -> int:
    """Return the padding `wanted`, or 2 where without it nothing would be left to pool."""
    if min(height, width) < 2:
        raise InvalidInputError(
            f"a picture of {height}×{width} is too small for this network; "
            "use the model mlp, or larger pictures"
        )
    return wanted if min(height, width) + 2 * wanted >= KERNEL + 1 else 2


def pooled_convolution(channels: int, filters: int, padding: int) -> list[nn.Module]:
    """Return a 5×5 convolution, a 2×2 max-pool and a ReLU, in the cheaper order."""
    return [nn.Conv2d(channels, filters, KERNEL, padding=padding), nn.MaxPool2d(2), nn.ReLU()]


def two_convolutions(
    shape: tuple[int, ...], filters: tuple[int, int], *, padding: tuple[int, int]
) -> tuple[nn.Sequential, int]:
    """Return two pooled convolutions that end in a flat vector, and its length.

    `padding` is what the paper has; a layer that would be left with nothing gets 2 instead, so
    that 8×8 pictures pass as well.
    """
    channels, height, width = shape
    layers: list[nn.Module] = []
    for n_filters, wanted in zip(filters, padding, strict=True):
        chosen = padding_for(height, width, wanted=wanted)
        layers += pooled_convolution(channels, n_filters, chosen)
        channels = n_filters
        height, width = side_after(height, padding=chosen), side_after(width, padding=chosen)
    return nn.Sequential(*layers, nn.Flatten()), channels * height * width


# ----------------------------------------------------------------------------------------
# The CNN of McMahan et al., which pFedSV and FedACS use.


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


# ----------------------------------------------------------------------------------------
# The small CNN of the CFFL paper.


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


# ----------------------------------------------------------------------------------------
# The CFFL paper's CNN as it is usually programmed: with dropout.


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


# ----------------------------------------------------------------------------------------
# LeNet-5, in its usual form with ReLU and max-pool.


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


# ----------------------------------------------------------------------------------------
# The LeNet with 64 filters of the FedC²I paper.


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


# ----------------------------------------------------------------------------------------
# The LeNet of the gradient inversion papers: smooth, without pools.


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
