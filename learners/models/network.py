"""What all networks share: features, hidden layers, a linear head, and seeded initial weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from coalitions.errors import InvalidInputError, with_keywords
from coalitions.registry import Registry
from learners.data.client_data import ONLY, Input, Targets, classes, described, size_of
from learners.settings.seeding import generator

__all__ = [
    "MODELS",
    "Network",
    "Shape",
    "build_model",
    "classifier_parameters",
    "network_for",
    "seeded",
    "suited_model",
]

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


MODELS = Registry[Callable[..., nn.Module]]("model", "learners.models")
"""Functions of a shape and a number of classes (or outputs) to a network.

A class that has `for_data` is asked by that instead: it gets what the inputs and targets are.
"""


@with_keywords()
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
    if hasattr(make, "for_data"):
        return network_for(name, {ONLY: Input(shape)}, classes(n_classes), seed=seed)
    return seeded(lambda: make(shape, n_classes), seed)


def network_for(
    name: str, inputs: Mapping[str, Input], targets: Targets, *, seed: int
) -> nn.Module:
    """Return the network `name` for some data, with weights that depend on `seed` only.

    Examples
    --------
    >>> tokens, letters = {"inputs": Input((20,), (30,))}, Targets("next-token", 30)
    >>> network_for("gru", tokens, letters, seed=0)(torch.zeros(2, 20, dtype=torch.long)).shape
    torch.Size([2, 20, 30])
    """
    make = MODELS[name]
    if hasattr(make, "for_data"):
        return seeded(lambda: make.for_data(inputs, targets), seed)
    kinds = list(inputs.values())
    if len(kinds) != 1 or kinds[0].codes:
        raise InvalidInputError(
            f"the network {name} takes one input of real numbers, not {described(inputs)}; tabular"
            " takes any"
        )
    return build_model(name, shape=kinds[0].shape, n_classes=targets.n_outputs, seed=seed)


def seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Return a network whose initial weights depend on `seed` only.

    torch's global random state is left as it was.
    """
    start = int(generator(seed, "initial weights").integers(2**63))
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which would also reset the generators of the GPUs.
        torch.default_generator.manual_seed(start)
        return make()


def suited_model(inputs: Mapping[str, Input], targets: Targets) -> str:
    """Return the network for some data: LeNet-5 wants 28 pixels a side or more.

    Examples
    --------
    >>> suited_model({"inputs": Input((1, 8, 8))}, Targets("classification", 10))
    'mlp'
    >>> suited_model({"age": Input((1,)), "ward": Input((1,), (7,))}, Targets("regression", 1))
    'tabular'
    """
    kinds = list(inputs.values())
    if len(kinds) > 1:
        return "tabular"
    (only,) = kinds
    if targets.kind == "next-token" or (len(only.codes) == 1 and size_of(only) > 1):
        return "gru"
    if only.codes:
        return "tabular"
    if len(only.shape) == 2:
        return "gru"
    return "lenet-5" if len(only.shape) == 3 and min(only.shape[1:]) >= 28 else "mlp"


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
