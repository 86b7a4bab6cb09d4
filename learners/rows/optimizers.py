"""Optimisers of one flat tensor: a step is a few operations, whatever the network.

Those of every day compute what `torch.optim` computes, to the last bit (a test compares them),
without its per-step bookkeeping and without the seconds its first use takes to import the compiler.
The others are `torch.optim`'s own.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from learners.settings.schedules import OPTIMIZERS

Step = Callable[[Tensor], None]
"""Moves the parameters it was made for, given their gradient; or the first so many of them."""


def optimizer(
    parameters: Tensor,
    name: str,
    lr: float,
    momentum: float = 0.0,
    *,
    weight_decay: float | None = None,
    max_norm: float | None = None,
    trained: Tensor | None = None,
) -> Step:
    """Return the step of an optimiser with fresh state.

    Parameters
    ----------
    parameters
        The tensor to move, in place: flat, or with a row for each of several models.
    name
        ``sgd`` (with `momentum`), ``adam`` (β = 0.9, 0.999, ε = 1e-8), or another one of
        `learners.settings.schedules.OPTIMIZERS` with its defaults.
    lr
        Learning rate.
    momentum
        Share of the last step's direction that is kept; for sgd only.
    weight_decay
        As in `torch.optim`; the optimiser's own default if None.
    max_norm
        Length that a gradient is cut to if it is longer, before weights decay.
    trained
        1 where parameters may move, 0 where they may not; all may if None. Their gradient is 0, but
        a decay would move them.
    """
    if name == "sgd":
        step = _momentum(parameters, lr, momentum) if momentum else _sgd(parameters, lr)
        step = _decaying(parameters, weight_decay, step) if weight_decay else step
    elif name == "adam":
        step = _adam(parameters, lr)
        step = _decaying(parameters, weight_decay, step) if weight_decay else step
    else:
        step = _of_torch(parameters, name, lr, weight_decay)
    if trained is not None and (weight_decay or name not in ("sgd", "adam")):
        step = _holding(parameters, trained == 0, step)
    return step if max_norm is None else _clipping(max_norm, step)


def _decaying(parameters: Tensor, weight_decay: float, then: Step) -> Step:
    def step(gradient: Tensor) -> None:
        then(gradient.add(parameters[: len(gradient)], alpha=weight_decay))

    return step


def _holding(parameters: Tensor, fixed: Tensor, then: Step) -> Step:
    held = parameters[fixed]

    def step(gradient: Tensor) -> None:
        then(gradient)
        parameters[fixed] = held

    return step


def _clipping(max_norm: float, then: Step) -> Step:
    """Cut gradients as `torch.nn.utils.clip_grad_norm_` does."""

    def step(gradient: Tensor) -> None:
        then(gradient * (max_norm / (gradient.norm() + 1e-6)).clamp(max=1.0))

    return step


def _of_torch(parameters: Tensor, name: str, lr: float, weight_decay: float | None) -> Step:
    moved = nn.Parameter(parameters.detach())  # the same memory
    more = {} if weight_decay is None else {"weight_decay": weight_decay}
    theirs = getattr(torch.optim, OPTIMIZERS[name])([moved], lr=lr, **more)

    def step(gradient: Tensor) -> None:
        moved.grad = gradient
        theirs.step()

    return step


def _sgd(parameters: Tensor, lr: float) -> Step:
    def step(gradient: Tensor) -> None:
        parameters[: len(gradient)].add_(gradient, alpha=-lr)

    return step


def _momentum(parameters: Tensor, lr: float, momentum: float) -> Step:
    velocity = torch.zeros_like(parameters)

    def step(gradient: Tensor) -> None:
        n = len(gradient)
        kept = velocity[:n].mul_(momentum).add_(gradient)
        parameters[:n].add_(kept, alpha=-lr)

    return step


def _adam(parameters: Tensor, lr: float) -> Step:
    r"""Adam [Kingma2015]_, Algorithm 1.

    .. math:: \theta \leftarrow \theta - \eta\, \hat m / (\sqrt{\hat v} + \epsilon)
    """
    beta1, beta2, epsilon = 0.9, 0.999, 1e-8
    all_m, all_v = torch.zeros_like(parameters), torch.zeros_like(parameters)
    t = 0

    def step(gradient: Tensor) -> None:
        nonlocal t
        t += 1
        n = len(gradient)
        m, v = all_m[:n], all_v[:n]
        m.lerp_(gradient, 1 - beta1)
        v.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        spread = v.sqrt().div_(math.sqrt(1 - beta2**t)).add_(epsilon)
        parameters[:n].addcdiv_(m, spread, value=-lr / (1 - beta1**t))

    return step
