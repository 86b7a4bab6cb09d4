"""Random changes in training: augmented pictures, and dropout drawn before the training."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn

from learners.client.client import Client, Samples
from learners.data.client_data import Batch
from learners.devices import seeded_draws, to_device
from learners.rows.workspace import Workspace, predicted
from learners.settings.schedules import augmentations

# ----------------------------------------------------------------------------------------
# Pictures that are seen a little differently each time: mirrored, or moved.

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


# ----------------------------------------------------------------------------------------
# What dropout drops, drawn before the training instead of in the middle of it.
#
# A client alone draws while it trains, from its own stream. Clients that train at once must not
# draw from one stream in turns, so what each of them would draw is drawn before, by the same
# operation in the same order, and handed to the network.

Dropping: TypeAlias = nn.Dropout | nn.Dropout1d | nn.Dropout2d | nn.Dropout3d

KINDS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


@dataclass(frozen=True)
class Drop:
    """A call of dropout in a pass of the network: whose, and what it draws looks like."""

    part: Dropping
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def drops(module: nn.Module) -> list[Dropping]:
    """Return the parts of a network that drop numbers, or whole channels."""
    return [part for part in module.modules() if isinstance(part, KINDS) and part.p > 0]


def calls(workspace: Workspace, data: Samples, size: int) -> list[Drop]:
    """Return the calls of dropout in a training pass of `size` samples, in their order."""
    seen: list[Drop] = []

    def note(part: nn.Module, given: tuple[Tensor, ...]) -> None:
        assert isinstance(part, KINDS)
        (entering,) = given
        if not isinstance(part, nn.Dropout):  # a channel is dropped or kept as a whole
            entering = entering.new_empty(*entering.shape[:2], *(1 for _ in entering.shape[2:]))
        seen.append(Drop(part, tuple(entering.shape), tuple(entering.stride())))

    hooks = [part.register_forward_pre_hook(note) for part in drops(workspace.module)]
    workspace.module.train()
    try:
        with torch.no_grad(), seeded_draws(0, workspace.device):
            inputs, _ = data.take(torch.arange(size) % len(data))
            predicted(workspace.module, inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def drawn(some: Sequence[Drop], stream: torch.Generator, dtype: torch.dtype) -> Iterator[Tensor]:
    """Yield what each call keeps, as torch's dropout draws it on the processor."""
    for call in some:
        kept = torch.empty_strided(call.shape, call.strides, dtype=dtype)
        yield kept.bernoulli_(1 - call.part.p, generator=stream) > 0


def stacked(kept: Sequence[Sequence[Sequence[Tensor]]], width: int) -> list[Tensor]:
    """Return a tensor [steps, clients, width, …] for each call, of [clients][steps][calls].

    Samples that fill up a batch, and clients without a step, have everything dropped.
    """
    n_steps = max(map(len, kept))
    found = []
    for number, one in enumerate(kept[0][0]):
        whole = torch.zeros((n_steps, len(kept), width, *one.shape[1:]), dtype=torch.bool)
        for client, steps in enumerate(kept):
            for t, masks in enumerate(steps):
                whole[t, client, : len(masks[number])] = masks[number]
        found.append(whole)
    return found


@contextmanager
def dropping(parts: Sequence[Dropping], kept: Sequence[Tensor]) -> Iterator[None]:
    """Have dropout drop what it is told, one call after the other, instead of drawing."""
    following = iter(kept)

    def handed(part: Dropping) -> None:
        def forward(given: Tensor) -> Tensor:
            return given * next(following) / (1 - part.p)

        part.forward = forward  # type: ignore[method-assign, assignment]

    for part in parts:
        handed(part)
    try:
        yield
    finally:
        for part in parts:
            del part.forward
