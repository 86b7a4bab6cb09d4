"""Gradients of single samples, clipped and noised: a step of DP-SGD."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from learners.data.client_data import Batch
from learners.devices import to_host
from learners.measures.losses import CROSS_ENTROPY, Criterion
from learners.models.network import Network
from learners.rows.parameters import Params, with_noise
from learners.rows.workspace import Workspace, part_of

# ----------------------------------------------------------------------------------------
# Clipped gradients of single samples from one backward pass over the whole batch.
#
# Autograd gives the gradient :math:`b_i` of sample i's loss at the output of every layer. With
# the layer's input :math:`a_i`, the gradient of its weights is a product, which need not be
# formed for linear layers [Goodfellow2015]_:
#
# .. math:: g_i = b_i a_i^\top, \qquad \lVert g_i \rVert = \lVert b_i \rVert \lVert a_i \rVert,
#           \qquad \sum_i s_i g_i = \sum_i (s_i b_i)\, a_i^\top.
#
# A convolution is the same product, summed over the places of its window.

_WITHOUT_PARAMETERS = (
    nn.Sequential, nn.Identity, nn.Flatten, nn.ReLU, nn.Sigmoid, nn.Tanh, nn.MaxPool2d,
    nn.AvgPool2d, nn.Dropout, nn.Dropout2d,
)  # fmt: skip


def made_of_plain_layers(module: nn.Module) -> bool:
    """Return whether a network is a chain of layers whose gradients are known here.

    Only parts that are known for certain count: a network that used a weight anywhere else, or a
    layer twice, would have more gradient than its layers tell.
    """
    parts = list(module.modules())
    parameters = list(module.parameters())
    return (
        len(parts) == len(list(module.named_modules(remove_duplicate=False)))
        and len(parameters) == len(list(module.named_parameters(remove_duplicate=False)))
        and all(map(_is_plain, parts))
    )


def clipped_sum_by_layers(
    module: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    clip: float,
    only: Collection[str] | None,
    criterion: Criterion = CROSS_ENTROPY,
) -> tuple[dict[str, Tensor], float]:
    """Return the sum of the samples' clipped gradients by parameter, and the sum of their losses.

    Parameters
    ----------
    module
        A network for which `made_of_plain_layers` is true.
    inputs, targets
        The batch.
    clip
        Largest norm of a sample's gradient.
    only
        Names of the parameters that are trained; all if None. They must require gradients.
    criterion
        The loss.
    """
    layers = [
        (name, part)
        for name, part in module.named_modules()
        if any(_is_trained(name, own, only) for own, _ in part.named_parameters(recurse=False))
    ]
    seen: dict[str, tuple[Tensor, Tensor]] = {}

    def watch(name: str, part: nn.Module) -> torch.utils.hooks.RemovableHandle:
        return part.register_forward_hook(
            lambda _, inputs, output: seen.__setitem__(name, (inputs[0].detach(), output))
        )

    hooks = [watch(name, part) for name, part in layers]
    try:
        loss = criterion.total(module(inputs), targets)
    finally:
        for hook in hooks:
            hook.remove()
    slopes = torch.autograd.grad(loss, [seen[name][1] for name, _ in layers])
    squares = torch.zeros(len(targets), device=inputs.device)
    pieces: dict[str, tuple[Tensor, Tensor | None]] = {}
    for (name, part), slope in zip(layers, slopes, strict=True):
        if _is_trained(name, "weight", only):
            left, right = slope, seen[name][0]
            if isinstance(part, nn.Conv2d):
                left = slope.flatten(2).transpose(1, 2)
                right = _windows(right, part).transpose(1, 2)
            if left.dim() == 2:
                pieces[_full(name, "weight")] = (left, right)
                squares += left.square().sum(1) * right.square().sum(1)
            else:  # the layer was applied in several places
                gradients = left.flatten(1, -2).transpose(1, 2) @ right.flatten(1, -2)
                pieces[_full(name, "weight")] = (gradients.flatten(1), None)
                squares += gradients.square().sum((1, 2))
        if part.bias is not None and _is_trained(name, "bias", only):
            at = 1 if isinstance(part, nn.Conv2d) else -1  # where the outputs are
            gradients = slope.movedim(at, 1).flatten(2).sum(2) if slope.dim() > 2 else slope
            pieces[_full(name, "bias")] = (gradients, None)
            squares += gradients.square().sum(1)
    norms = squares.sqrt()
    scales = torch.where(norms > clip, clip / norms, 1.0)
    totals = {
        name: (scales @ left if right is None else (scales[:, None] * left).T @ right).flatten()
        for name, (left, right) in pieces.items()
    }
    return totals, float(loss.detach())


def _windows(images: Tensor, part: nn.Conv2d) -> Tensor:
    """Return what a convolution sees in each place, [N, C·h·w, places].

    It is `torch.nn.functional.unfold`, which took five times as long.
    """
    (height, width), (down, across) = part.kernel_size, part.stride
    assert not isinstance(part.padding, str)  # such a network is not made of plain layers
    above, beside = part.padding
    padded = nn.functional.pad(images.contiguous(), (beside, beside, above, above))
    windows = padded.unfold(2, height, down).unfold(3, width, across)
    return windows.permute(0, 1, 4, 5, 2, 3).flatten(1, 3).flatten(2)


def _is_trained(layer: str, own: str, only: Collection[str] | None) -> bool:
    return only is None or _full(layer, own) in only


def _full(layer: str, own: str) -> str:
    """Return a parameter's name; a network that is a single layer has no name before it."""
    return f"{layer}.{own}" if layer else own


def _is_plain(part: nn.Module) -> bool:
    if type(part) is nn.Linear:
        return True
    if type(part) is nn.Conv2d:
        zeros = part.padding_mode == "zeros" and not isinstance(part.padding, str)
        return zeros and part.groups == 1 and part.dilation == (1, 1)
    if isinstance(part, Network):
        kind = type(part)
        return kind.forward is Network.forward and kind.represent is Network.represent
    return type(part) in _WITHOUT_PARAMETERS


# ----------------------------------------------------------------------------------------
# Gradients of single samples, clipped and noised: a step of DP-SGD.

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
