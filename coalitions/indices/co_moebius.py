"""The co-Möbius transform."""

from __future__ import annotations

from coalitions.joint.index import INDICES, Index, Measure, fixed


@INDICES.register("Co-Moebius")
class CoDividend(Index):
    """Joint contributions to everybody else: what is lost if S leaves [Grabisch1999]_."""

    def measure(self, size: int, n_players: int) -> Measure:
        """Return a coin that lets everybody join."""
        return fixed(1.0)
