"""A network of a user's own, the same at every node for the same seed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from coalitions.errors import InvalidInputError
from learners.rows.parameters import Layout
from learners.settings.seeding import generator


def fresh(model: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Return the network with its initial weights; torch's global random state stays as it was."""
    start = int(generator(seed, "initial weights").integers(2**63))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(start)
        module = model()
    if not isinstance(module, nn.Module):
        raise InvalidInputError(
            f"the model must be a class or function that returns a torch module, and it returns"
            f" {type(module).__name__}"
        )
    return module


def n_outputs(layout: Layout) -> int:
    """Return how many classes a network tells apart: the length of its last linear layer."""
    head = layout.classifiers.get("head")
    if head is None:
        raise InvalidInputError("the network has no linear layer, which would tell its classes")
    return layout.shapes[next(iter(head))][0]
