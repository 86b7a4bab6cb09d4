"""The picture of an inversion: originals, recovered, recovered under noise."""

from __future__ import annotations

from pathlib import Path

from coalitions.drawing.pictures import plain_style
from coalitions.files.writing import atomic_write
from learners.attacks.inversion import Inversion


@plain_style()
def draw_inversion(inversion: Inversion, path: Path) -> None:
    """Write the three rows as a PNG file; PSNR is above each recovered picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    pictures, noise = inversion.pictures, inversion.privacy.noise
    figure = Figure(figsize=(1.5 + 1.2 * len(pictures), 4.2), layout="constrained")
    FigureCanvasAgg(figure)
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
    with atomic_write(path) as file:
        figure.savefig(file, format="png", dpi=120)
