"""The two ways between the host and the device that models are on.

Whatever crosses goes through `to_host` and `to_device`. That is how one can see what a round on a
GPU has to wait for, and how a round can be rehearsed without one (`tests.learners.rehearsal`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn

Module = TypeVar("Module", bound=nn.Module)


class Passage:
    """How tensors cross; a rehearsal has another one."""

    def to_host(self, tensor: Tensor) -> Tensor:
        """Return a tensor for the processor to read."""
        return tensor.detach().cpu()

    def to_device(self, tensor: Tensor, device: torch.device) -> Tensor:
        """Return a tensor where models are."""
        return tensor.to(device)

    def generators(self, device: torch.device) -> list[torch.device]:
        """Return the devices, beside the processor, that draw random numbers of their own."""
        return [device] if device.type == "cuda" else []


_passage = Passage()


def to_host(tensor: Tensor) -> Tensor:
    """Return a tensor for the processor to read, without its gradient; not copied if it is there.

    Examples
    --------
    >>> float(to_host(torch.ones(2, requires_grad=True).sum()))
    2.0
    """
    return _passage.to_host(tensor)


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor where models are; not copied if it is there."""
    return _passage.to_device(tensor, device)


def module_to_device(module: Module, device: torch.device) -> Module:
    """Move a network, as its own `to` does."""
    moved: Module = module._apply(  # type: ignore[no-untyped-call]
        lambda tensor: to_device(tensor, device)
    )
    return moved


@contextmanager
def seeded_draws(seed: int, device: torch.device) -> Iterator[None]:
    """Have what draws without a stream, as dropout does, follow a seed.

    Torch's own generators stay as they were, the device's among them.
    """
    with torch.random.fork_rng(devices=_passage.generators(device)):
        torch.manual_seed(seed)
        yield


@contextmanager
def crossing(passage: Passage) -> Iterator[None]:
    """Have tensors cross in another way, in every thread."""
    global _passage
    usual, _passage = _passage, passage
    try:
        yield
    finally:
        _passage = usual
