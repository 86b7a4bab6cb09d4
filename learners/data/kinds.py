"""What inputs and targets are, said without a tensor: lists of data sets need no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from torch import Tensor

Kind = Literal["classification", "multi-label", "regression", "next-token"]
"""What targets can be."""

KINDS: tuple[Kind, ...] = get_args(Kind)

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
        import torch

        if self.kind == "regression":
            return torch.zeros(0, dtype=torch.int64)
        if self.kind == "multi-label":
            return (truth > 0.5).sum(0)
        return torch.bincount(truth[truth != IGNORED], minlength=self.n_outputs)

    def document(self) -> dict[str, Any]:
        """Return the same as plain values."""
        return {"kind": self.kind, "n_outputs": self.n_outputs, "names": list(self.names)}


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
