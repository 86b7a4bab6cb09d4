"""How much of a client's pictures an attacker recovers in the setting of a run.

A client with one picture takes one step of SGD with the run's network, learning rate and initial
model. What it uploads passes the gate that every upload passes, without noise and with it. The
attacker has both models. Then the same for a real round: several pictures, the run's epochs.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from coalitions.drawing.pictures import new_figure, plain_style
from coalitions.errors import InvalidInputError
from learners.algorithm import algorithm_of, build_algorithm
from learners.attacks.gradient_inversion import (
    gradient_from_upload,
    inferred_label,
    invert,
    invert_features,
    likeness,
)
from learners.client.client import Site, answer
from learners.client.tasks import train
from learners.data.client_data import ClientData, FederatedData, Split
from learners.models import build_model, suited_model
from learners.models.network import Network
from learners.privacy.mechanism import Privacy, privacy_of
from learners.rows.parameters import Layout
from learners.rows.workspace import Workspace
from learners.runs.network_checks import bound_to_weights, load_weights
from learners.runs.prepare import data_of
from learners.settings.config import RunConfig
from learners.settings.schedules import learning_rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AttackMethod = Literal["auto", "features", "dlg", "cosine"]

VALUE_RANGE = 2.0
"""Pixels are from −1 to 1."""

ROUND_PICTURES = 10
"""Pictures of the client in the real round."""

STEPS = {"features": 600, "dlg": 60, "cosine": 600}


@dataclass(frozen=True)
class Attacked:
    """One picture [C, H, W] and what was recovered of it, with PSNR in decibels and SSIM."""

    original: Tensor
    recovered: Tensor
    noised: Tensor

    @property
    def likeness(self) -> tuple[float, float]:
        """PSNR and SSIM of what was recovered without noise."""
        return likeness(self.original, self.recovered, VALUE_RANGE)

    @property
    def noised_likeness(self) -> tuple[float, float]:
        """The same under noise."""
        return likeness(self.original, self.noised, VALUE_RANGE)


@dataclass(frozen=True)
class Inversion:
    """The pictures of an attack, how it was made, and what it found after a real round.

    Attributes
    ----------
    pictures
        One entry a picture.
    method
        The attack.
    privacy
        The noise of the third row.
    round_psnr
        For each picture of the real round, the PSNR of the most similar one that was found;
        empty if none was attacked.
    """

    pictures: tuple[Attacked, ...]
    method: str
    privacy: Privacy
    round_psnr: tuple[float, ...]

    def document(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        plain, noised = (
            [each.likeness for each in self.pictures],
            [each.noised_likeness for each in self.pictures],
        )
        return {
            "method": self.method,
            "noise": self.privacy.noise,
            "clip": self.privacy.clip,
            "mode": self.privacy.mode,
            "psnr": [psnr for psnr, _ in plain],
            "ssim": [ssim for _, ssim in plain],
            "noised_psnr": [psnr for psnr, _ in noised],
            "noised_ssim": [ssim for _, ssim in noised],
            "median_psnr": statistics.median(psnr for psnr, _ in plain),
            "median_noised_psnr": statistics.median(psnr for psnr, _ in noised),
            "round_psnr": list(self.round_psnr),
        }


OnPicture = Callable[[int, Attacked], None]
"""Called after each picture with its number."""


def inversion_of(
    config: RunConfig,
    *,
    client: int = 0,
    pictures: int = 4,
    first: int = 0,
    method: AttackMethod = "auto",
    steps: int | None = None,
    privacy: Privacy | None = None,
    real_round: bool = True,
    on_picture: OnPicture | None = None,
) -> Inversion:
    """Return what an attacker recovers from uploads in the setting of a run.

    Parameters
    ----------
    config
        The run.
    client
        Whose training pictures to attack.
    pictures
        How many of them; each is uploaded alone.
    first
        Number of the first of them.
    method
        ``features`` (see `learners.attacks.gradient_inversion.invert_features`), ``dlg`` or
        ``cosine`` (see `learners.attacks.gradient_inversion.invert`); ``auto`` is ``features``
        for networks with ReLUs or max-pools.
    steps
        Steps of the attack's optimiser; the attack's own default if None.
    privacy
        The noise to attack through; the run's own if it has some, else σ = 1 and clip 1 in update
        mode.
    real_round
        Whether to attack a real round, too: it takes longer than some pictures alone.
    on_picture
        Called after each picture.
    """
    if config.optimizer != "sgd":
        raise InvalidInputError(
            f"the attack reads a gradient off a step of sgd, and the run's optimizer is"
            f" {config.optimizer}"
        )
    for name in ("weight_decay", "max_gradient_norm", "augment"):
        if getattr(config, name):
            raise InvalidInputError(
                "the attack reads a picture's gradient off a step of plain sgd, and the run has"
                f" {name} {getattr(config, name)}"
            )
    data = data_of(config)
    if not 0 <= client < config.clients:
        raise InvalidInputError(
            f"there is no client {client}; they are numbered 0 … {config.clients - 1}"
        )
    data.only_pictures("an inversion attack")
    train_data = data.clients[client].train
    pictures_there = train_data.inputs
    assert isinstance(pictures_there, Tensor)
    if pictures < 1 or not 0 <= first <= len(train_data) - pictures:
        after = f" after the first {first}" if first else ""
        raise InvalidInputError(
            f"client {client} has {len(train_data)} training pictures; {pictures} of them{after}"
            " cannot be attacked"
        )
    if config.model == "auto":
        config = replace(config, model=suited_model(data.inputs, data.targets))
    attacker = _Attacker(config, data, method, steps)
    if privacy is None:
        privacy = _noise_of(config, data, attacker.module)
    found = []
    for at in range(first, first + pictures):
        one = Split(pictures_there[at : at + 1], train_data.targets[at : at + 1])
        images = [
            attacker.recovered(*attacker.upload(one, mechanism, epochs=1), n_pictures=1)[0]
            for mechanism in (None, privacy)
        ]
        found.append(Attacked(pictures_there[at], *images))
        if on_picture is not None:
            on_picture(at, found[-1])
    best = attacker.after_a_round(train_data, pictures_there) if real_round else ()
    return Inversion(tuple(found), attacker.method, privacy, best)


class _Attacker:
    """The two sides of an attack on a run's network."""

    def __init__(
        self, config: RunConfig, data: FederatedData, method: AttackMethod, steps: int | None
    ) -> None:
        self.config, self.data = config, data
        self.module = self._network()
        self.method: Literal["features", "dlg", "cosine"] = (
            _suited_attack(self.module) if method == "auto" else method
        )
        self.steps = STEPS[self.method] if steps is None else steps

    def upload(
        self, split: Split, privacy: Privacy | None, *, epochs: int
    ) -> tuple[Tensor, Tensor]:
        """Return the model that a client with these pictures receives, and the one it sends."""
        module = self._network()
        client = ClientData(split, split, split, domain="", poisoned=False)
        here = Site(
            replace(self.config, clients=1, algorithm="fedavg", options={}, local_epochs=epochs),
            build_algorithm("fedavg", {}),
            Workspace(module, Layout.of(module), torch.device("cpu")),
            FederatedData(self.data.name, (client,), self.data.inputs, self.data.targets),
            privacy,
        )
        given = answer(here, train, 0, 1, {"model": here.initial}, {})
        assert given.reply is not None
        return here.initial, given.reply["model"]

    def recovered(
        self, received: Tensor, sent: Tensor, *, n_pictures: int, labels: Tensor | None = None
    ) -> Tensor:
        """Return the pictures [n, C, H, W] that whoever has both models finds.

        Several are sought with their labels known, by gradients: features are those of one picture.
        """
        layout = Layout.of(self.module)
        gradient = gradient_from_upload(received, sent, learning_rate(self.config, 1), layout)
        shape = self.data.only_pictures("an inversion attack")
        seed = self.config.seed
        if self.method == "features" and n_pictures == 1:
            return invert_features(
                self.module, received, gradient, shape, steps=self.steps, seed=seed
            ).images
        if labels is None:
            labels = torch.tensor([inferred_label(gradient, layout)])
        return invert(
            self.module,
            received,
            gradient,
            shape,
            labels,
            method="cosine" if self.method == "features" else self.method,
            steps=self.steps,
            seed=seed,
            bounds=(-1.0, 1.0),
        ).images

    def after_a_round(self, split: Split, pictures: Tensor) -> tuple[float, ...]:
        """Return how well each of a client's first pictures is found after a real round."""
        many = Split(pictures[:ROUND_PICTURES], split.targets[:ROUND_PICTURES])
        received, sent = self.upload(many, None, epochs=self.config.local_epochs)
        guesses = self.recovered(received, sent, n_pictures=len(many), labels=many.targets)
        return tuple(
            max(likeness(image, guess, VALUE_RANGE)[0] for guess in guesses)
            for image in pictures[:ROUND_PICTURES]
        )

    def _network(self) -> nn.Module:
        module = build_model(
            self.config.model,
            shape=self.data.shape,
            n_classes=self.data.n_classes,
            seed=self.config.seed,
        )
        if self.config.weights is not None:
            bound_to_weights(self.config)
            load_weights(Path(self.config.weights), module, self.config.model)
        return module


