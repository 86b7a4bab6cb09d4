"""Data sets with domains: Digit-5 of the FedC²I paper, the three of CFFL's, and Office-Caltech-10.

MNIST-M, which two of them have for a domain, is made here.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from coalitions.errors import InvalidInputError
from learners.data.dataset import DATASETS, DataSet, Images, ImageSet, Shape
from learners.data.files import bundled, read_npz, read_picture
from learners.data.sources.digits import with_fixed_split
from learners.data.sources.torchvision_sets import Mnist
from learners.settings.seeding import generator

# ----------------------------------------------------------------------------------------
# MNIST-M: MNIST's digits on pieces of photographs.

MNIST_M_SIDE = 32
PHOTOGRAPHS = (  # what scikit-learn and scikit-image bring along
    ("sklearn", "datasets/images/china.jpg"),
    ("sklearn", "datasets/images/flower.jpg"),
    ("skimage", "data/astronaut.png"),
    ("skimage", "data/chelsea.png"),
    ("skimage", "data/coffee.png"),
    ("skimage", "data/motorcycle_left.png"),
    ("skimage", "data/rocket.jpg"),
)


@DATASETS.register("mnist-m")
class MnistM(DataSet):
    """MNIST's digits on pieces of photographs, 32×32 colour [Ganin2016]_.

    Read from mnist-m.npz, or blended here: the paper's rule, with photographs that installed
    packages bring along instead of BSDS500.
    """

    def load(self, folder: Path | None) -> dict[str, ImageSet]:
        """Read the archive if it is there, else blend."""
        if folder is not None and (folder / "mnist-m.npz").exists():
            return {"": read_npz(folder / "mnist-m.npz", 10)}
        mnist = Mnist().load(folder)[""]
        photographs = [read_picture(bundled(package, path)) for package, path in PHOTOGRAPHS]
        return {
            "": ImageSet(
                train=blended(mnist.train, photographs, generator(0, "mnist-m: train")),
                test=blended(mnist.test, photographs, generator(0, "mnist-m: test")),
                n_classes=10,
            )
        }

    def origin(self, folder: Path | None) -> tuple[bool, str]:
        """Look for the archive, then for MNIST."""
        if folder is not None and (folder / "mnist-m.npz").exists():
            return True, str(folder / "mnist-m.npz")
        here, where = Mnist().origin(folder)
        return here, f"blended from mnist ({where}) and photographs"


def blended(digits: Images, photographs: list[np.ndarray], rng: np.random.Generator) -> Images:
    r"""Return every digit as the difference to a random piece of a photograph.

    .. math:: I_{ijk} = |P_{ijk} - D_{ij}|

    with the 28×28 digit :math:`D` in the middle of the 32×32 piece :math:`P` [Ganin2016]_.
    """
    margin = (MNIST_M_SIDE - digits.pixels.shape[1]) // 2
    which = rng.integers(len(photographs), size=len(digits))
    corner = rng.random((len(digits), 2))
    blend = np.empty((len(digits), MNIST_M_SIDE, MNIST_M_SIDE, 3), dtype=np.uint8)
    for number, photograph in enumerate(photographs):
        chosen = np.flatnonzero(which == number)
        windows = np.lib.stride_tricks.sliding_window_view(
            photograph, (MNIST_M_SIDE, MNIST_M_SIDE), axis=(0, 1)
        )
        row, column = (corner[chosen] * windows.shape[:2]).astype(np.int64).T
        blend[chosen] = windows[row, column].transpose(0, 2, 3, 1)
    middle = blend[:, margin : MNIST_M_SIDE - margin, margin : MNIST_M_SIDE - margin]
    middle[:] = np.abs(middle.astype(np.int16) - digits.pixels).astype(np.uint8)
    return Images(blend, digits.labels)


# ----------------------------------------------------------------------------------------
# Several data sets as the domains of one.


class CompositeSet(DataSet):
    """Data sets with the same classes, one domain each, all brought to one `shape`."""

    parts: ClassVar[tuple[str, ...]]
    shape: ClassVar[Shape]
    partition = "domains"

    def load(self, folder: Path | None) -> dict[str, ImageSet]:
        """Return one image set per part."""
        domains = {}
        for part in self.parts:
            pictures = DATASETS[part]().load(folder)[""]
            assert isinstance(pictures, ImageSet)  # a composite is made of pictures
            domains[part] = replace(pictures, shape=self.shape)
        return domains

    def origin(self, folder: Path | None) -> tuple[bool, str]:
        """Tell which parts are missing."""
        missing = [part for part in self.parts if not DATASETS[part]().origin(folder)[0]]
        if missing:
            return False, f"torchvision would download {', '.join(missing)}"
        return True, " + ".join(self.parts)


# ----------------------------------------------------------------------------------------
# Digit-5: digits in five domains, as in the FedC²I paper.


@DATASETS.register("digit-5")
class Digit5(CompositeSet):
    """mnist, svhn, usps, synth-digits and mnist-m as five domains, 64×64 colour (FedC²I).

    The paper has one client per domain with 100 images of each class to train on; as many as a
    quarter of them are set aside for validation here.
    """

    parts = ("mnist", "svhn", "usps", "synth-digits", "mnist-m")
    shape = (3, 64, 64)
    train_size = 1250
    test_size = 1000


@DATASETS.register("digit-5-32")
class Digit5At32(Digit5):
    """digit-5 at 32×32: a quarter of the paper's pixels, and of its time."""

    shape = (3, 32, 32)


