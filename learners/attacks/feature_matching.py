r"""Inversion of one picture's gradient in networks with max-pools and ReLUs.

Such a network is a patchwork of linear pieces, and the distance between gradients is full of false
minima. Three things lead around them.

1. The first dense layer gives its input away exactly. With the gradients W' and b' of its weights
   and bias, and one picture, :math:`W' = b' a^\top`; so the features a and the slope of the loss
   with respect to them, :math:`W^\top b'`, are known [Phong2018]_, and neither the label nor the
   layers above matter any more. What is sought is a picture with these features whose
   convolutions have the observed gradients.
2. Maxima are softened, and hardened again as the search goes on: a window of a pool counts by
   softmax(β v), and a ReLU is :math:`\log(1 + e^{2 \beta v}) / 2 \beta`.
3. Attempts from different starts end in different false minima, whose errors have little in common.
   The median of all is nearer to the truth than any of them [Yin2021]_, and is where the next stage
   starts, with a little noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, grad_and_value, vmap

from coalitions.errors import InvalidInputError
from learners.attacks.gradient_matching import Recovered, total_variation_of
from learners.models.network import Network
from learners.rows.parameters import Layout
from learners.settings.seeding import stream

FEATURES_COUNT, LAST_WEIGHTS_COUNT = 3.0, 3.0
"""Weights of the features, and of the last convolution's gradient, among the relative errors."""


def invert_features(
    module: nn.Module,
    model: Tensor,
    gradient: Tensor,
    shape: tuple[int, int, int],
    *,
    stages: int = 4,
    steps: int = 600,
    attempts: int = 8,
    total_variation: float = 3e-3,
    bounds: tuple[float, float] = (-1.0, 1.0),
    seed: int = 0,
) -> Recovered:
    """Return the picture [1, C, H, W] whose gradient at a model was observed.

    The batch must have had one picture. Where the first layer is dense, it is read off.

    Parameters
    ----------
    module
        A `learners.models.Network`; its weights are overwritten.
    model
        The model the client started from.
    gradient
        What was observed, flat.
    shape
        Of a picture: channels, height, width.
    stages
        Times all attempts are made; from the second on, near the median of the last.
    steps
        Steps of Adam in the first stage; later ones have half as many.
    attempts
        Attempts in a stage.
    total_variation
        Weight of the mean difference between neighbouring pixels.
    bounds
        Least and largest value of a pixel.
    seed
        Of the starts.
    """
    layout = Layout.of(module)
    layout.unpack(model, module)
    if not isinstance(module, Network):
        raise InvalidInputError("features are inverted of a learners.models.Network only")
    observed = {
        name: gradient[at].view(layout.shapes[name])
        for name, at in layout.columns.items()
        if at.stop <= layout.n_parameters
    }
    name, dense = _first_dense(module)
    slope = observed[f"{name}.bias"]
    features = slope @ observed[f"{name}.weight"] / slope.square().sum()  # least squares over rows
    lowest, highest = bounds
    if not list(module.features.parameters()):
        return Recovered(features.view(1, *shape).clamp(lowest, highest), 0.0)
    soft, sharpen = _softened(module.features)
    weights = {key: value.detach() for key, value in soft.named_parameters()}
    targets = {key: observed[f"features.{key}"] for key in weights}
    slope_at_features = slope @ dense.weight.detach()
    last = [key for key in weights if key.endswith("weight")][-1]

    def valued(weights: dict[str, Tensor], image: Tensor) -> tuple[Tensor, Tensor]:
        found = functional_call(soft, weights, (image[None],)).flatten()
        return (found * slope_at_features).sum(), found

    def error(image: Tensor) -> Tensor:
        slopes, found = grad(valued, has_aux=True)(weights, image)
        total = FEATURES_COUNT * _relative(found, features)
        for key, target in targets.items():
            weight = LAST_WEIGHTS_COUNT if key == last else 1.0
            total = total + weight * _relative(slopes[key], target)
        return total + total_variation * total_variation_of(image)

    draws = stream(seed, "inversion")
    middle, spread = torch.full(shape, lowest + 0.25 * (highest - lowest)), 0.15
    errors = torch.full((attempts,), math.inf)
    for stage in range(stages):
        noise = torch.randn((attempts, *shape), generator=draws)
        # Half of a picture's range has standard deviation 1 here.
        width = (highest - lowest) / 2 * (2 * spread if stage == 0 else spread)
        start = (middle + width * noise).clamp(lowest, highest)
        first = stage == 0
        images, errors = _descend(
            vmap(grad_and_value(error)),
            start,
            steps if first else steps // 2,
            rate=0.05 if first else 0.02,
            sharpness=(4.0, 60.0) if first else (15.0, 100.0),
            sharpen=sharpen,
            bounds=bounds,
        )
        middle = images.median(dim=0).values
    return Recovered(middle[None], float(errors.min()))


