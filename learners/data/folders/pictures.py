"""Clients' pictures: ``client/CLASS/*.png``, or with train and test folders between."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coalitions.characters import in_order
from coalitions.errors import InvalidInputError, shown
from learners.data.doors.outcome import Arrays, pixels_of
from learners.data.folders.layout import PARTS, PICTURES, Layout, visible
from learners.data.tables.splitting import divided
from learners.settings.seeding import generator

MOST_BYTES = 4 << 30
"""Pictures that take more memory than this are refused before one is decoded."""


@dataclass(frozen=True, eq=False)
class PictureClients:
    """Every client's pictures, float32[N, C, H, W] from −1 to 1, and what was done with them."""

    clients: dict[str, tuple[Arrays, Arrays]]
    classes: tuple[str, ...]
    told: tuple[str, ...]


def read_picture_clients(layout: Layout, *, seed: int, test_size: int | None) -> PictureClients:
    """Return the pictures of all clients in one size and one number of channels."""
    parted = {name: _parted(layout.folder / name) for name in layout.clients}
    if len(set(parted.values())) > 1:
        odd = next(name for name in layout.clients if parted[name] != parted[layout.clients[0]])
        raise InvalidInputError(
            f"{layout.folder}: client {shown(odd)} has"
            f" {'train and test folders' if parted[odd] else 'no train and test folders'}, and"
            f" client {shown(layout.clients[0])} has{' none' if parted[odd] else ''}"
        )
    is_parted = parted[layout.clients[0]]
    files = {
        name: {part: _files(layout.folder / name / part) for part in (PARTS if is_parted else [""])}
        for name in layout.clients
    }
    everything = [path for parts in files.values() for some in parts.values() for _, path in some]
    size, coloured, told = _one_size(everything, layout.folder)
    classes = tuple(
        in_order({label for p in files.values() for some in p.values() for label, _ in some})
    )
    clients = {}
    for name, parts in files.items():
        dealt = [_arrays(some, classes, size, coloured) for some in parts.values()]
        if not is_parted:
            rng = generator(seed, "test pictures", name)
            what = f"{layout.folder / name}: client {shown(name)}"
            dealt = list(divided(dealt[0], test_size, rng, what))
        clients[name] = dealt[0], dealt[1]
    if not is_parted:
        told.append("test pictures drawn in each client")
    return PictureClients(clients, classes, tuple(told))


def _parted(client: Path) -> bool:
    names = {each.name for each in visible(client) if each.is_dir()}
    if names == {"train"}:
        raise InvalidInputError(f"{client}: client {shown(client.name)} has no test folder")
    return names == set(PARTS)


def _files(folder: Path) -> list[tuple[str, Path]]:
    """Return the class and the path of each picture."""
    classes = [each for each in visible(folder) if each.is_dir()]
    found = [
        (label.name, path)
        for label in classes
        for path in visible(label)
        if path.suffix.lower() in PICTURES
    ]
    for label in classes:
        if not any(name == label.name for name, _ in found):
            raise InvalidInputError(f"{label}: there is no picture of this class")
    if not found:
        raise InvalidInputError(f"{folder}: there are no folders with pictures, one for each class")
    return found


def _one_size(paths: list[Path], folder: Path) -> tuple[tuple[int, int], bool, list[str]]:
    """Return width and height for all pictures, whether in colour, and what is done for that."""
    from PIL import Image, UnidentifiedImageError

    sizes: Counter[tuple[int, int]] = Counter()
    modes = set()
    for path in paths:
        try:
            with Image.open(path) as picture:  # reads the header only
                sizes[picture.size] += 1
                modes.add(picture.mode)
        except (OSError, UnidentifiedImageError, ValueError, Image.DecompressionBombError) as error:
            raise InvalidInputError(f"{path} is not a readable picture ({error})") from None
    # The most usual size; the smaller of two that are equally usual.
    size = min(sizes, key=lambda each: (-sizes[each], each))
    coloured = not modes <= {"1", "L", "LA", "I", "I;16", "F"}
    needed = len(paths) * size[0] * size[1] * (3 if coloured else 1) * 4
    if needed > MOST_BYTES:
        raise InvalidInputError(
            f"{folder}: {len(paths):,} pictures of {size[0]}×{size[1]} would take"
            f" {needed / 1e9:.1f} GB of memory, and {MOST_BYTES / 1e9:.1f} GB are the most; make"
            " them smaller"
        )
    others = len(paths) - sizes[size]
    told = (
        [f"{others:,} of {len(paths):,} pictures resized to {size[0]}×{size[1]}"] if others else []
    )
    return size, coloured, told


def _arrays(
    some: list[tuple[str, Path]], classes: tuple[str, ...], size: tuple[int, int], coloured: bool
) -> Arrays:
    pixels = pixels_of(np.stack([_decoded(path, size, coloured) for _, path in some]))
    labels = np.array([classes.index(label) for label, _ in some], dtype=np.int64)
    return {"inputs": pixels}, labels


def _decoded(path: Path, size: tuple[int, int], coloured: bool) -> NDArray[np.uint8]:
    """Return a picture as uint8[H, W] or uint8[H, W, 3]."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            plain = picture.convert("RGB" if coloured else "L")
            if plain.size != size:
                plain = plain.resize(size, Image.Resampling.BILINEAR)
            return np.asarray(plain)
    except (OSError, UnidentifiedImageError, ValueError, SyntaxError) as error:
        raise InvalidInputError(f"{path} is not a readable picture ({error})") from None
