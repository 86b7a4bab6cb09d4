"""MNIST, SVHN and MNIST-M: the three domains of the CFFL paper."""

from __future__ import annotations

from learners.data.dataset import DATASETS
from learners.data.sources._composite import CompositeSet


@DATASETS.register("mt-sv-mm")
class MtSvMm(CompositeSet):
    """mnist, svhn and mnist-m as three domains, 28×28 colour [Ota2022]_.

    The paper has five clients per domain with 200 images to train on and 50 to test; another 50
    are for validation here, a fifth of all but the test images.
    """

    parts = ("mnist", "svhn", "mnist-m")
    shape = (3, 28, 28)
    train_size = 250
    test_size = 50
