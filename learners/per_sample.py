"""Gradients of single images, clipped and noised: a step of DP-SGD."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from learners.algorithm import Params
from learners.parameters import with_noise
from learners.workspace import Workspace

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
    trained: Tensor | None = None,
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
    trained
        1 for the parameters that are trained, 0 for the others; all are if None.
    objective
        Makes more of an image's loss; a penalty in it is part of what is clipped.
    """
    module = workspace.module
    params = {name: value.detach() for name, value in module.named_parameters()}
    buffers = dict(module.named_buffers())

    def loss(params: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
        scores = functional_call(module, (params, buffers), (image[None],))
        value = nn.functional.cross_entropy(scores, label[None])
        return value if objective is None else objective(value, params)

    # Dropout, if there is any, drops for each image on its own.
    per_image = vmap(grad_and_value(loss), in_dims=(None, 0, 0), randomness="different")
    total = torch.zeros_like(workspace.gradient)
    losses = 0.0
    chunk = max(1, NUMBERS_AT_ONCE // len(total))
    for begin in range(0, len(labels), chunk):
        at = slice(begin, begin + chunk)
        gradients, values = per_image(params, images[at], labels[at])
        rows = torch.cat([gradients[name].flatten(1) for name in params], dim=1)
        if trained is not None:
            rows = rows * trained
        norms = rows.norm(dim=1)
        scales = torch.where(norms > clip, clip / norms, 1.0)
        total += scales @ rows
        losses += float(values.sum())
    if noise:
        noisy = with_noise(total, noise * clip, stream)
        total = noisy if trained is None else noisy * trained
    return total / expected, losses
