"""Image sets as they come from disk, and the registry of those we know by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError
from coalitions.registry import Registry
from learners.data.kinds import Targets

Shape = tuple[int, int, int]
"""Channels, height and width of a picture."""


@dataclass(frozen=True, eq=False)
class Images:
    """Pictures and what they show.

    Parameters
    ----------
    pixels
        uint8[N, H, W] (grey) or uint8[N, H, W, C]; kept with the channel axis.
    labels
        Whole numbers [N], from 0.
    """

    pixels: NDArray[np.uint8]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        pixels, labels = np.asarray(self.pixels), np.asarray(self.labels)
        if pixels.dtype != np.uint8 or pixels.ndim not in (3, 4):
            raise InvalidInputError(
                f"images are uint8 [N, H, W] or [N, H, W, C], not {pixels.dtype} {pixels.shape}"
            )
        if labels.shape != (len(pixels),) or not np.issubdtype(labels.dtype, np.integer):
            raise InvalidInputError(
                f"{len(pixels)} images need as many whole labels, not {labels.dtype} {labels.shape}"
            )
        if len(labels) and labels.min() < 0:
            raise InvalidInputError(f"labels count from 0, but one is {labels.min()}")
        object.__setattr__(self, "pixels", pixels if pixels.ndim == 4 else pixels[..., None])
        object.__setattr__(self, "labels", labels.astype(np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> Shape:
        """Channels, height and width of every picture."""
        _, height, width, channels = self.pixels.shape
        return channels, height, width

    def __getitem__(self, chosen: NDArray[np.int64]) -> Images:
        return Images(self.pixels[chosen], self.labels[chosen])


@dataclass(frozen=True, eq=False)
class ImageSet:
    """One domain: a pool to train on and a pool to test on, without a picture in common.

    Parameters
    ----------
    shape
        Channels, height and width in which clients get the pictures, if not as they are: they are
        resized, and grey ones coloured, after they are dealt out, so only the dealt ones cost
        memory.
    """

    train: Images
    test: Images
    n_classes: int
    shape: Shape = (0, 0, 0)

    def __post_init__(self) -> None:
        if self.shape == (0, 0, 0):
            object.__setattr__(self, "shape", self.train.shape)
        if self.shape[0] != self.train.shape[0] != 1:
            raise InvalidInputError(
                f"pictures with {self.train.shape[0]} channels cannot become {self.shape[0]}"
            )
        if self.train.shape != self.test.shape:
            raise InvalidInputError(
                f"training images are {self.train.shape}, test images {self.test.shape}: "
                "they must have one shape"
            )
        for pool in (self.train, self.test):
            if len(pool) and pool.labels.max() >= self.n_classes:
                raise InvalidInputError(
                    f"with {self.n_classes} classes the labels are 0 … {self.n_classes - 1}, "
                    f"but one is {pool.labels.max()}"
                )


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers and what is to be told from them.

    Attributes
    ----------
    values
        float32 [N, columns] or [N, steps, channels]; or codes, int64 [N, …].
    truth
        int64 [N] of classes, or float32 [N] of numbers.
    labels
        int64 [N]: by what the rows are dealt out. Classes, or ranges of the numbers.
    """

    values: NDArray[Any]
    truth: NDArray[Any]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, chosen: NDArray[np.int64]) -> Table:
        return Table(self.values[chosen], self.truth[chosen], self.labels[chosen])


@dataclass(frozen=True, eq=False)
class TableSet:
    """A table to train on and one to test on, and what their targets are.

    Attributes
    ----------
    n_classes
        How many labels the rows are dealt out by.
    codes
        How many values the codes have, see `Input`; empty if they are numbers.
    """

    train: Table
    test: Table
    targets: Targets
    n_classes: int
    codes: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of columns."""
        return self.train.values.shape[1:]


Source: TypeAlias = ImageSet | TableSet
"""What clients' data are dealt from."""


class DataSet:
    """A data set by name: one image set or table, or one per domain.

    To add your own, write a subclass with `load` in a module of yours, decorate it with
    ``@DATASETS.register("my-name")``, and name the module with ``--plugin``. Its docstring's first
    line is what ``coalitions datasets`` shows.

    Attributes
    ----------
    partition
        What ``auto`` stands for with this data set.
    train_size
        Training images per client if the user does not say, as in the paper that made the set
        known, those for validation included; None for all.
    test_size
        Test images per client if the user names no sizes, likewise.
    """

    partition: ClassVar[str] = "pathological:2"
    train_size: ClassVar[int | None] = None
    test_size: ClassVar[int | None] = None

    def load(self, folder: Path | None) -> Mapping[str, Source]:
        """Return the image sets or tables by domain; the domain of a plain data set is ``""``.

        Parameters
        ----------
        folder
            Where data files are; None if the user named no place.
        """
        raise NotImplementedError

    def origin(self, folder: Path | None) -> tuple[bool, str]:
        """Tell whether `load` would work here without a download, and where the data come from."""
        return True, "made here"


DATASETS = Registry[type[DataSet]]("data set", "learners.data.sources")
