"""Text that came from a file, shown as text: it cannot steer a terminal, nor pose as mark-up."""

from __future__ import annotations

from coalitions.characters import unshown


def visible(text: str) -> str:
    r"""Return a text with what would act instead of being seen written out.

    Examples
    --------
    >>> visible("ann\x1b[2J")
    'ann\\x1b[2J'
    """
    return unshown().sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def fitting(text: str, most: int = 40) -> str:
    """Return a text that fits into a picture: visible, and cut after so many characters."""
    shown = visible(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def visible_lines(text: str) -> str:
    """Return a text of our own making, whose line ends are meant, made visible line by line."""
    return "\n".join(map(visible, text.split("\n")))
