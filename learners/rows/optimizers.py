"""Optimisers of one flat tensor: a step is a few operations, whatever the network.

They compute what `torch.optim` computes, to the last bit (a test compares them), without its
per-step bookkeeping and without the seconds its first use takes to import the compiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

Step = Callable[[Tensor], None]
"""Moves the parameters it was made for, given their gradient."""


def optimizer(
    parameters: Tensor, name: Literal["sgd", "adam"], lr: float, momentum: float = 0.0
) -> Step:
    """Return the step of an optimiser with fresh state.

    Parameters
    ----------
    parameters
        The flat tensor to move, in place.
    name
        ``sgd`` (with `momentum`) or ``adam`` (β = 0.9, 0.999, ε = 1e-8).
    lr
        Learning rate.
    momentum
        Share of the last step's direction that is kept; for sgd only.
    """
    if name == "adam":
        return _adam(parameters, lr)
    return _momentum(parameters, lr, momentum) if momentum else _sgd(parameters, lr)


def _sgd(parameters: Tensor, lr: float) -> Step:
    def step(gradient: Tensor) -> None:
        parameters.add_(gradient, alpha=-lr)

    return step


def _momentum(parameters: Tensor, lr: float, momentum: float) -> Step:
    velocity = torch.zeros_like(parameters)

    def step(gradient: Tensor) -> None:
        velocity.mul_(momentum).add_(gradient)
        parameters.add_(velocity, alpha=-lr)

    return step


def _adam(parameters: Tensor, lr: float) -> Step:
    r"""Adam [Kingma2015]_, Algorithm 1.

    .. math:: \theta \leftarrow \theta - \eta\, \hat m / (\sqrt{\hat v} + \epsilon)
    """
    beta1, beta2, epsilon = 0.9, 0.999, 1e-8
    m, v = torch.zeros_like(parameters), torch.zeros_like(parameters)
    t = 0

    def step(gradient: Tensor) -> None:
        nonlocal t
        t += 1
        m.lerp_(gradient, 1 - beta1)
        v.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        spread = (v.sqrt() / math.sqrt(1 - beta2**t)).add_(epsilon)
        parameters.addcdiv_(m, spread, value=-lr / (1 - beta1**t))

    return step
