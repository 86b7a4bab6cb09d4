"""The picture of an inversion as a file."""

from __future__ import annotations

from pathlib import Path

from coalitions.drawing.pictures import picture
from coalitions.files.writing import write_whole
from learners.attacks.inversion import Inversion
from learners.attacks.picture import attacked_pictures


def draw_inversion(inversion: Inversion, path: Path) -> None:
    """Write the pictures as a PNG file."""
    figure = attacked_pictures(inversion.pictures, inversion.privacy.noise)
    write_whole(path, picture(figure, "png", dpi=120))
