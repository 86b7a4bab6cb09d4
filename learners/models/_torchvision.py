"""What torchvision's networks need before they can take small pictures."""

from __future__ import annotations

from torch import nn

from learners.models.network import Shape


def at_least(side: int, shape: Shape) -> nn.Module:
    """Return a layer that enlarges pictures with a side below `side`, and passes others on."""
    _, height, width = shape
    if min(height, width) >= side:
        return nn.Identity()
    size = (max(height, side), max(width, side))
    return nn.Upsample(size=size, mode="bilinear", align_corners=False)
