"""What a federation's clients have: named tensors, targets, and what both of them are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from coalitions.errors import InvalidInputError

Kind = Literal["classification", "multi-label", "regression", "next-token"]
"""What targets can be."""

KINDS: tuple[Kind, ...] = get_args(Kind)

Batch: TypeAlias = Tensor | Mapping[str, Tensor]
"""What a network is given: one tensor as it is, several by name."""

ONLY = "inputs"
"""Name of the input of a federation that has one."""

IGNORED = -100
"""A next token that nothing is learnt from or measured on: padding."""


@dataclass(frozen=True)
class Input:
    """One of the tensors a network is given.

    Attributes
    ----------
    shape
        Of one sample: (channels, height, width) of a picture, (columns,) of a row of a table.
    codes
        Empty for real numbers. For codes 0, 1, …, how many values they have: one number for each
        column, or one for all of them.
    """

    shape: tuple[int, ...]
    codes: tuple[int, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the same as plain values."""
        return {"shape": list(self.shape), "codes": list(self.codes)}


@dataclass(frozen=True)
class Targets:
    """What is to be learnt.

    Attributes
    ----------
    kind
        ``classification``: int64 [N]; ``multi-label``: float32 [N, L] of zeros and ones;
        ``regression``: float32 [N] or [N, d]; ``next-token``: int64 [N, T], −100 where there is
        none.
    n_outputs
        Numbers a network gives for a sample, or for a token: classes, labels, d, or tokens.
    names
        What the classes, labels or numbers are called; none if they are only numbered.
    """

    kind: Kind
    n_outputs: int
    names: tuple[str, ...] = ()

    @property
    def has_classes(self) -> bool:
        """Whether one of several classes is right, so that there is an accuracy."""
        return self.kind in ("classification", "next-token")

    @property
    def n_counted(self) -> int:
        """How many counts tell what a client has: classes, labels, tokens; none of a regression."""
        return 0 if self.kind == "regression" else self.n_outputs

    def counts(self, truth: Tensor) -> Tensor:
        """Return how many of some targets are of each class, label or token; of numbers, none."""
        if self.kind == "regression":
            return torch.zeros(0, dtype=torch.int64)
        if self.kind == "multi-label":
            return (truth > 0.5).sum(0)
        return torch.bincount(truth[truth != IGNORED], minlength=self.n_outputs)

    def document(self) -> dict[str, Any]:
        """Return the same as plain values."""
        return {"kind": self.kind, "n_outputs": self.n_outputs, "names": list(self.names)}


@dataclass(frozen=True, eq=False)
class Split:
    """Samples and their targets, on the CPU: inputs [N, …] (one tensor, or several by name)."""

    inputs: Batch
    targets: Tensor

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def named(self) -> Mapping[str, Tensor]:
        """The inputs by name."""
        return {ONLY: self.inputs} if isinstance(self.inputs, Tensor) else self.inputs


@dataclass(frozen=True, eq=False)
class ClientData:
    """One client's data.

    Attributes
    ----------
    domain
        ``""`` where there are no domains.
    name
        What the client is called; by its number if that is empty.
    """

    train: Split
    validation: Split
    test: Split
    domain: str = ""
    poisoned: bool = False
    name: str = ""


@dataclass(frozen=True, eq=False)
class FederatedData:
    """All clients' data, what a network is given of them, and what it is to learn.

    Attributes
    ----------
    inputs
        What each input is, by name.
    targets
        What the targets are.
    told
        A sentence that says what was done with a user's own data.
    """

    name: str
    clients: tuple[ClientData, ...]
    inputs: Mapping[str, Input]
    targets: Targets
    told: str = ""

    @property
    def n_classes(self) -> int:
        """Number of classes; of labels, or of numbers, where there are none."""
        return self.targets.n_outputs

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the one input: (channels, height, width) of pictures."""
        if len(self.inputs) != 1:
            raise InvalidInputError(
                f"{self.name} has several inputs ({', '.join(self.inputs)}), so it has no one shape"
            )
        (only,) = self.inputs.values()
        return only.shape

    @property
    def names(self) -> tuple[str, ...]:
        """What the clients are called."""
        return tuple(each.name or f"client {i}" for i, each in enumerate(self.clients))

    @property
    def pictures(self) -> bool:
        """Whether clients have pictures and nothing else."""
        kinds = list(self.inputs.values())
        return len(kinds) == 1 and len(kinds[0].shape) == 3 and not kinds[0].codes

    def as_task(self, kind: Kind | Literal["auto"]) -> FederatedData:
        """Return the same with targets of another kind: classes can be taken for numbers."""
        if kind in ("auto", self.targets.kind):
            return self
        if (self.targets.kind, kind) != ("classification", "regression"):
            raise InvalidInputError(f"the task of {self.name} is {self.targets.kind}, not {kind}")

        def numbers(split: Split) -> Split:
            return Split(split.inputs, split.targets.float())

        clients = tuple(
            replace(
                each,
                train=numbers(each.train),
                validation=numbers(each.validation),
                test=numbers(each.test),
            )
            for each in self.clients
        )
        return replace(self, clients=clients, targets=Targets("regression", 1))

    def only_pictures(self, what: str) -> tuple[int, int, int]:
        """Return the pictures' shape, or say that something is for pictures only."""
        if not self.pictures or self.targets.kind != "classification":
            raise InvalidInputError(
                f"{what} is for pictures with one class each; {self.name} has"
                f" {described(self.inputs)} ({self.targets.kind})"
            )
        channels, height, width = self.shape
        return channels, height, width


def of_pictures(shape: tuple[int, int, int]) -> dict[str, Input]:
    """Return what the inputs are if they are pictures."""
    return {ONLY: Input(shape)}


def classes(n: int, names: tuple[str, ...] = ()) -> Targets:
    """Return what the targets are if they are one class each."""
    return Targets("classification", n, names)


def described(inputs: Mapping[str, Input]) -> str:
    """Return what inputs are, in a few words.

    Examples
    --------
    >>> described({"age": Input((3,)), "scan": Input((1, 8, 8))})
    'age of 3, scan of 1×8×8'
    """
    return ", ".join(
        f"{name} of {'×'.join(map(str, each.shape)) or 'one number'}"
        for name, each in inputs.items()
    )


def size_of(each: Input) -> int:
    """Return how many numbers an input has."""
    return math.prod(each.shape)
