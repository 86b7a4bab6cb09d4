"""What a federation's clients have: named tensors and targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from torch import Tensor

from coalitions.errors import InvalidInputError
from learners.data.kinds import (
    IGNORED,
    KINDS,
    ONLY,
    Input,
    Kind,
    Targets,
    classes,
    described,
    of_pictures,
    size_of,
)

__all__ = [
    "IGNORED",
    "KINDS",
    "ONLY",
    "Batch",
    "ClientData",
    "FederatedData",
    "Input",
    "Kind",
    "Split",
    "Targets",
    "classes",
    "described",
    "of_pictures",
    "size_of",
]

Batch: TypeAlias = Tensor | Mapping[str, Tensor]
"""What a network is given: one tensor as it is, several by name."""


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
    notice
        The part of it that nobody should miss, if there is one.
    """

    name: str
    clients: tuple[ClientData, ...]
    inputs: Mapping[str, Input]
    targets: Targets
    told: str = ""
    notice: str = ""

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
