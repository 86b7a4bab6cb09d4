"""SVHN, from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from learners.data.dataset import DATASETS, Images
from learners.data.sources._stored import StoredSet


@DATASETS.register("svhn")
class Svhn(StoredSet):
    """House numbers from Street View, 32×32 colour, 73 257 / 26 032 [Netzer2011]_."""

    name = "svhn"
    in_torchvision = "SVHN"
    landmark = "train_32x32.mat"

    def _part(self, make: Any, place: Path, *, train: bool) -> Images:  # noqa: ANN401
        stored = make(root=str(place), split="train" if train else "test", download=True)
        return Images(np.asarray(stored.data).transpose(0, 2, 3, 1), np.asarray(stored.labels))
