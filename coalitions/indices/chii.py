"""The chaining interaction index."""

from __future__ import annotations

from coalitions.joint.index import INDICES, Index, Measure, density


@INDICES.register("CHII")
class ChainingInteraction(Index):
    r"""Joint contributions in random orders, once the last of S has come [Marichal1999]_.

    The density is :math:`s p^{s-1}`: that of the largest of s uniform numbers.
    """

    def measure(self, size: int, n_players: int) -> Measure:
        """Return the distribution of when the last one comes."""
        return density([0.0] * (size - 1) + [float(size)], n_players - size)
