"""The picture of an inversion: originals, recovered, recovered under noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coalitions.drawing.pictures import new_figure, plain_style
from learners.attacks.inversion import Attacked

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@plain_style()
def attacked_pictures(pictures: Sequence[Attacked], noise: float) -> Figure:
    """Return three rows of pictures; PSNR is above each recovered one."""
    figure = new_figure(1.5 + 1.2 * len(pictures), 4.2)
    grid = figure.subplots(3, len(pictures), squeeze=False)
    for column, each in zip(grid.T, pictures, strict=True):
        titles = ("", f"{each.likeness[0]:.1f} dB", f"{each.noised_likeness[0]:.1f} dB")
        shown = (each.original, each.recovered, each.noised)
        for axes, image, title in zip(column, shown, titles, strict=True):
            pixels = ((image + 1) / 2).clamp(0, 1).permute(1, 2, 0).numpy()
            axes.imshow(pixels.squeeze(), cmap="gray", vmin=0, vmax=1)
            axes.set_title(title, fontsize="small")
            axes.set_xticks([])
            axes.set_yticks([])
    for axes, label in zip(grid[:, 0], ("original", "recovered", f"σ = {noise:g}"), strict=True):
        axes.set_ylabel(label)
    return figure
