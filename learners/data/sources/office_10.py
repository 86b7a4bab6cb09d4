"""Office-Caltech-10: ten kinds of objects in four domains."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from coalitions.errors import InvalidInputError
from learners.data.dataset import DATASETS, DataSet, Images, ImageSet
from learners.data.files import read_npz, read_picture
from learners.data.sources.digits import with_fixed_split

DOMAINS = ("amazon", "caltech", "dslr", "webcam")
SIDE = 64
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
        return {domain: _domain(folder, domain) for domain in DOMAINS}

    def origin(self, folder: Path | None) -> tuple[bool, str]:
        """Look for the archives or the folders."""
        if folder is not None and all(_files(folder, domain) for domain in DOMAINS):
            return True, f"files in {folder}"
        return False, f"put {_WANTED} into a folder and name it with --data-dir"


@DATASETS.register("office-10-32")
class Office10At32(Office10):
    """office-10 at 32×32: a quarter of the paper's pixels, and of its time."""

    def load(self, folder: Path | None) -> dict[str, ImageSet]:
        """Read the pictures, and bring them to half of their sides."""
        return {
            domain: replace(pictures, shape=(3, SIDE // 2, SIDE // 2))
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

    return np.asarray(Image.fromarray(picture).resize((SIDE, SIDE), Image.Resampling.BILINEAR))
