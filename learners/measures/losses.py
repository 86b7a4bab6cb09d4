"""Losses: what training makes small, for each kind of targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from coalitions.errors import InvalidInputError
from coalitions.registry import Registry
from learners.data.client_data import IGNORED, Kind, Targets
from learners.devices import to_device, to_host

LossFunction = Callable[[Tensor, Tensor], Tensor]
"""A loss of a user's own: outputs and targets of a batch to one number, or to one a sample."""


class Criterion:
    """A loss of outputs [N, …] against targets [N, …].

    A subclass says what each sample's loss is; the batch's is their mean.
    """

    kinds: ClassVar[tuple[Kind, ...]] = ()
    name: str = ""

    def each(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of every sample, [N]."""
        raise NotImplementedError

    def mean(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return self.each(outputs, targets).mean()

    def masked(self, outputs: Tensor, targets: Tensor, real: Tensor) -> Tensor:
        """Return the loss of a batch of which only some samples are `real` (1 or 0), [N]."""
        return (self.each(outputs, targets) * real).sum() / real.sum()

    def total(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the sum of the samples' losses."""
        return self.each(outputs, targets).sum()

    def for_client(self, targets: Tensor, n_outputs: int) -> Criterion:
        """Return the loss of a client with these training targets; the same for everyone here."""
        return self


LOSSES: Registry[type[Criterion]] = Registry("loss", "learners.measures.losses")

USUAL: dict[Kind, str] = {
    "classification": "cross-entropy",
    "multi-label": "bce",
    "regression": "mse",
    "next-token": "cross-entropy",
}
"""The loss of a run that names none."""


@LOSSES.register("cross-entropy")
class CrossEntropy(Criterion):
    """Cross-entropy of classes or of next tokens; a sample's is the mean over its tokens."""

    kinds: ClassVar[tuple[Kind, ...]] = ("classification", "next-token")
    name = "cross-entropy"
    weights: Tensor | None = None

    def each(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy of every sample."""
        if targets.dim() == 1:
            return functional.cross_entropy(outputs, targets, self.weights, reduction="none")
        tokens = functional.cross_entropy(outputs.movedim(-1, 1), targets, reduction="none")
        counted = (targets != IGNORED).sum(1).clamp(min=1)
        return tokens.sum(1) / counted

    def mean(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean, over samples or over all tokens."""
        if targets.dim() == 1:
            return functional.cross_entropy(outputs, targets, self.weights)
        flat = targets.flatten()
        total = functional.cross_entropy(outputs.flatten(0, 1), flat, reduction="sum")
        return total / (flat != IGNORED).sum().clamp(min=1)

    def masked(self, outputs: Tensor, targets: Tensor, real: Tensor) -> Tensor:
        """Return the mean over the real samples, or over all their tokens."""
        if targets.dim() == 1:
            return super().masked(outputs, targets, real)
        tokens = functional.cross_entropy(outputs.movedim(-1, 1), targets, reduction="none")
        counted = (targets != IGNORED) * real[:, None]
        return (tokens * counted).sum() / counted.sum().clamp(min=1)

    def total(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the sum over samples."""
        if targets.dim() == 1:
            return functional.cross_entropy(outputs, targets, self.weights, reduction="sum")
        return self.each(outputs, targets).sum()


CROSS_ENTROPY = CrossEntropy()
"""The loss of classes."""


@LOSSES.register("balanced-cross-entropy")
class BalancedCrossEntropy(CrossEntropy):
    r"""Cross-entropy where every class weighs the same at a client, however rare it is there.

    A sample of class c weighs :math:`N / (C N_c)`, with C classes that the client has.
    """

    kinds = ("classification",)
    name = "balanced-cross-entropy"

    def for_client(self, targets: Tensor, n_outputs: int) -> Criterion:
        """Return the loss with the weights of a client's own classes."""
        counts = torch.bincount(to_host(targets), minlength=n_outputs).float()
        own = BalancedCrossEntropy()
        weights = torch.where(
            counts > 0, len(targets) / (counts.clamp(min=1) * (counts > 0).sum()), 0.0
        )
        own.weights = to_device(weights, targets.device)
        return own


@LOSSES.register("bce")
class BinaryCrossEntropy(Criterion):
    """Binary cross-entropy of every label; a sample's is the mean over its labels."""

    kinds = ("multi-label",)
    name = "bce"

    def each(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of every sample."""
        losses = functional.binary_cross_entropy_with_logits(
            outputs, targets.to(outputs), reduction="none"
        )
        return losses.flatten(1).mean(1)


@LOSSES.register("mse")
class SquaredError(Criterion):
    """Squared error; a sample's is the mean over its numbers."""

    kinds = ("regression",)
    name = "mse"

    def each(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of every sample."""
        apart = functional.mse_loss(
            outputs.reshape(targets.shape), targets.to(outputs), reduction="none"
        )
        return apart.reshape(len(targets), -1).mean(1)


@LOSSES.register("huber")
class HuberLoss(Criterion):
    """Squared error up to 1, and from there on straight: outliers pull less."""

    kinds = ("regression",)
    name = "huber"

    def each(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of every sample."""
        apart = functional.huber_loss(
            outputs.reshape(targets.shape), targets.to(outputs), reduction="none"
        )
        return apart.reshape(len(targets), -1).mean(1)


class OwnLoss(Criterion):
    """A function of the user's: it is given outputs and targets, and returns a loss.

    Parameters
    ----------
    function
        To one number for the batch, or to one for each sample.
    """

    def __init__(self, function: LossFunction) -> None:
        self._function = function
        self.name = getattr(function, "__name__", type(function).__name__)

    def each(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of every sample: one by one, if the function only tells the batch's."""
        given = self._function(outputs, targets)
        if given.dim() == 1 and len(given) == len(targets):
            return given
        alone = [
            self._function(outputs[i : i + 1], targets[i : i + 1]) for i in range(len(targets))
        ]
        return torch.stack(alone) if alone else outputs.new_zeros(0)

    def mean(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of a batch."""
        given = self._function(outputs, targets)
        return given.mean() if given.dim() else given


def criterion_of(loss: str | LossFunction, targets: Targets) -> Criterion:
    """Return a loss by name (``auto``: what is usual with the targets) or a function's.

    Examples
    --------
    >>> criterion_of("auto", Targets("regression", 1)).name
    'mse'
    """
    if callable(loss):
        return OwnLoss(loss)
    name = USUAL[targets.kind] if loss == "auto" else loss
    chosen = LOSSES[name]
    if targets.kind not in chosen.kinds:
        fitting = [each for each in LOSSES.names() if targets.kind in LOSSES[each].kinds]
        raise InvalidInputError(
            f"the loss {name} is not for {targets.kind}; there are: {', '.join(fitting)}"
        )
    return chosen()
