"""Image files: where they are, ``.npz`` archives, pictures that other packages bring along."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError, MissingDependencyError
from coalitions.files.arrays import ArrayArchive
from coalitions.files.opening import opened
from learners.data.dataset import Images, ImageSet

ROOM = 2**28
"""Bytes of pictures that are kept for the next runs of a process: the runs of a table or a search
have the same files, and unpacking these takes seconds."""

_KEPT: dict[tuple[Path, int, int, int], ImageSet] = {}


def data_folder(data_dir: Path | None, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder with data files: as given, else ``$COALITIONS_DATA``, else None."""
    if data_dir is None:
        named = environment.get("COALITIONS_DATA")
        return Path(named) if named else None
    if not data_dir.is_dir():
        raise InvalidInputError(f"there is no folder {data_dir} with data")
    return data_dir


def read_npz(path: Path, n_classes: int) -> ImageSet:
    """Return the image set in an archive with uint8 arrays ``x_train y_train x_test y_test``.

    Images are [N, H, W] (grey) or [N, H, W, 3]. Nothing in the file is executed (no pickle). A
    file that has not changed is not read again; see `ROOM`.
    """
    if not path.exists():
        raise InvalidInputError(f"there is no file {path}")
    state = path.stat()
    key = (path.resolve(), state.st_mtime_ns, state.st_size, n_classes)
    images = _KEPT.pop(key) if key in _KEPT else unchanging(_image_set(path, n_classes))
    _KEPT[key] = images  # as the last one: the first is the first to go
    while sum(map(_n_bytes, _KEPT.values())) > ROOM:
        del _KEPT[next(iter(_KEPT))]
    return images


def unchanging(images: ImageSet) -> ImageSet:
    """Return an image set whose arrays nobody can write to: several runs have it."""
    for each in (images.train, images.test):
        each.pixels.setflags(write=False)
        each.labels.setflags(write=False)
    return images


def _n_bytes(images: ImageSet) -> int:
    return sum(each.pixels.nbytes + each.labels.nbytes for each in (images.train, images.test))


def _image_set(path: Path, n_classes: int) -> ImageSet:
    names = ("x_train", "y_train", "x_test", "y_test")
    try:
        with opened(path) as (where, stream):
            archive = ArrayArchive(stream, where)
            for name in names:
                if name not in archive or not archive.header(name).is_numeric:
                    raise InvalidInputError(f"there is no {name} of numbers")
            x_train, y_train, x_test, y_test = archive.load(*names)
    except InvalidInputError as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise InvalidInputError(
            f"{path} is not an image set: it needs the uint8 arrays x_train, y_train, x_test and "
            f"y_test ({reason})"
        ) from None
    try:
        return ImageSet(Images(x_train, y_train), Images(x_test, y_test), n_classes)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from None


def bundled(package: str, *parts: str) -> Path:
    """Return a file that an installed package brings along, without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(f"this data set needs the package {package}: pip install it")
    return Path(spec.submodule_search_locations[0], *parts)


def read_picture(path: Path) -> NDArray[np.uint8]:
    """Return a picture file as uint8[H, W, 3]."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("RGB"))
    except (OSError, UnidentifiedImageError, ValueError) as error:
        raise InvalidInputError(f"{path} is not a readable picture ({error})") from None


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where downloads go if the user names no folder."""
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "coalitions"
