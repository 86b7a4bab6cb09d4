"""The faithful Banzhaf interaction index."""

from __future__ import annotations

from coalitions.joint.index import INDICES, Index, Measure, fixed


@INDICES.register("FBII")
class FaithfulBanzhafInteraction(Index):
    r"""Coefficients of the polynomial of degree k that is nearest to v over all S [Tsai2023]_.

    .. math:: I(S) = \sum_{S \subseteq T,\,|T| \le k} (-\tfrac12)^{|T|-|S|}\,\mathrm{BII}(T)

    since :math:`\sum_T \mathrm{BII}(T) \prod_{i \in T} (x_i - \tfrac12)` is that polynomial
    [Hammer1992]_. The index of the empty coalition is its constant.
    """

    least = 0

    def measure(self, size: int, n_players: int) -> Measure:
        """Return a fair coin."""
        return fixed(0.5)

    def share(self, more: int) -> float:
        """Return what multiplying out leaves to a smaller product."""
        return (-0.5) ** more
