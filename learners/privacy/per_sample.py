"""Gradients of single images, clipped and noised: a step of DP-SGD."""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from learners.privacy.layer_gradients import clipped_sum_by_layers, made_of_plain_layers
from learners.rows.parameters import Params, with_noise
from learners.rows.workspace import Workspace

NUMBERS_AT_ONCE = 1 << 25
"""Entries of the gradients that are held at a time: 128 MB."""

LossOfOne = Callable[[Tensor, Params], Tensor]
"""Maps the loss of an image and the parameters to what is minimised."""


def private_gradient(
    workspace: Workspace,
    images: Tensor,
    labels: Tensor,
    *,
    expected: float,
    clip: float,
    noise: float,
    stream: torch.Generator,
    only: Collection[str] | None = None,
    objective: LossOfOne | None = None,
) -> tuple[Tensor, float]:
    r"""Return the flat gradient of DP-SGD on a batch, and the sum of its losses [Abadi2016]_.

    Algorithm 1 there, with g the gradient of one image's loss and B the size a batch is expected
    to have: it must not depend on who is in it.

    .. math:: \frac{1}{B} \Bigl( \sum_i g_i \min(1, C / \lVert g_i \rVert)
              + \mathcal{N}(0, \sigma^2 C^2 I) \Bigr)

    Parameters
    ----------
    workspace
        The network, with the model to differentiate at.
    images, labels
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
        Makes more of an image's loss; a penalty in it is part of what is clipped.
    """
    total = torch.zeros_like(workspace.gradient)
    losses = 0.0
    by_layers = objective is None and made_of_plain_layers(workspace.module)
    chunk = max(1, NUMBERS_AT_ONCE // len(total))
    for begin in range(0, len(labels), chunk):
        batch = images[begin : begin + chunk], labels[begin : begin + chunk]
        if by_layers:
            sums, loss = clipped_sum_by_layers(workspace.module, *batch, clip, only)
        else:
            sums, loss = _clipped_sum(workspace.module, *batch, clip, only, objective)
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
    images: Tensor,
    labels: Tensor,
    clip: float,
    only: Collection[str] | None,
    objective: LossOfOne | None,
) -> tuple[dict[str, Tensor], float]:
    """Return what `clipped_sum_by_layers` does, for any network and objective, more slowly."""
    params = {name: value.detach() for name, value in module.named_parameters()}
    buffers = dict(module.named_buffers())
    free = {name: params[name] for name in params if only is None or name in only}

    def loss(free: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
        scores = functional_call(module, (params | free, buffers), (image[None],))
        value = nn.functional.cross_entropy(scores, label[None])
        return value if objective is None else objective(value, params | free)

    # Dropout, if there is any, drops for each image on its own.
    per_image = vmap(grad_and_value(loss), in_dims=(None, 0, 0), randomness="different")
    gradients, values = per_image(free, images, labels)
    rows = torch.cat([gradients[name].flatten(1) for name in free], dim=1)
    norms = rows.norm(dim=1)
    sums = torch.where(norms > clip, clip / norms, 1.0) @ rows
    sizes = [value.numel() for value in free.values()]
    return dict(zip(free, torch.split(sums, sizes), strict=True)), float(values.sum())