# ----------------------------------------------------------------------------------------
# MNIST, SVHN and MNIST-M: the three domains of the CFFL paper.


@DATASETS.register("mt-sv-mm")
class MtSvMm(CompositeSet):
    """mnist, svhn and mnist-m as three domains, 28×28 colour [Ota2022]_.

    The paper has five clients per domain with 200 images to train on and 50 to test; another 50
    are for validation here, a fifth of all but the test images.
    """

    parts = ("mnist", "svhn", "mnist-m")
    shape = (3, 28, 28)
    train_size = 250
    test_size = 50


# ----------------------------------------------------------------------------------------
# Office-Caltech-10: ten kinds of objects in four domains.

CAMERAS = ("amazon", "caltech", "dslr", "webcam")
OFFICE_SIDE = 64
SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp"}


@DATASETS.register("office-10")
class Office10(DataSet):
    """Ten kinds of objects as seen by four cameras, 64×64 colour [Gong2012]_.

    There is no official split; the picture folders are split with a fixed seed, three quarters
    for training.
    """

    partition = "domains"

    def load(self, folder: Path | None) -> dict[str, ImageSet]:
        """Read the archives, else the folders of pictures."""
        return {domain: _domain(folder, domain) for domain in CAMERAS}

    def origin(self, folder: Path | None) -> tuple[bool, str]:
        """Look for the archives or the folders."""
        if folder is not None and all(_files(folder, domain) for domain in CAMERAS):
            return True, f"files in {folder}"
        return False, f"put {_WANTED} into a folder and name it with --data-dir"


@DATASETS.register("office-10-32")
class Office10At32(Office10):
    """office-10 at 32×32: a quarter of the paper's pixels, and of its time."""

    def load(self, folder: Path | None) -> dict[str, ImageSet]:
        """Read the pictures, and bring them to half of their sides."""
        return {
            domain: replace(pictures, shape=(3, OFFICE_SIDE // 2, OFFICE_SIDE // 2))
            for domain, pictures in super().load(folder).items()
        }


_WANTED = (
    "office-10-{amazon,caltech,dslr,webcam}.npz, or the pictures as "
    "office-10/{amazon,caltech,dslr,webcam}/CLASS/*.jpg,"
)


def _files(folder: Path, domain: str) -> Path | None:
    """Return the archive or the folder of a domain, if there is one."""
    places = (folder / f"office-10-{domain}.npz", folder / "office-10" / domain)
    return next((place for place in places if place.exists()), None)


def _domain(folder: Path | None, domain: str) -> ImageSet:
    place = None if folder is None else _files(folder, domain)
    if place is None:
        raise InvalidInputError(
            f"office-10 cannot be downloaded, and its domain {domain} is not in "
            f"{folder or 'any folder named'}: put {_WANTED} into a folder and name it with "
            "--data-dir or COALITIONS_DATA"
        )
    if place.is_file():
        return read_npz(place, 10)
    classes = sorted(path for path in place.iterdir() if path.is_dir())
    if len(classes) != 10:
        raise InvalidInputError(f"{place} has {len(classes)} folders of pictures instead of 10")
    pixels, labels = [], []
    for label, pictures in enumerate(classes):
        for path in sorted(pictures.iterdir()):
            if path.suffix.lower() in SUFFIXES:
                pixels.append(_squashed(read_picture(path)))
                labels.append(label)
    if len(set(labels)) != 10:
        raise InvalidInputError(f"{place} has a folder without pictures")
    return with_fixed_split(Images(np.stack(pixels), np.array(labels)), n_classes=10, every=4)


def _squashed(picture: np.ndarray) -> np.ndarray:
    from PIL import Image

    return np.asarray(
        Image.fromarray(picture).resize((OFFICE_SIDE, OFFICE_SIDE), Image.Resampling.BILINEAR)
    )
