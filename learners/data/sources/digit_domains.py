"""Digits in several domains: Digit-5 of the FedC²I paper, and the three domains of CFFL's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from learners.data.dataset import DATASETS, DataSet, ImageSet, Shape

# ----------------------------------------------------------------------------------------
# Several data sets as the domains of one.


class CompositeSet(DataSet):
    """Data sets with the same classes, one domain each, all brought to one `shape`."""

    parts: ClassVar[tuple[str, ...]]
    shape: ClassVar[Shape]
    partition = "domains"

    def load(self, folder: Path | None) -> dict[str, ImageSet]:
        """Return one image set per part."""
        domains = {}
        for part in self.parts:
            pictures = DATASETS[part]().load(folder)[""]
            assert isinstance(pictures, ImageSet)  # a composite is made of pictures
            domains[part] = replace(pictures, shape=self.shape)
        return domains

    def origin(self, folder: Path | None) -> tuple[bool, str]:
        """Tell which parts are missing."""
        missing = [part for part in self.parts if not DATASETS[part]().origin(folder)[0]]
        if missing:
            return False, f"torchvision would download {', '.join(missing)}"
        return True, " + ".join(self.parts)


# ----------------------------------------------------------------------------------------
# Digit-5: digits in five domains, as in the FedC²I paper.


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


# ----------------------------------------------------------------------------------------
# MNIST, SVHN and MNIST-M: the three domains of the CFFL paper.


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
