"""Several data sets as the domains of one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from learners.data.dataset import DATASETS, DataSet, ImageSet, Shape


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
