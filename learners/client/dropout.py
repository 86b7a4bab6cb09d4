"""What dropout drops, drawn before the training instead of in the middle of it.

A client alone draws while it trains, from its own stream. Clients that train at once must not draw
from one stream in turns, so what each of them would draw is drawn before, by the same operation in
the same order, and handed to the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn

from learners.client.client import Samples
from learners.devices import seeded_draws
from learners.rows.workspace import Workspace, predicted

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
