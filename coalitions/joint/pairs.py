"""An index of pairs alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from coalitions.joint.index import Index, Measure


@dataclass(frozen=True)
class OfPairs(Index):
    """What another index, whose sizes do not depend on each other, says of pairs.

    Attributes
    ----------
    whole
        The other index.
    """

    whole: Index

    least: ClassVar[int] = 2

    def measure(self, size: int, n_players: int) -> Measure:
        """Return the measure of the other index."""
        return self.whole.measure(size, n_players)