def _descend(
    slopes_of: Callable[[Tensor], tuple[Tensor, Tensor]],
    images: Tensor,
    steps: int,
    *,
    rate: float,
    sharpness: tuple[float, float],
    sharpen: Callable[[float], None],
    bounds: tuple[float, float],
) -> tuple[Tensor, Tensor]:
    """Return the pictures after Adam's steps, each for itself, and their errors."""
    m, v = torch.zeros_like(images), torch.zeros_like(images)
    soft, hard = sharpness
    errors = torch.full((len(images),), math.inf)
    for t in range(1, steps + 1):
        done = t / steps
        sharpen(soft * (hard / soft) ** min(1.0, done / 0.8))
        slope, errors = slopes_of(images)
        m.lerp_(slope, 0.1)
        v.lerp_(slope.square(), 0.001)
        step = (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
        pace = rate * (0.5 * (1 + math.cos(math.pi * done)) + 0.01)
        images = (images - pace * step).clamp(*bounds)
    return images, errors


def _relative(found: Tensor, wanted: Tensor) -> Tensor:
    return (found - wanted).square().sum() / wanted.square().sum().clamp(min=1e-30)


def _first_dense(module: Network) -> tuple[str, nn.Linear]:
    dense = [
        (name, part)
        for name, part in module.named_modules()
        if isinstance(part, nn.Linear) and not name.startswith("features.")
    ]
    if not dense or dense[0][1].bias is None:
        raise InvalidInputError("features are read off a dense layer with a bias: there is none")
    return dense[0]


class _SoftPool(nn.Module):
    """A max-pool whose windows count by softmax(β v)."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side
        self.sharpness = 1.0

    def forward(self, images: Tensor) -> Tensor:
        n, channels, height, width = images.shape
        side, down, across = self.side, height // self.side, width // self.side
        windows = images[:, :, : down * side, : across * side]
        windows = windows.reshape(n, channels, down, side, across, side)
        values = windows.transpose(3, 4).flatten(4)
        return (torch.softmax(self.sharpness * values, -1) * values).sum(-1)


class _SoftRelu(nn.Module):
    """A ReLU without a corner, the sharper the closer."""

    def __init__(self) -> None:
        super().__init__()
        self.sharpness = 1.0

    def forward(self, images: Tensor) -> Tensor:
        return nn.functional.softplus(2 * self.sharpness * images) / (2 * self.sharpness)


def _softened(features: nn.Module) -> tuple[nn.Sequential, Callable[[float], None]]:
    """Return the convolutions with soft maxima, and how to set their sharpness β."""
    if not isinstance(features, nn.Sequential):
        raise InvalidInputError("features are inverted of a chain of layers only")
    parts: list[nn.Module] = []
    for part in features:
        if isinstance(part, nn.MaxPool2d):
            if part.kernel_size != part.stride or not isinstance(part.kernel_size, int):
                raise InvalidInputError("a max-pool whose windows overlap cannot be softened here")
            parts.append(_SoftPool(part.kernel_size))
        else:
            parts.append(_SoftRelu() if isinstance(part, nn.ReLU) else part)
    soft = nn.Sequential(*parts)

    def sharpen(sharpness: float) -> None:
        for part in soft:
            if isinstance(part, (_SoftPool, _SoftRelu)):
                part.sharpness = sharpness

    return soft, sharpen
