"""Text and numbers as a terminal shows them."""

from __future__ import annotations

from coalitions.characters import figure, fitting, visible, visible_lines

__all__ = ["decimal", "figure", "fitting", "visible", "visible_lines"]


def decimal(value: float) -> float:
    """Return a sum of decimals as a person would write it: 444.4, not 444.40000000000003.

    Examples
    --------
    >>> decimal(111.1 + 222.2 + 111.1)
    444.4
    """
    return float(f"{value:.15g}")
