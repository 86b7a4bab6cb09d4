r"""Inversion: recover a client's pictures from the gradient that its upload reveals.

An attacker who knows the learning rate η, the model w that a client received and the model w' that
it sent, knows :math:`(w - w') / \eta`. After one step of SGD this is the gradient g of the client's
batch; after several steps it is a sum of gradients. `invert` searches pictures whose gradient is
like g. `invert_features` does so for one picture in networks with max-pools and ReLUs; it matches
the features that the first dense layer reveals [Phong2018]_ and takes medians of many attempts
[Yin2021]_.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, grad_and_value, vmap

from coalitions.errors import InvalidInputError
from learners.models.network import Network
from learners.rows.parameters import Layout
from learners.settings.seeding import stream


@dataclass(frozen=True)
class Recovered:
    """Pictures an attack found [N, C, H, W], and how far their gradient is from the observed."""

    images: Tensor
    distance: float


def gradient_from_upload(received: Tensor, sent: Tensor, lr: float, layout: Layout) -> Tensor:
    """Return the flat gradient that an upload tells of, if it was one step of SGD."""
    return layout.parameters(received - sent) / lr


def inferred_label(gradient: Tensor, layout: Layout) -> int:
    """Return the label of the only image of a batch [Zhao2020]_.

    The gradient of cross-entropy is p − y at the last bias: negative for the true class alone.
    """
    names = layout.classifiers["head"]
    (bias,) = (name for name in names if len(layout.shapes[name]) == 1)
    return int(gradient[layout.columns[bias]].argmin())


def invert(
    module: nn.Module,
    model: Tensor,
    gradient: Tensor,
    shape: tuple[int, int, int],
    labels: Tensor,
    *,
    method: Literal["dlg", "cosine"] = "cosine",
    total_variation: float = 1e-2,
    steps: int = 600,
    restarts: int = 1,
    seed: int = 0,
    bounds: tuple[float, float] | None = None,
) -> Recovered:
    r"""Return pictures whose gradient at a model looks like one that was observed.

    ``dlg`` minimises :math:`\lVert \nabla L(x) - g \rVert^2` by L-BFGS [Zhu2019]_, Algorithm 1,
    with the labels known; ``cosine`` minimises, by the signs of Adam's gradients [Geiping2020]_,
    Eq. (4),

    .. math:: 1 - \frac{\langle \nabla L(x), g \rangle}{\lVert \nabla L(x) \rVert \lVert g \rVert}
              + \alpha\,\mathrm{TV}(x).

    Parameters
    ----------
    module
        The network; its weights are overwritten.
    model
        The model the client started from.
    gradient
        What was observed, flat.
    shape
        Of a picture: channels, height, width.
    labels
        Labels of the pictures, see `inferred_label`.
    method
        ``dlg`` or ``cosine``.
    total_variation
        α; for ``cosine``.
    steps
        Steps of the optimiser; one of L-BFGS has up to 20 evaluations.
    restarts
        Attempts from different starts; the one with the least distance counts.
    seed
        Of the starts.
    bounds
        Least and largest value of a pixel, if the attacker knows them.
    """
    layout = Layout.of(module)
    layout.unpack(model, module)
    module.eval()
    parameters = list(module.parameters())
    observed = gradient.detach()

    def gradient_of(images: Tensor) -> Tensor:
        loss = nn.functional.cross_entropy(module(images), labels)
        parts = torch.autograd.grad(loss, parameters, create_graph=True)
        return torch.cat([part.reshape(-1) for part in parts])

    def distance(images: Tensor) -> Tensor:
        found = gradient_of(images)
        if method == "dlg":
            return (found - observed).square().sum()
        return 1 - torch.cosine_similarity(found, observed, dim=0)

    attempts = []
    with torch.enable_grad():
        for attempt in range(restarts):
            start = torch.randn(
                (len(labels), *shape), generator=stream(seed, "inversion", attempt)
            ).to(model)
            images = start.requires_grad_(True)
            if method == "dlg":
                _descend_lbfgs(images, distance, steps)
            else:
                _descend_signs(images, distance, steps, total_variation, bounds)
            found = images.detach()
            if bounds is not None:
                found = found.clamp(*bounds)
            attempts.append(Recovered(found, float(distance(found).detach())))
    return min(attempts, key=lambda each: each.distance if math.isfinite(each.distance) else 1e300)


def total_variation_of(images: Tensor) -> Tensor:
    """Return the mean absolute difference between neighbouring pixels.

    Examples
    --------
    >>> float(total_variation_of(torch.tensor([[[[0.0, 1.0], [0.0, 1.0]]]])))
    1.0
    """
    across = (images[..., :, 1:] - images[..., :, :-1]).abs().mean()
    return across + (images[..., 1:, :] - images[..., :-1, :]).abs().mean()


def likeness(original: Tensor, recovered: Tensor, value_range: float) -> tuple[float, float]:
    """Return PSNR in decibels and SSIM of one recovered picture [C, H, W]."""
    from skimage.metrics import peak_signal_noise_ratio, structural_similarity

    one, other = (each.detach().cpu().double().numpy() for each in (original, recovered))
    window = min(7, *one.shape[1:])
    window -= 1 - window % 2
    similar = structural_similarity(
        one, other, data_range=value_range, channel_axis=0, win_size=window
    )
    return (
        float(peak_signal_noise_ratio(one, other, data_range=value_range)),
        float(similar),
    )


def _descend_lbfgs(images: Tensor, distance: Callable[[Tensor], Tensor], steps: int) -> None:
    optimizer = torch.optim.LBFGS([images], line_search_fn="strong_wolfe")

    def closure() -> float:
        optimizer.zero_grad()
        value = distance(images)
        (images.grad,) = torch.autograd.grad(value, images)
        return float(value.detach())

    for _ in range(steps):
        if not math.isfinite(float(optimizer.step(closure))):  # type: ignore[no-untyped-call]
            return


def _descend_signs(
    images: Tensor,
    distance: Callable[[Tensor], Tensor],
    steps: int,
    total_variation: float,
    bounds: tuple[float, float] | None,
) -> None:
    """Adam on the signs of the gradient, its rate a tenth after 3/8, 5/8 and 7/8 of the way."""
    lr, beta1, beta2, small = 0.1, 0.9, 0.999, 1e-8
    m, v = torch.zeros_like(images), torch.zeros_like(images)
    drops = {steps * part // 8 for part in (3, 5, 7)}
    for t in range(1, steps + 1):
        value = distance(images) + total_variation * total_variation_of(images)
        (slope,) = torch.autograd.grad(value, images)
        with torch.no_grad():
            lr = lr / 10 if t in drops else lr
            m.lerp_(slope.sign(), 1 - beta1)
            v.mul_(beta2).add_(slope.sign().square(), alpha=1 - beta2)
            spread = (v / (1 - beta2**t)).sqrt().add_(small)
            images.addcdiv_(m, spread, value=-lr / (1 - beta1**t))
            if bounds is not None:
                images.clamp_(*bounds)


# ----------------------------------------------------------------------------------------
# Inversion by features, for networks with max-pools and ReLUs and for one picture.
#
# Such a network is piecewise linear, and the distance between gradients has many false minima.
# Three steps avoid them.
#
# 1. The first dense layer reveals its input. Let W' and b' be the gradients of its weights and
#    bias. For one picture W' = b' aᵀ. So the features a, and the slope of the loss with respect to
#    them, Wᵀb', are known [Phong2018]. Neither the label nor the layers above matter any more. We
#    search a picture with these features whose convolutions have the observed gradients.
# 2. Maxima are softened, and hardened again during the search. A window of a pool counts by
#    softmax(β v), and a ReLU is log(1 + exp(2βv)) / 2β.
# 3. Attempts from different starts end in different false minima with unrelated errors. The median
#    of all attempts is nearer to the truth than any of them [Yin2021]. The next stage starts there,
#    with a little noise.

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
