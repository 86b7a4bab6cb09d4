"""Pictures that are seen a little differently each time: mirrored, or moved."""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch
from torch import Tensor

from learners.client.client import Client, Samples
from learners.data.contents import Batch
from learners.devices import to_device
from learners.settings.descent import augmentations

Take = Callable[[Tensor], tuple[Batch, Tensor]]
"""Maps indices of samples to their inputs and targets."""


def taking(client: Client, data: Samples, purpose: str) -> Take:
    """Return how batches are taken to train on: as they are, or by the run's augmentation.

    What is drawn follows from the client, the round and the purpose. Only training takes batches
    so; whatever is tested, or compared, is as it is.
    """
    kinds = augmentations(client.config.augment)
    if not kinds:
        return data.take
    stream = client.stream(f"{purpose}: augmentation")

    def take(chosen: Tensor) -> tuple[Batch, Tensor]:
        inputs, targets = data.take(chosen)
        assert isinstance(inputs, Tensor)  # data other than pictures were refused
        return varied(inputs, kinds, stream), targets

    return take


def varied(pictures: Tensor, kinds: Collection[str], stream: torch.Generator) -> Tensor:
    """Return pictures [n, C, H, W], each mirrored by chance (``flip``) or moved (``crop``).

    A picture moves by up to an eighth of its side, one pixel at least, in both directions; its
    edges are repeated where it moved away from, whatever value the background has.
    """
    n, channels, height, width = pictures.shape
    rows, columns = torch.arange(height).expand(n, -1), torch.arange(width).expand(n, -1)
    if "flip" in kinds:
        mirrored = torch.rand(n, generator=stream) < 0.5
        columns = torch.where(mirrored[:, None], columns.flip(1), columns)
    if "crop" in kinds:
        rows = _moved(rows, height, stream)
        columns = _moved(columns, width, stream)
    at = [
        torch.arange(n)[:, None, None, None],
        torch.arange(channels)[:, None, None],
        rows[:, None, :, None],
        columns[:, None, None, :],
    ]
    seen = pictures[tuple(to_device(each, pictures.device) for each in at)]
    return seen.contiguous(memory_format=torch.channels_last)


def _moved(places: Tensor, size: int, stream: torch.Generator) -> Tensor:
    """Return places [n, size] taken from up to an eighth further on, or before."""
    most = max(1, size // 8)
    by = torch.randint(-most, most + 1, (len(places), 1), generator=stream)
    return places.gather(1, (torch.arange(size) + by).clamp(0, size - 1))
