"""Text that came from a file, shown as text: it cannot steer a terminal, nor pose as mark-up."""

from __future__ import annotations

import functools
import re

UNSHOWN = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ud800-\udfff]"
"""Control characters, those that turn the direction of writing, line separators, half characters.

Joiners stay: Persian names and many emoji have them.
"""


@functools.cache
def _unshown() -> re.Pattern[str]:
    return re.compile(UNSHOWN)  # when it is needed: it takes longer than the module does


def visible(text: str) -> str:
    r"""Return a text with what would act instead of being seen written out.

    Examples
    --------
    >>> visible("ann\x1b[2J")
    'ann\\x1b[2J'
    """
    return _unshown().sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def fitting(text: str, most: int = 40) -> str:
    """Return a text that fits into a picture: visible, and cut after so many characters."""
    shown = visible(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def visible_lines(text: str) -> str:
    """Return a text of our own making, whose line ends are meant, made visible line by line."""
    return "\n".join(map(visible, text.split("\n")))


def json_visible(document: str) -> str:
    r"""Return a JSON document that says the same without a character that acts on a terminal.

    Such characters can only stand in strings, where ``\u`` and four digits mean the same.
    """
    return "\n".join(
        _unshown().sub(lambda found: f"\\u{ord(found[0]):04x}", line)
        for line in document.split("\n")
    )
