"""scikit-learn's handwritten digits, without a download: as they are, and in five domains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from learners.data.dataset import DATASETS, DataSet, Images, ImageSet
from learners.data.files import bundled
from learners.settings.seeding import generator

# ----------------------------------------------------------------------------------------
# scikit-learn's handwritten digits: the default, no download.


@DATASETS.register("digits")
class Digits(DataSet):
    """1797 handwritten digits, 8×8 grey, shipped with scikit-learn [Alpaydin1998]_.

    There is no official split: every fifth image of a class, in a fixed random order, is for
    testing (1433 / 364), whatever the seed of the run.
    """

    def load(self, folder: Path | None) -> dict[str, ImageSet]:
        """Return the one image set; `folder` does not matter."""
        # Reading the file takes 0.2 s, importing sklearn.datasets to do it 2 s.
        table = np.loadtxt(
            bundled("sklearn", "datasets", "data", "digits.csv.gz"), delimiter=",", dtype=np.uint8
        )
        pixels = np.rint(table[:, :64] * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8)
        return {"": with_fixed_split(Images(pixels, table[:, 64].astype(np.int64)), n_classes=10)}

    def origin(self, folder: Path | None) -> tuple[bool, str]:
        """Tell that scikit-learn brings it."""
        return True, "shipped with scikit-learn"


def with_fixed_split(images: Images, *, n_classes: int, every: int = 5) -> ImageSet:
    """Return an image set whose test pool is every fifth image of each class, in random order."""
    order = generator(0, "training or testing").permutation(len(images))
    order = order[np.argsort(images.labels[order], kind="stable")]
    place_in_class = np.concatenate([np.arange(n) for n in np.bincount(images.labels)])
    for_testing = place_in_class % every == 0
    return ImageSet(
        train=images[np.sort(order[~for_testing])],
        test=images[np.sort(order[for_testing])],
        n_classes=n_classes,
    )


# ----------------------------------------------------------------------------------------
# scikit-learn's digits in five domains.

Pixels = NDArray[np.uint8]


@DATASETS.register("digits-domains")
class DigitsDomains(DataSet):
    """`digits` in five domains: plain, inverted, rotated, noisy, striped.

    Every domain has all the digits, as MNIST-M has those of MNIST; an image for testing is for
    testing in every domain.
    """

    partition = "domains"

    def load(self, folder: Path | None) -> dict[str, ImageSet]:
        """Return one image set per domain."""
        digits = Digits().load(folder)[""]

        def shifted(name: str, pool: Images, part: str) -> Images:
            rng = generator(0, "digits-domains", name, part)
            return Images(DOMAINS[name](pool.pixels[..., 0], rng), pool.labels)

        return {
            name: ImageSet(
                train=shifted(name, digits.train, "train"),
                test=shifted(name, digits.test, "test"),
                n_classes=10,
            )
            for name in DOMAINS
        }

    def origin(self, folder: Path | None) -> tuple[bool, str]:
        """Tell that scikit-learn brings the digits."""
        return True, "made from scikit-learn's digits"


def _plain(pixels: Pixels, rng: np.random.Generator) -> Pixels:
    return pixels


def _inverted(pixels: Pixels, rng: np.random.Generator) -> Pixels:
    return 255 - pixels


def _rotated(pixels: Pixels, rng: np.random.Generator) -> Pixels:
    return np.rot90(pixels, axes=(1, 2))


def _noisy(pixels: Pixels, rng: np.random.Generator) -> Pixels:
    """Put every digit on a background of independent grey values."""
    background: Pixels = rng.integers(0, 160, pixels.shape, dtype=np.uint8)
    return np.maximum(pixels, background)


def _striped(pixels: Pixels, rng: np.random.Generator) -> Pixels:
    """Blend every digit with bright columns, the even or the odd ones, as MNIST-M does."""
    odd = rng.integers(0, 2, (len(pixels), 1, 1))
    background = 255 * ((np.arange(pixels.shape[2]) + odd) % 2)
    blended: Pixels = np.abs(background - pixels.astype(np.int64)).astype(np.uint8)
    return blended


DOMAINS: dict[str, Callable[[Pixels, np.random.Generator], Pixels]] = {
    "plain": _plain,
    "inverted": _inverted,
    "rotated": _rotated,
    "noisy": _noisy,
    "striped": _striped,
}
