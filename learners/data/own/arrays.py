"""What comes in through any door: every client's arrays, what they are, and a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from learners.data.client_data import Kind

Arrays = tuple[dict[str, NDArray[Any]], NDArray[Any]]
"""Inputs by name, and targets."""


@dataclass(frozen=True, eq=False)
class ClientArrays:
    """Every client's arrays, and what was done.

    Attributes
    ----------
    clients
        For each name the data to train on and to test on.
    task
        What the targets are; None to go by their type.
    classes
        Names of the classes, if there are some.
    codes
        How many values the codes in each column of an input can have.
    told
        A sentence that says what was done.
    groups
        What each client belongs to, where the data say so; nobody learns from it.
    """

    clients: Mapping[str, tuple[Arrays, Arrays]]
    task: Kind | None
    classes: tuple[str, ...]
    codes: Mapping[str, tuple[int, ...]]
    told: str
    groups: Mapping[str, str] = field(default_factory=dict, kw_only=True)


def are_bytes_of_pictures(array: NDArray[Any]) -> bool:
    """Tell whether an array is uint8[N, H, W] or uint8[N, H, W, C]."""
    return array.dtype == np.uint8 and array.ndim in (3, 4)


def pixels_of(pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return bytes of pictures as float32[N, C, H, W] from −1 to 1, as all pictures here are."""
    pixels = pictures[:, None] if pictures.ndim == 3 else np.moveaxis(pictures, -1, 1)
    scaled: NDArray[np.float32] = np.ascontiguousarray(pixels, dtype=np.float32)
    scaled /= 127.5
    scaled -= 1
    return scaled
