"""scikit-learn's handwritten digits: the default, no download."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from learners.data.dataset import DATASETS, DataSet, Images, ImageSet
from learners.data.files import bundled
from learners.settings.seeding import generator


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
