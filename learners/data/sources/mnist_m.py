"""MNIST-M: MNIST's digits on pieces of photographs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from learners.data.dataset import DATASETS, DataSet, Images, ImageSet
from learners.data.files import bundled, read_npz, read_picture
from learners.data.sources.torchvision_sets import Mnist
from learners.settings.seeding import generator

SIDE = 32
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
    margin = (SIDE - digits.pixels.shape[1]) // 2
    which = rng.integers(len(photographs), size=len(digits))
    corner = rng.random((len(digits), 2))
    blend = np.empty((len(digits), SIDE, SIDE, 3), dtype=np.uint8)
    for number, photograph in enumerate(photographs):
        chosen = np.flatnonzero(which == number)
        windows = np.lib.stride_tricks.sliding_window_view(photograph, (SIDE, SIDE), axis=(0, 1))
        row, column = (corner[chosen] * windows.shape[:2]).astype(np.int64).T
        blend[chosen] = windows[row, column].transpose(0, 2, 3, 1)
    middle = blend[:, margin : SIDE - margin, margin : SIDE - margin]
    middle[:] = np.abs(middle.astype(np.int16) - digits.pixels).astype(np.uint8)
    return Images(blend, digits.labels)
