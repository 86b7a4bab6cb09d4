"""CIFAR-10, from files."""

from __future__ import annotations

from learners.data.dataset import DATASETS
from learners.data.sources._stored import StoredSet


@DATASETS.register("cifar10")
class Cifar10(StoredSet):
    """Small photographs in 10 classes, 32×32 colour, 50 000 / 10 000 [Krizhevsky2009]_."""

    name = "cifar10"
    n_classes = 10
    in_torchvision = "CIFAR10"
    landmark = "cifar-10-batches-py/data_batch_1"
