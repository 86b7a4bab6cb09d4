"""Clients that learn from false data: wrong labels, swapped labels, noise.

Only training images or training labels change; validation and test data stay clean, so an
adversary's accuracy looks honest [Ota2022]_.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError
from learners.data.kinds import Kind

NOISE = 1.0  # standard deviation; images run from -1 to 1

Pixels = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Poison:
    """What happens to the training data of one client."""

    kind: str
    corrupt: Callable[[Pixels, Labels, int, np.random.Generator], tuple[Pixels, Labels]]


def poison_of(
    demands: Sequence[str], *, n_clients: int, n_classes: int, kind: Kind = "classification"
) -> dict[int, Poison]:
    """Return the poison of every chosen client.

    Parameters
    ----------
    demands
        ``KIND:CLIENTS`` each, where CLIENTS are numbers from 0 with commas between, and KIND is

        - ``wrong-labels``: every label becomes another one at random (untargeted),
        - ``swap-A-B``: label A becomes B and B becomes A (targeted),
        - ``noise``: Gaussian noise of standard deviation 1 on images that run from −1 to 1.

    Examples
    --------
    >>> sorted(poison_of(["swap-1-7:3", "noise:0,2"], n_clients=4, n_classes=10))
    [0, 2, 3]
    """
    poisoned: dict[int, Poison] = {}
    for demand in demands:
        what, _, chosen = demand.rpartition(":")
        poison = _poison(what, demand, n_classes)
        if kind != "classification":
            raise InvalidInputError(
                f"{demand!r} poisons data with one class each, and these are {kind}"
            )
        if not re.fullmatch(r"[0-9]+(,[0-9]+)*", chosen):
            raise InvalidInputError(
                f"poison is KIND:CLIENTS, as in wrong-labels:0,3, and {demand!r} is not"
            )
        for client in map(int, chosen.split(",")):
            if client >= n_clients:
                raise InvalidInputError(
                    f"{demand!r} poisons client {client}, but the {n_clients} clients are "
                    f"numbered 0 … {n_clients - 1}"
                )
            if client in poisoned:
                raise InvalidInputError(f"client {client} is poisoned twice; one kind is enough")
            poisoned[client] = poison
    return poisoned


def _poison(kind: str, demand: str, n_classes: int) -> Poison:
    if kind == "wrong-labels" and n_classes > 1:
        return Poison(kind, _wrong_labels)
    if kind == "noise":
        return Poison(kind, _noise)
    swap = re.fullmatch(r"swap-([0-9]+)-([0-9]+)", kind)
    if swap is None:
        raise InvalidInputError(
            f"there is no poison like {demand!r}; there are wrong-labels:CLIENTS, "
            "swap-A-B:CLIENTS and noise:CLIENTS"
        )
    one, other = int(swap[1]), int(swap[2])
    if one == other or max(one, other) >= n_classes:
        raise InvalidInputError(
            f"{demand!r} must name two different labels from 0 to {n_classes - 1}"
        )
    return Poison(kind, lambda images, labels, n, rng: (images, _swapped(labels, one, other)))


def _wrong_labels(
    images: Pixels, labels: Labels, n_classes: int, rng: np.random.Generator
) -> tuple[Pixels, Labels]:
    return images, (labels + rng.integers(1, n_classes, len(labels))) % n_classes


def _noise(
    images: Pixels, labels: Labels, n_classes: int, rng: np.random.Generator
) -> tuple[Pixels, Labels]:
    noise = NOISE * rng.standard_normal(images.shape, dtype=np.float32)
    return np.clip(images + noise, -1, 1), labels


def _swapped(labels: Labels, one: int, other: int) -> Labels:
    return np.where(labels == one, other, np.where(labels == other, one, labels))
