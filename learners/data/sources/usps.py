"""USPS, from files."""

from __future__ import annotations

from learners.data.dataset import DATASETS
from learners.data.sources._stored import StoredSet


@DATASETS.register("usps")
class Usps(StoredSet):
    """Digits from envelopes, 16×16 grey, 7291 / 2007 [Hull1994]_."""

    name = "usps"
    n_classes = 10
    in_torchvision = "USPS"
    landmark = "usps.bz2"
