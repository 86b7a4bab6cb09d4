"""The Banzhaf interaction index."""

from __future__ import annotations

from coalitions.joint.index import INDICES, Index, Measure, fixed


@INDICES.register("BII")
class BanzhafInteraction(Index):
    """All coalitions of the others are equally likely [Grabisch1999]_."""

    def measure(self, size: int, n_players: int) -> Measure:
        """Return a fair coin."""
        return fixed(0.5)
