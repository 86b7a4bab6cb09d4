"""The efficient aggregation of Shapley interactions."""

from __future__ import annotations

from coalitions.joint.index import INDICES, Index, Measure, density


@INDICES.register("k-SII")
class EfficientShapleyInteraction(Index):
    r"""Shapley interactions whose sum up to the order k is v(N) − v(∅) [Bordt2023]_.

    .. math:: I(S) = \sum_{S \subseteq T,\,|T| \le k} B_{|T|-|S|}\,\mathrm{SII}(T)

    with Bernoulli's numbers, :math:`B_1 = -\tfrac12`. Of order 1 it is the Shapley value.
    """

    efficient = True

    def measure(self, size: int, n_players: int) -> Measure:
        """Return the uniform distribution."""
        return density([1.0], n_players - size)

    def share(self, more: int) -> float:
        """Return Bernoulli's number."""
        from scipy.special import bernoulli

        return float(bernoulli(more)[more])
