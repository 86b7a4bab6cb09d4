"""CIFAR-100, from files."""

from __future__ import annotations

from learners.data.dataset import DATASETS
from learners.data.sources._stored import StoredSet


@DATASETS.register("cifar100")
class Cifar100(StoredSet):
    """Small photographs in 100 classes, 32×32 colour, 50 000 / 10 000 [Krizhevsky2009]_."""

    name = "cifar100"
    n_classes = 100
    in_torchvision = "CIFAR100"
    landmark = "cifar-100-python/train"
