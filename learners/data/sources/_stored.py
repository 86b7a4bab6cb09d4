"""Sets that lie in files: NAME.npz, or torchvision's own layout, or a download by torchvision."""

from __future__ import annotations

import contextlib
import sys
import textwrap
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from coalitions.errors import InvalidInputError
from learners.data.dataset import DataSet, Images, ImageSet
from learners.data.files import cache_folder, read_npz


class StoredSet(DataSet):
    """An image set in files.

    A subclass names what it is called, how many classes it has, its class in
    ``torchvision.datasets`` and the file by which torchvision's layout is recognised.
    """

    name: ClassVar[str]
    n_classes: ClassVar[int] = 10
    in_torchvision: ClassVar[str]
    landmark: ClassVar[str]

    def load(self, folder: Path | None) -> dict[str, ImageSet]:
        """Read ``folder/NAME.npz``, else torchvision's files, which it downloads if need be."""
        if folder is not None and (folder / f"{self.name}.npz").exists():
            return {"": read_npz(folder / f"{self.name}.npz", self.n_classes)}
        return {"": self._from_torchvision(folder)}

    def origin(self, folder: Path | None) -> tuple[bool, str]:
        """Look for the files, without opening them."""
        if folder is not None and (folder / f"{self.name}.npz").exists():
            return True, str(folder / f"{self.name}.npz")
        place = folder or cache_folder()
        if any(place.glob(f"{self.landmark}*")):
            return True, f"torchvision's files in {place}"
        return False, f"torchvision would download it to {place}"

    def _from_torchvision(self, folder: Path | None) -> ImageSet:
        from learners.data.vision import torchvision_module

        make = getattr(torchvision_module("datasets"), self.in_torchvision)
        place = folder or cache_folder()
        try:
            # What torchvision prints belongs with the messages: stdout is for results.
            with contextlib.redirect_stdout(sys.stderr):
                train, test = (self._part(make, place, train=part) for part in (True, False))
        except (OSError, RuntimeError, ValueError, EOFError) as error:
            reason = textwrap.shorten(str(error) or type(error).__name__, 160)
            raise InvalidInputError(
                f"{self.name} is not in {place} and cannot be downloaded ({reason}); put "
                f"{self.name}.npz or torchvision's files into a folder and name it with "
                "--data-dir or COALITIONS_DATA"
            ) from None
        return ImageSet(train, test, self.n_classes)

    def _part(self, make: Any, place: Path, *, train: bool) -> Images:  # noqa: ANN401
        """Return one pool; torchvision's classes do not all have the same fields."""
        stored = make(root=str(place), train=train, download=True)
        return Images(np.asarray(stored.data), np.asarray(stored.targets))
