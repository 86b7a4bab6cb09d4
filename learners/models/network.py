"""What all networks share: features, hidden layers, a linear head, and seeded initial weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from coalitions.errors import InvalidInputError
from coalitions.registry import Registry
from learners.settings.seeding import generator

__all__ = ["MODELS", "Network", "Shape", "build_model", "classifier_parameters"]

Shape = tuple[int, ...]
"""Shape of one sample: channels, height and width of a picture."""


class Network(nn.Module):
    """A network in three parts: ``head(hidden(features(inputs)))``.

    Parameters
    ----------
    features
        Inputs, such as pictures [N, C, H, W], to vectors [N, F]; the convolutions.
    hidden
        Vectors to vectors; the fully connected layers before the last one.
    head
        The last layer, one weight vector and one bias per class or output.

    Notes
    -----
    Wherever a ReLU and a max-pool meet, the pool comes first: both orders give the same numbers,
    because the ReLU is monotone, and this one has a quarter of the values to clip.
    """

    pictures: ClassVar[bool] = False
    """Whether the network takes pictures and nothing else."""

    def __init__(self, features: nn.Module, hidden: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.features = features
        self.hidden = hidden
        self.head = head

    def represent(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        """Return what the head sees: one vector per sample, or per token."""
        vectors: Tensor = self.hidden(self.features(*inputs, **named))
        return vectors

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        """Return the logits [N, classes], or other outputs."""
        outputs: Tensor = self.head(self.represent(*inputs, **named))
        return outputs


MODELS = Registry[Callable[[Shape, int], nn.Module]]("model", "learners.models")


def build_model(name: str, *, shape: Shape, n_classes: int, seed: int) -> nn.Module:
    """Return the network `name` for inputs of `shape`, with weights that depend on `seed` only.

    torch's global random state is left as it was.

    Examples
    --------
    >>> model = build_model("lenet-5", shape=(1, 28, 28), n_classes=10, seed=0)
    >>> sum(p.numel() for p in model.parameters())
    61706
    """
    make = MODELS[name]
    if min(*shape, n_classes) < 1:
        raise InvalidInputError(
            f"inputs of shape {shape} in {n_classes} classes cannot be: all sizes are positive"
        )
    if len(shape) != 3 and getattr(make, "pictures", False):
        raise InvalidInputError(
            f"the network {name} is for pictures [channels, height, width], not for inputs of"
            f" shape {shape}; mlp takes any"
        )
    start = int(generator(seed, "initial weights").integers(2**63))
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which would also reset the generators of the GPUs.
        torch.default_generator.manual_seed(start)
        return make(shape, n_classes)


def classifier_parameters(
    module: nn.Module, *, cut: Literal["head", "dense"] = "head"
) -> frozenset[str]:
    """Return the names of the parameters (and buffers) of the classifier; the rest are features.

    Parameters
    ----------
    module
        A `Network`, or any module whose last linear layer is its classifier.
    cut
        ``"head"``: the last linear layer (FedC²I's φ, FedRep's head); ``"dense"``: every layer
        after the convolutions, which is how the pFedSV paper counts VGG-19's classifier.

    Examples
    --------
    >>> model = build_model("mlp", shape=(1, 8, 8), n_classes=10, seed=0)
    >>> sorted(classifier_parameters(model))
    ['head.bias', 'head.weight']
    """
    if isinstance(module, Network):
        parts = ["head."] if cut == "head" else ["head.", "hidden."]
    elif cut == "dense":
        raise InvalidInputError(
            f"{type(module).__name__} is not a learners.models.Network: it has no dense part to "
            "cut at, only its last linear layer"
        )
    else:
        linear = [name for name, part in module.named_modules() if isinstance(part, nn.Linear)]
        if not linear:
            raise InvalidInputError(
                f"{type(module).__name__} has no linear layer, so it has no classifier to share "
                "or keep; derive it from learners.models.Network"
            )
        parts = [f"{linear[-1]}." if linear[-1] else ""]
    return frozenset(name for name in module.state_dict() if name.startswith(tuple(parts)))