def _suited_attack(module: nn.Module) -> Literal["features", "dlg"]:
    has_corners = any(isinstance(part, (nn.ReLU, nn.MaxPool2d)) for part in module.modules())
    return "features" if has_corners and isinstance(module, Network) else "dlg"


def _noise_of(config: RunConfig, data: FederatedData, module: nn.Module) -> Privacy:
    """Return the run's own noise; σ = 1 and clip 1 if it has none."""
    if config.noise or config.epsilon is not None:
        own = privacy_of(
            config,
            algorithm_of(config),
            [len(each.train) for each in data.clients],
            has_batch_norm=any(
                isinstance(part, nn.modules.batchnorm._NormBase) for part in module.modules()
            ),
        )
        if own is not None:
            return own
    return Privacy("updates", 1.0, 1.0, config.delta)


# ----------------------------------------------------------------------------------------
# The picture of an inversion: originals, recovered, recovered under noise.


@plain_style()
def attacked_pictures(pictures: Sequence[Attacked], noise: float) -> Figure:
    """Return three rows of pictures; PSNR is above each recovered one."""
    figure = new_figure(1.5 + 1.2 * len(pictures), 4.2)
    grid = figure.subplots(3, len(pictures), squeeze=False)
    for column, each in zip(grid.T, pictures, strict=True):
        titles = ("", f"{each.likeness[0]:.1f} dB", f"{each.noised_likeness[0]:.1f} dB")
        shown = (each.original, each.recovered, each.noised)
        for axes, image, title in zip(column, shown, titles, strict=True):
            pixels = ((image + 1) / 2).clamp(0, 1).permute(1, 2, 0).numpy()
            axes.imshow(pixels.squeeze(), cmap="gray", vmin=0, vmax=1)
            axes.set_title(title, fontsize="small")
            axes.set_xticks([])
            axes.set_yticks([])
    for axes, label in zip(grid[:, 0], ("original", "recovered", f"σ = {noise:g}"), strict=True):
        axes.set_ylabel(label)
    return figure
