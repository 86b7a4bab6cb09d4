"""Pictures by matplotlib that depend on nothing but what is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


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
