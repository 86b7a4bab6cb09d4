"""The picture of an inversion as a file."""

from __future__ import annotations

from pathlib import Path

from coalitions.drawing.pictures import plain_style
from coalitions.files.writing import atomic_write
from learners.attacks.inversion import Inversion
from learners.attacks.picture import attacked_pictures


@plain_style()
def draw_inversion(inversion: Inversion, path: Path) -> None:
    """Write the pictures as a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = attacked_pictures(inversion.pictures, inversion.privacy.noise)
    FigureCanvasAgg(figure)
    with atomic_write(path) as file:
        figure.savefig(file, format="png", dpi=120)
