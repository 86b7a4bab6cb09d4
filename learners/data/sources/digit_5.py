"""Digit-5: digits in five domains, as in the FedC²I paper."""

from __future__ import annotations

from learners.data.dataset import DATASETS
from learners.data.sources._composite import CompositeSet


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
