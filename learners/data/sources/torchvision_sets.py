"""MNIST, Fashion-MNIST, CIFAR, SVHN and USPS: read from files, or downloaded by torchvision."""

from __future__ import annotations

import contextlib
import importlib
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from coalitions.errors import InvalidInputError, MissingDependencyError
from learners.data.dataset import DATASETS, DataSet, Images, ImageSet
from learners.data.files import cache_folder, read_npz

if TYPE_CHECKING:
    import torch

# ----------------------------------------------------------------------------------------
# Sets that lie in files: NAME.npz, or torchvision's own layout, or a download by torchvision.


class StoredSet(DataSet):
    """An image set in files.

    A subclass names what it is called, how many classes it has, its class in
    ``torchvision.datasets`` and the file by which torchvision's layout is recognised.
    """

    name: ClassVar[str]
    n_classes: ClassVar[int] = 10
    in_torchvision: ClassVar[str]
    landmark: ClassVar[str]

    def load(self, folder: Path | None) -> dict[str, ImageSet]:
        """Read ``folder/NAME.npz``, else torchvision's files, which it downloads if need be."""
        if folder is not None and (folder / f"{self.name}.npz").exists():
            return {"": read_npz(folder / f"{self.name}.npz", self.n_classes)}
        return {"": self._from_torchvision(folder)}

    def origin(self, folder: Path | None) -> tuple[bool, str]:
        """Look for the files, without opening them."""
        if folder is not None and (folder / f"{self.name}.npz").exists():
            return True, str(folder / f"{self.name}.npz")
        place = folder or cache_folder()
        if any(place.glob(f"{self.landmark}*")):
            return True, f"torchvision's files in {place}"
        return False, f"torchvision would download it to {place}"

    def _from_torchvision(self, folder: Path | None) -> ImageSet:
        make = getattr(torchvision_module("datasets"), self.in_torchvision)
        place = folder or cache_folder()
        try:
            # What torchvision prints belongs with the messages: stdout is for results.
            with contextlib.redirect_stdout(sys.stderr):
                train, test = (self._part(make, place, train=part) for part in (True, False))
        except (OSError, RuntimeError, ValueError, EOFError) as error:
            reason = textwrap.shorten(str(error) or type(error).__name__, 160)
            raise InvalidInputError(
                f"{self.name} is not in {place} and cannot be downloaded ({reason}); put "
                f"{self.name}.npz or torchvision's files into a folder and name it with "
                "--data-dir or COALITIONS_DATA"
            ) from None
        return ImageSet(train, test, self.n_classes)

    def _part(self, make: Any, place: Path, *, train: bool) -> Images:  # noqa: ANN401
        """Return one pool; torchvision's classes do not all have the same fields."""
        stored = make(root=str(place), train=train, download=True)
        return Images(np.asarray(stored.data), np.asarray(stored.targets))


# ----------------------------------------------------------------------------------------
# The sets, with what torchvision calls them and a file by which its layout is recognised.


@DATASETS.register("mnist")
class Mnist(StoredSet):
    """Handwritten digits, 28×28 grey, 60 000 / 10 000 [LeCun1998]_."""

    name = "mnist"
    in_torchvision = "MNIST"
    landmark = "MNIST/raw/train-images-idx3-ubyte"


@DATASETS.register("fashion-mnist")
class FashionMnist(StoredSet):
    """Pictures of clothes, 28×28 grey, 60 000 / 10 000 [Xiao2017]_."""

    name = "fashion-mnist"
    in_torchvision = "FashionMNIST"
    landmark = "FashionMNIST/raw/train-images-idx3-ubyte"


@DATASETS.register("cifar10")
class Cifar10(StoredSet):
    """Small photographs in 10 classes, 32×32 colour, 50 000 / 10 000 [Krizhevsky2009]_."""

    name = "cifar10"
    in_torchvision = "CIFAR10"
    landmark = "cifar-10-batches-py/data_batch_1"


@DATASETS.register("cifar100")
class Cifar100(StoredSet):
    """Small photographs in 100 classes, 32×32 colour, 50 000 / 10 000 [Krizhevsky2009]_."""

    name = "cifar100"
    n_classes = 100
    in_torchvision = "CIFAR100"
    landmark = "cifar-100-python/train"


@DATASETS.register("svhn")
class Svhn(StoredSet):
    """House numbers from Street View, 32×32 colour, 73 257 / 26 032 [Netzer2011]_."""

    name = "svhn"
    in_torchvision = "SVHN"
    landmark = "train_32x32.mat"

    def _part(self, make: Any, place: Path, *, train: bool) -> Images:  # noqa: ANN401
        stored = make(root=str(place), split="train" if train else "test", download=True)
        return Images(np.asarray(stored.data).transpose(0, 2, 3, 1), np.asarray(stored.labels))


@DATASETS.register("usps")
class Usps(StoredSet):
    """Digits from envelopes, 16×16 grey, 7291 / 2007 [Hull1994]_."""

    name = "usps"
    in_torchvision = "USPS"
    landmark = "usps.bz2"


# ----------------------------------------------------------------------------------------
# torchvision, made importable; nothing else imports it.
#
# A torchvision whose compiled operators do not match the installed torch (a CPU torch beside a
# torchvision built for another one) stops at import with ``operator torchvision::nms does not
# exist``. Data sets, transforms and classification networks need no such operator, so it is enough
# to declare the two names that are looked up during the import.

_LOOKED_UP_AT_IMPORT = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}

_declarations: list[torch.library.Library] = []  # torch forgets a declaration with its library


def torchvision_module(name: str) -> ModuleType:
    """Return ``torchvision.NAME`` (``models``, ``datasets`` …), imported now.

    Examples
    --------
    >>> torchvision_module("models").resnet34.__name__
    'resnet34'
    """
    try:
        return _imported(name)
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
    _declare_missing_operators()
    return _imported(name)


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"torchvision.{name}")
    except ImportError as error:
        raise MissingDependencyError(f"this needs: pip install torchvision ({error})") from None


def _declare_missing_operators() -> None:
    import torch  # data sets are listed without it

    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for operator, signature in _LOOKED_UP_AT_IMPORT.items():
        if not hasattr(torch.ops.torchvision, operator):
            library.define(signature)  # type: ignore[no-untyped-call]
    _declarations.append(library)
