"""Colours that people with any colour vision can tell apart."""

from __future__ import annotations

PALETTE = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#7F7F7F",
    "#004466", "#8A5F00", "#005F45", "#7A4964", "#336C8B", "#803800", "#6E6500", "#4C4C4C",
)  # fmt: skip
"""Okabe and Ito's colours, which people with any colour vision can tell apart, then darker ones."""


def colour(number: int) -> str:
    """Return the colour of a run or coalition; they repeat after sixteen."""
    return PALETTE[number % len(PALETTE)]
