"""Synthetic digits, rendered from fonts."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from learners.data.dataset import DATASETS, DataSet, Images, ImageSet
from learners.data.files import bundled, read_npz, unchanging
from learners.settings.seeding import generator

SIDE = 32
N_TRAIN, N_TEST = 8000, 2000
FONTS = (  # those that matplotlib brings along and that have ten digits
    *(f"DejaVuSans{style}" for style in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSansMono{style}" for style in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSerif{style}" for style in ("", "-Bold", "-Italic", "-BoldItalic")),
    *(f"STIXGeneral{style}" for style in ("", "Bol", "Italic", "BolIta")),
    *("cmr10", "cmb10", "cmss10", "cmti10", "cmtt10", "cmmi10"),
)
CELL = 48  # pixels of a glyph's square in the atlas
HEIGHT = 32  # pixels of a glyph in it, so that drawing it smaller needs no more than bilinear

Floats = NDArray[np.float32]


@DATASETS.register("synth-digits")
class SynthDigits(DataSet):
    """Digits in 22 fonts on cluttered backgrounds, 32×32 colour, 8000 / 2000 [Ganin2016]_.

    Read from synth-digits.npz, or rendered here after the description of the original: font, size,
    position, orientation, colours, blur and neighbouring digits vary.
    """

    def load(self, folder: Path | None) -> dict[str, ImageSet]:
        """Read the archive if it is there, else render; the pictures are always the same ones."""
        if folder is not None and (folder / "synth-digits.npz").exists():
            return {"": read_npz(folder / "synth-digits.npz", 10)}
        return {"": all_rendered()}

    def origin(self, folder: Path | None) -> tuple[bool, str]:
        """Look for the archive."""
        if folder is not None and (folder / "synth-digits.npz").exists():
            return True, str(folder / "synth-digits.npz")
        return True, "rendered from matplotlib's fonts"


@functools.cache
def all_rendered() -> ImageSet:
    """Return the whole set, rendered once: it has no seed."""
    atlas = glyphs()
    return unchanging(
        ImageSet(
            train=rendered(N_TRAIN, atlas, generator(0, "synth-digits: train")),
            test=rendered(N_TEST, atlas, generator(0, "synth-digits: test")),
            n_classes=10,
        )
    )


def glyphs() -> Floats:
    """Return the atlas: every font's ten digits as masks float32[fonts, 10, CELL, CELL]."""
    from PIL import Image, ImageDraw, ImageFont

    atlas = np.zeros((len(FONTS), 10, CELL, CELL), dtype=np.float32)
    for number, name in enumerate(FONTS):
        path = bundled("matplotlib", "mpl-data", "fonts", "ttf", f"{name}.ttf")
        font = ImageFont.truetype(str(path), size=HEIGHT * 4 // 3)
        for digit in range(10):
            cell = Image.new("L", (CELL, CELL))
            left, top, right, bottom = font.getbbox(str(digit))
            corner = ((CELL - left - right) / 2, (CELL - top - bottom) / 2)
            ImageDraw.Draw(cell).text(corner, str(digit), font=font, fill=255)
            atlas[number, digit] = np.asarray(cell, dtype=np.float32) / 255
    return atlas


def rendered(n: int, atlas: Floats, rng: np.random.Generator) -> Images:
    """Return `n` pictures of digits, equally many of each, in random order."""
    labels = rng.permutation(np.arange(n) % 10)
    pixels = [_batch(part, atlas, rng) for part in np.array_split(labels, -(-n // 100))]
    return Images(np.concatenate(pixels), labels)


def _batch(labels: NDArray[np.int64], atlas: Floats, rng: np.random.Generator) -> NDArray[np.uint8]:
    n = len(labels)

    def uniform(low: float, high: float, *shape: int) -> Floats:
        return np.float32(low) + np.float32(high - low) * rng.random((n, *shape), dtype=np.float32)

    def normal(*shape: int) -> Floats:
        return rng.standard_normal((n, *shape), dtype=np.float32)

    font = rng.integers(len(FONTS), size=n)
    size = uniform(15, 27)  # height of the digit in pixels
    turn, slant = 0.2 * normal(), 0.15 * normal()
    middle = SIDE / 2 + uniform(-2.5, 2.5, 2)
    paper_grey = uniform(20, 235, 1)
    # The ink is at least 70 grey levels away from the paper, whatever side it falls on.
    ink_grey = (paper_grey + uniform(70, 185, 1)) % 255
    paper = (paper_grey + uniform(-50, 50, 3))[..., None, None]
    ink = (ink_grey + uniform(-50, 50, 3))[..., None, None]

    canvas = paper + _stains(normal(3, 5, 5)) * uniform(0, 35, 1, 1, 1)
    behind = _drawn(  # a large, weak shape
        atlas[rng.integers(len(FONTS), size=n), rng.integers(10, size=n)],
        size=uniform(30, 70),
        turn=uniform(-np.pi, np.pi),
        slant=np.zeros_like(size),
        middle=uniform(0, SIDE, 2),
    )
    canvas += behind[:, None] * uniform(-45, 45, 3, 1, 1)
    for side in (-1, 1):  # a number has more digits than the one asked for
        neighbour = middle.copy()
        neighbour[:, 1] += side * size * uniform(0.7, 0.95)
        mask = _drawn(
            atlas[font, rng.integers(10, size=n)],
            size=size,
            turn=turn,
            slant=slant,
            middle=neighbour,
        )
        mask *= rng.integers(2, size=(n, 1, 1), dtype=np.uint8)
        canvas += mask[:, None] * (ink - canvas)
    mask = _drawn(atlas[font, labels], size=size, turn=turn, slant=slant, middle=middle)
    canvas += mask[:, None] * (ink - canvas)
    canvas += uniform(0, 0.6, 1, 1, 1) * (_smoothed(canvas) - canvas)
    canvas += normal(3, SIDE, SIDE) * uniform(0, 12, 1, 1, 1)
    return np.clip(np.rint(canvas), 0, 255).astype(np.uint8).transpose(0, 2, 3, 1)


def _drawn(masks: Floats, *, size: Floats, turn: Floats, slant: Floats, middle: Floats) -> Floats:
    """Return the masks scaled, slanted, turned and moved: float32[n, SIDE, SIDE], bilinear."""
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.float32) + np.float32(0.5)
    dy = y[None] - middle[:, 0, None, None]
    dx = x[None] - middle[:, 1, None, None]
    zoom = HEIGHT / size
    down, along = zoom * np.cos(turn), zoom * np.sin(turn)
    v = down[:, None, None] * dy - along[:, None, None] * dx
    u = along[:, None, None] * dy + down[:, None, None] * dx + slant[:, None, None] * v
    # Outside the cell the mask is empty, as is its rim: clipping there draws nothing.
    v = np.clip(v + np.float32(CELL / 2 - 0.5), 0, np.float32(CELL - 1.001))
    u = np.clip(u + np.float32(CELL / 2 - 0.5), 0, np.float32(CELL - 1.001))
    row, column = v.astype(np.int32), u.astype(np.int32)
    v, u = v - row.astype(np.float32), u - column.astype(np.float32)
    first = (np.arange(len(masks), dtype=np.int32) * (CELL * CELL))[:, None, None]
    at = first + row * CELL + column
    flat = masks.reshape(-1)
    upper = flat[at]
    upper += u * (flat[at + 1] - upper)
    lower = flat[at + CELL]
    lower += u * (flat[at + CELL + 1] - lower)
    drawn: Floats = upper + v * (lower - upper)
    return drawn


def _stains(coarse: Floats) -> Floats:
    """Return coarse colours [n, 3, k, k] spread softly over whole pictures."""
    k = coarse.shape[-1]
    place = np.linspace(0, k - 1, SIDE)[:, None]
    weights = np.maximum(0, 1 - np.abs(place - np.arange(k))).astype(np.float32)
    spread: Floats = weights @ coarse @ weights.T
    return spread


def _smoothed(canvas: Floats) -> Floats:
    """Return the pictures after a 3×3 binomial filter; the rim stays as it is."""
    smooth = canvas.copy()
    smooth[:, :, 1:-1] += 0.25 * (canvas[:, :, :-2] - 2 * canvas[:, :, 1:-1] + canvas[:, :, 2:])
    both = smooth.copy()
    both[..., 1:-1] += 0.25 * (smooth[..., :-2] - 2 * smooth[..., 1:-1] + smooth[..., 2:])
    return both
