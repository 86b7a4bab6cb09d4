"""The Shapley–Taylor interaction index."""

from __future__ import annotations

from math import comb

from coalitions.joint.index import INDICES, Index, Measure, density, fixed


@INDICES.register("STII")
class ShapleyTaylorInteraction(Index):
    r"""Joint contributions to nobody, and the rest among coalitions of k [Sundararajan2020]_.

    Below the order k it is the Möbius transform; at the order every larger coalition's dividend is
    shared out equally among its subsets of k players. The density is :math:`k (1-p)^{k-1}`.
    """

    efficient = True

    def measure(self, size: int, n_players: int) -> Measure:
        """Return nobody below the order, and small coalitions rather than large ones at it."""
        if size < self.order:
            return fixed(0.0)
        k = self.order
        falling = [k * (-1.0) ** i * comb(k - 1, i) for i in range(k)]
        return density(falling, n_players - size)
