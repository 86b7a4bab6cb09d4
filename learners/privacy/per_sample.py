"""Gradients of single samples, clipped and noised: a step of DP-SGD."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from learners.data.contents import Batch
from learners.devices import to_host
from learners.measures.losses import Criterion
from learners.privacy.layer_gradients import clipped_sum_by_layers, made_of_plain_layers
from learners.rows.parameters import Params, with_noise
from learners.rows.workspace import Workspace, part_of

NUMBERS_AT_ONCE = 1 << 25
"""Entries of the gradients that are held at a time: 128 MB."""

LossOfOne = Callable[[Tensor, Params], Tensor]
"""Maps the loss of a sample and the parameters to what is minimised."""


def private_gradient(
    workspace: Workspace,
    inputs: Batch,
    targets: Tensor,
    *,
    expected: float,
    clip: float,
    noise: float,
    stream: torch.Generator,
    only: Collection[str] | None = None,
    objective: LossOfOne | None = None,
) -> tuple[Tensor, float]:
    r"""Return the flat gradient of DP-SGD on a batch, and the sum of its losses [Abadi2016]_.

    Algorithm 1 there, with g the gradient of one sample's loss and B the size a batch is expected
    to have: it must not depend on who is in it.

    .. math:: \frac{1}{B} \Bigl( \sum_i g_i \min(1, C / \lVert g_i \rVert)
              + \mathcal{N}(0, \sigma^2 C^2 I) \Bigr)

    Parameters
    ----------
    workspace
        The network, with the model to differentiate at.
    inputs, targets
        The batch, which may be empty.
    expected
        B.
    clip, noise
        C and σ.
    stream
        Source of the noise.
    only
        Names of the parameters that are trained; all are if None.
    objective
        Makes more of a sample's loss; a penalty in it is part of what is clipped.
    """
    total = torch.zeros_like(workspace.gradient)
    losses = 0.0
    by_layers = objective is None and made_of_plain_layers(workspace.module)
    chunk = max(1, NUMBERS_AT_ONCE // len(total))
    criterion = workspace.goal.criterion
    for begin in range(0, len(targets), chunk):
        at = slice(begin, begin + chunk)
        some, wanted = part_of(inputs, at), targets[at]
        if by_layers and isinstance(some, Tensor):
            sums, loss = clipped_sum_by_layers(
                workspace.module, some, wanted, clip, only, criterion
            )
        else:
            sums, loss = _clipped_sum(
                workspace.module, some, wanted, clip, only, criterion, objective
            )
        for name, value in sums.items():
            total[workspace.layout.columns[name]] += value
        losses += loss
    if noise:
        noisy = with_noise(total, noise * clip, stream)
        for name in workspace.named_parameters():
            if only is None or name in only:
                at = workspace.layout.columns[name]
                total[at] = noisy[at]
    return total / expected, losses


def _clipped_sum(
    module: nn.Module,
    inputs: Batch,
    targets: Tensor,
    clip: float,
    only: Collection[str] | None,
    criterion: Criterion,
    objective: LossOfOne | None,
) -> tuple[dict[str, Tensor], float]:
    """Return what `clipped_sum_by_layers` does, for any network and objective, more slowly."""
    params = {name: value.detach() for name, value in module.named_parameters()}
    buffers = dict(module.named_buffers())
    free = {name: params[name] for name in params if only is None or name in only}

    def loss(free: dict[str, Tensor], sample: Batch, target: Tensor) -> Tensor:
        if isinstance(sample, Tensor):
            given: tuple[Any, ...] = ((sample[None],), {})
        else:
            given = ((), {name: each[None] for name, each in sample.items()})
        outputs = functional_call(module, (params | free, buffers), *given)
        value = criterion.mean(outputs, target[None])
        return value if objective is None else objective(value, params | free)

    # Dropout, if there is any, drops for each sample on its own.
    per_sample = vmap(grad_and_value(loss), in_dims=(None, 0, 0), randomness="different")
    gradients, values = per_sample(free, inputs, targets)
    rows = torch.cat([gradients[name].flatten(1) for name in free], dim=1)
    norms = rows.norm(dim=1)
    sums = torch.where(norms > clip, clip / norms, 1.0) @ rows
    sizes = [value.numel() for value in free.values()]
    return dict(zip(free, torch.split(sums, sizes), strict=True)), float(to_host(values.sum()))
