r"""Inversion: recover a client's pictures from what it uploads.

Whoever knows the model w a client started from, the model it sent and the learning rate η knows
:math:`(w - w') / \eta`: after one step of SGD that is the gradient g of the client's batch, after
several a sum of gradients. Pictures are then sought whose gradient looks like it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

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
