"""MNIST, from files."""

from __future__ import annotations

from learners.data.dataset import DATASETS
from learners.data.sources._stored import StoredSet


@DATASETS.register("mnist")
class Mnist(StoredSet):
    """Handwritten digits, 28×28 grey, 60 000 / 10 000 [LeCun1998]_."""

    name = "mnist"
    n_classes = 10
    in_torchvision = "MNIST"
    landmark = "MNIST/raw/train-images-idx3-ubyte"
