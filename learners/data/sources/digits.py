"""scikit-learn's handwritten digits: the default, no download."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from learners.data.dataset import DATASETS, DataSet, Images, ImageSet
from learners.data.seeding import generator


@DATASETS.register("digits")
class Digits(DataSet):
    """1797 handwritten digits, 8×8 grey, shipped with scikit-learn [Alpaydin1998]_.

    There is no official split: every fifth image of a class, in a fixed random order, is for
    testing (1435 / 362), whatever the seed of the run.
    """

    def load(self, folder: Path | None) -> dict[str, ImageSet]:
        """Return the one image set; `folder` does not matter."""
        return {"": digits()}

    def origin(self, folder: Path | None) -> tuple[bool, str]:
        """Tell that scikit-learn brings it."""
        return True, "shipped with scikit-learn"


def digits() -> ImageSet:
    """Return scikit-learn's digits, grey values 0 … 16 stretched to 0 … 255."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    pixels = np.rint(bunch.images * (255 / 16)).astype(np.uint8)
    labels = np.asarray(bunch.target, dtype=np.int64)
    order = generator(0, "digits: training or testing").permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    place_in_class = np.concatenate([np.arange(n) for n in np.bincount(labels)])
    everything = Images(pixels, labels)
    return ImageSet(
        train=everything[np.sort(order[place_in_class % 5 != 0])],
        test=everything[np.sort(order[place_in_class % 5 == 0])],
        n_classes=10,
    )
