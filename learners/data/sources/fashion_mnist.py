"""Fashion-MNIST, from files."""

from __future__ import annotations

from learners.data.dataset import DATASETS
from learners.data.sources._stored import StoredSet


@DATASETS.register("fashion-mnist")
class FashionMnist(StoredSet):
    """Pictures of clothes, 28×28 grey, 60 000 / 10 000 [Xiao2017]_."""

    name = "fashion-mnist"
    n_classes = 10
    in_torchvision = "FashionMNIST"
    landmark = "FashionMNIST/raw/train-images-idx3-ubyte"
