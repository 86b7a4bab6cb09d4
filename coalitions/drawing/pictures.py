"""What all pictures share: matplotlib without anybody's settings, files, colours."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from coalitions.errors import InvalidInputError
from coalitions.extras import needed
from coalitions.files.writing import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".svg", ".pdf")

FILE_DPI, SCREEN_DPI = 130, 75
"""Points of an inch in files, and in notebooks, which should stay small."""


@contextmanager
def plain_style() -> Iterator[None]:
    """Draw with matplotlib's own settings, and text as it is written.

    A file named matplotlibrc in the working folder would change the picture, or send its texts to
    LaTeX; and a label with two dollar signs is a label, not a formula.
    """
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["text.parse_math"] = False
        matplotlib.rcParams["svg.hashsalt"] = "coalition-kit"  # else ids in an .svg are random
        yield


@cache
def _kind() -> type[Figure]:
    from matplotlib.figure import Figure

    class Shown(Figure):
        """A figure that notebooks show as it is, whether they have heard of pyplot or not."""

        def _repr_png_(self) -> bytes:
            return picture(self, "png", dpi=SCREEN_DPI)

    return Shown


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of so many inches, which belongs to no window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = _kind()(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def picture(figure: Figure, kind: str, dpi: int = FILE_DPI) -> bytes:
    """Return a figure as the content of a file; the same figure gives the same bytes."""
    file = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with plain_style():
        figure.savefig(file, format=kind, dpi=dpi, metadata=undated)
    return file.getvalue()


def check_picture_path(path: Path, *, pages: bool = False) -> None:
    """Raise unless a picture, or a page if it may be one, can be written under this name."""
    kinds = (*PICTURES, ".html") if pages else PICTURES
    if path.suffix.lower() not in kinds:
        raise InvalidInputError(
            f"{path.name} ends in {path.suffix or 'nothing'}; a picture is a"
            f" {', '.join(kinds[:-1])} or {kinds[-1]} file"
        )
    if not path.parent.is_dir():
        raise InvalidInputError(f"{path}: cannot be written: there is no folder {path.parent}")


def save(figure: Figure, path: Path) -> None:
    """Write a figure to a file; its ending says which kind."""
    check_picture_path(path)
    write_whole(path, picture(figure, path.suffix.lower()[1:]))


def drawn_to_file(draw: Callable[[], Figure], path: str | Path | None) -> Figure:
    """Return the figure that `draw` makes, and write it to `path` if there is one.

    Before anything is drawn, it is checked that matplotlib is installed and that the file can be
    written.
    """
    needed("matplotlib")
    target = None if path is None else Path(path)
    if target is not None:
        check_picture_path(target)
    with plain_style():
        figure = draw()
    if target is not None:
        save(figure, target)
    return figure


# ----------------------------------------------------------------------------------------
# Colours that people with any colour vision can tell apart

PALETTE = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#7F7F7F",
    "#004466", "#8A5F00", "#005F45", "#7A4964", "#336C8B", "#803800", "#6E6500", "#4C4C4C",
)  # fmt: skip
"""Okabe and Ito's colours, which people with any colour vision can tell apart, then darker ones."""


def colour(number: int) -> str:
    """Return the colour of a run or coalition; they repeat after sixteen."""
    return PALETTE[number % len(PALETTE)]
