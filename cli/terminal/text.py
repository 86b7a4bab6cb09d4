"""Text and numbers as a terminal shows them."""

from __future__ import annotations

from collections.abc import Sequence

from coalitions.characters import decimal, figure, fitting, visible, visible_lines
from coalitions.errors import InvalidInputError

__all__ = ["decimal", "figure", "fitting", "split_names", "visible", "visible_lines"]


def split_names(given: Sequence[str] | None, flag: str) -> list[str]:
    """Return the names that a flag was given: with commas, in several flags, or both.

    Examples
    --------
    >>> split_names(["local,fedavg", "ditto"], "--algorithms")
    ['local', 'fedavg', 'ditto']
    """
    names = [name.strip() for each in given or () for name in each.split(",") if name.strip()]
    if given and not names:
        raise InvalidInputError(f"{flag} is given without a name; give one, or several with commas")
    return names
