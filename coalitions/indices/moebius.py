"""The Möbius transform."""

from __future__ import annotations

from coalitions.joint.index import INDICES, Index, Measure, fixed


@INDICES.register("Moebius")
class Dividend(Index):
    """Joint contributions to nobody: Harsanyi's dividends [Harsanyi1963]_."""

    def measure(self, size: int, n_players: int) -> Measure:
        """Return a coin that never lets anybody join."""
        return fixed(0.0)
