"""The Shapley interaction index."""

from __future__ import annotations

from coalitions.joint.index import INDICES, Index, Measure, density


@INDICES.register("SII")
class ShapleyInteraction(Index):
    """All sizes of the others are equally likely [Grabisch1999]_."""

    def measure(self, size: int, n_players: int) -> Measure:
        """Return the uniform distribution."""
        return density([1.0], n_players - size)
