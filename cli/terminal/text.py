"""Text and numbers as a terminal shows them."""

from __future__ import annotations

from collections.abc import Sequence

from coalitions.characters import decimal, figure, fitting, visible, visible_lines

__all__ = ["decimal", "figure", "fitting", "names_in", "visible", "visible_lines"]


def names_in(given: Sequence[str] | None) -> list[str]:
    """Return the names that a flag was given: with commas, in several flags, or both.

    Examples
    --------
    >>> names_in(["local,fedavg", "ditto"])
    ['local', 'fedavg', 'ditto']
    """
    return [name.strip() for each in given or () for name in each.split(",") if name.strip()]
