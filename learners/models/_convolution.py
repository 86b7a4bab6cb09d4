"""A convolution with a pool, as in all the small networks, and how it meets small pictures."""

from __future__ import annotations

from torch import nn

from coalitions.errors import InvalidInputError

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
